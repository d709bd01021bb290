"""Trains one of the embedded networks for digits and writes it as ONNX.

    python models/train.py d --data DIR --output models/mnist_d.onnx

DIR holds the four official MNIST files. The networks learn from MNIST's training part together with the
training part of scikit-learn's handwritten digits; neither test part is looked at before the last epoch has
ended. Needs models/requirements.txt; nothing else in the project needs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from augment import augment
from export import to_onnx
from fitting import accuracy, add_options, fit, print_magnitudes
from integers import add_integer_options, fit_whole
from mnist import load_mnist
from networks import network
from torch import Tensor, nn

from lanner.datasets import load_digits

DIGITS_REPEAT = 6
"""How often scikit-learn's digits occur in an epoch: they are few beside MNIST's 60,000."""

LABEL_SMOOTHING = 0.05


def main() -> None:
    """Parse the command line, train, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["a", "b", "b_circulant", "c", "d"])
    parser.add_argument("--data", type=Path, required=True, help="folder with MNIST's idx files")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    add_options(parser, epochs=40, batch=128, rate=2e-3, decay=2e-2)
    add_integer_options(parser)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = network(options.name)
    x, y = training_set(options.data)
    fit(model, x, y, options, augment=augment, smoothing=LABEL_SMOOTHING)
    if options.bits:
        fit_whole(model, x, y, options, augment=augment, smoothing=LABEL_SMOOTHING)
    report(model, options.data)
    onnx.save(to_onnx(model, f"mnist_{options.name}"), options.output)


def training_set(folder: Path) -> tuple[Tensor, Tensor]:
    """MNIST's training part and scikit-learn's, the latter repeated."""
    x, y = load_mnist(folder, "train")
    digits, labels = load_digits("train")
    x = np.concatenate([x, *[digits] * DIGITS_REPEAT])
    y = np.concatenate([y, *[labels] * DIGITS_REPEAT])
    return torch.from_numpy(x), torch.from_numpy(y)


def report(model: nn.Sequential, folder: Path) -> None:
    """Print the accuracy on both test parts and the largest magnitude behind each layer."""
    for title, (x, y) in {"MNIST": load_mnist(folder, "test"), "digits": load_digits("test")}.items():
        correct = accuracy(model, x, y)
        print(f"{title}: {correct:.2%} of {len(x)} test images")
    x, _ = load_mnist(folder, "test")
    print_magnitudes(model, torch.from_numpy(x))


if __name__ == "__main__":
    main()
