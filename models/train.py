"""Trains one of the embedded networks and writes it as ONNX.

    python models/train.py d --data DIR --output models/mnist_d.onnx

DIR holds the four official MNIST files. The networks learn from MNIST's training part together with the
training part of scikit-learn's handwritten digits; neither test part is looked at before the last epoch has
ended. Needs models/requirements.txt; nothing else in the project needs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch
from augment import augment
from export import to_onnx
from mnist import load_mnist
from networks import network
from torch import Tensor, nn

from lanner.datasets import load_digits

DIGITS_REPEAT = 6
"""How often scikit-learn's digits occur in an epoch: they are few beside MNIST's 60,000."""

LABEL_SMOOTHING = 0.05
"""Keeps the logits, and with them the fixed-point ranges, small."""


def main() -> None:
    """Parse the command line, train, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["a", "b", "c", "d"])
    parser.add_argument("--data", type=Path, required=True, help="folder with MNIST's idx files")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--decay", type=float, default=2e-2, help="weight decay")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = network(options.name)
    train(model, *training_set(options.data), options)
    report(model, options.data)
    onnx.save(to_onnx(model, f"mnist_{options.name}"), options.output)


def training_set(folder: Path) -> tuple[Tensor, Tensor]:
    """MNIST's training part and scikit-learn's, the latter repeated."""
    x, y = load_mnist(folder, "train")
    digits, labels = load_digits("train")
    x = np.concatenate([x, *[digits] * DIGITS_REPEAT])
    y = np.concatenate([y, *[labels] * DIGITS_REPEAT])
    return torch.from_numpy(x), torch.from_numpy(y)


def train(model: nn.Sequential, x: Tensor, y: Tensor, options: argparse.Namespace) -> None:
    """Minimise cross entropy with AdamW under a one-cycle schedule, on randomly deformed digits."""
    generator = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    steps = len(x) // options.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=options.epochs * steps)
    loss_of = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
    for epoch in range(options.epochs):
        model.train()
        order = torch.randperm(len(x), generator=generator)
        total = 0.0
        for step in range(steps):
            index = order[step * options.batch : (step + 1) * options.batch]
            loss = loss_of(model(augment(x[index], generator)), y[index])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{options.epochs}: loss {total / steps:.4f}", flush=True)


def report(model: nn.Sequential, folder: Path) -> None:
    """Print the accuracy on both test parts and the largest magnitude behind each layer."""
    for title, (x, y) in {"MNIST": load_mnist(folder, "test"), "digits": load_digits("test")}.items():
        correct = accuracy(model, x, y)
        print(f"{title}: {correct:.2%} of {len(x)} test images")
    x, _ = load_mnist(folder, "test")
    with torch.no_grad():
        values = torch.from_numpy(x)
        for layer in model:
            values = layer(values)
            print(f"  {type(layer).__name__}: |x| <= {values.abs().max().item():.2f}")


def accuracy(model: nn.Sequential, x: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> float:
    """The fraction of ``x``, ``(n, 1, 28, 28)``, whose largest logit is at its label ``y``."""
    model.eval()
    with torch.no_grad():
        labels = model(torch.from_numpy(x)).argmax(dim=1)
    return float((labels == torch.from_numpy(y)).float().mean())


if __name__ == "__main__":
    main()
