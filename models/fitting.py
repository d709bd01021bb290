"""The training loop that the scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn


def add_options(parser: argparse.ArgumentParser, *, epochs: int, batch: int, rate: float, decay: float) -> None:
    """Add the options of `fit`, with these defaults, and ``--threads``."""
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--rate", type=float, default=rate, help="peak learning rate")
    parser.add_argument("--decay", type=float, default=decay, help="weight decay")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)


def fit(
    model: nn.Sequential,
    x: Tensor,
    y: Tensor,
    options: argparse.Namespace,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor],
    smoothing: float,
) -> None:
    """Minimise cross entropy with AdamW under a one-cycle schedule.

    Args:
        model: From ``(n, *sample)`` to logits ``(n, classes)``.
        x: Training samples ``(n, *sample)``.
        y: Their labels ``(n,)``.
        options: Those of `add_options`.
        augment: Changes a batch at random, each time it is seen.
        smoothing: Label smoothing, which keeps the logits, and with them the fixed-point ranges, small.
    """
    generator = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    steps = len(x) // options.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=options.epochs * steps)
    loss_of = nn.CrossEntropyLoss(label_smoothing=smoothing)
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
    model.eval()


def print_magnitudes(model: nn.Sequential, x: Tensor) -> None:
    """Print the largest magnitude behind each layer on samples ``x``."""
    with torch.no_grad():
        values = x
        for layer in model:
            values = layer(values)
            print(f"  {type(layer).__name__}: |x| <= {values.abs().max().item():.2f}")
