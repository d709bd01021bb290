"""The training loop that the scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import OneCycleLR

EVALUATED = 1000
"""How many samples go through a network at once where nothing is learnt from them."""


def add_options(parser: argparse.ArgumentParser, *, epochs: int, batch: int, rate: float, decay: float) -> None:
    """Add the options of `fit`, with these defaults, and ``--threads``."""
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--rate", type=float, default=rate, help="peak learning rate")
    parser.add_argument("--decay", type=float, default=decay, help="weight decay")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path, help="written after each epoch, and gone on from where it exists")
    parser.add_argument("--bfloat16", action="store_true", help="compute layers in 16 bits; weights and sums keep 32")


def fit(
    model: nn.Sequential,
    x: Tensor,
    y: Tensor,
    options: argparse.Namespace,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor],
    smoothing: float,
    held: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]] | None = None,
) -> None:
    """Minimise cross entropy with AdamW under a one-cycle schedule.

    Args:
        model: From ``(n, *sample)`` to logits ``(n, classes)``.
        x: Training samples ``(n, *sample)``.
        y: Their labels, ``(n,)``, or how likely each is, ``(n, classes)``.
        options: Those of `add_options`. Without a checkpoint training starts at the first epoch.
        augment: Changes a batch at random, each time it is seen.
        smoothing: Label smoothing, which keeps the logits, and with them the fixed-point ranges, small.
        held: Samples and labels that are not trained on, whose accuracy is printed behind each epoch.
    """
    generator = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    steps = len(x) // options.batch
    loss_of = nn.CrossEntropyLoss(label_smoothing=smoothing)
    state = _Checkpoint(options.checkpoint, generator, model=model, optimizer=optimizer)
    begun = state.load()
    # The cycle follows from the options, so that training may go on for another number of epochs than it began with.
    total = options.epochs * steps
    schedule = OneCycleLR(optimizer, options.rate, total_steps=total, last_epoch=begun * steps - 1)
    for epoch in range(begun, options.epochs):
        model.train()
        order = torch.randperm(len(x), generator=generator)
        losses = 0.0
        for step in range(steps):
            index = order[step * options.batch : (step + 1) * options.batch]
            with torch.autocast("cpu", torch.bfloat16, enabled=options.bfloat16):
                logits = model(augment(x[index], generator))
            loss = loss_of(logits.float(), y[index])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses += loss.item()
        told = "" if held is None else f", {accuracy(model.eval(), *held):.2%} of those held back"
        print(f"epoch {epoch + 1}/{options.epochs}: loss {losses / steps:.4f}{told}", flush=True)
        state.save(epoch + 1)
    model.eval()


class _Checkpoint:
    """What training goes on from, in a file, where one is named."""

    def __init__(self, path: Path | None, generator: torch.Generator, **parts: nn.Module | Optimizer) -> None:
        self.path, self.generator, self.parts = path, generator, parts

    def save(self, epochs: int) -> None:
        """Write the state after this many epochs, whole or not at all."""
        if self.path is None:
            return
        states = {name: part.state_dict() for name, part in self.parts.items()}
        fresh = self.path.with_suffix(".new")
        torch.save({**states, "generator": self.generator.get_state(), "epochs": epochs}, fresh)
        fresh.replace(self.path)

    def load(self) -> int:
        """Take up the written state; return after how many epochs it was written."""
        if self.path is None or not self.path.exists():
            return 0
        saved = torch.load(self.path)
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        self.generator.set_state(saved["generator"])
        return int(saved["epochs"])


def accuracy(model: nn.Sequential, x: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> float:
    """The fraction of samples ``x`` whose largest logit is at their label ``y``."""
    with torch.no_grad():
        labels = torch.cat([model(batch).argmax(dim=1) for batch in torch.from_numpy(x).split(EVALUATED)])
    return float((labels == torch.from_numpy(y)).float().mean())


def print_magnitudes(model: nn.Sequential, x: Tensor) -> None:
    """Print the largest magnitude behind each layer on samples ``x``."""
    with torch.no_grad():
        values = x
        for layer in model:
            values = layer(values)
            print(f"  {type(layer).__name__}: |x| <= {values.abs().max().item():.2f}")
