"""Training a network further with the weights and pixels that it will have in integers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from copy import copy

import torch
from fitting import fit
from torch import Tensor, nn
from torch.nn.utils import parametrize


def add_integer_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fit_whole`."""
    parser.add_argument(
        "--bits", type=int, nargs="+", help="of a pixel and of each layer's weights: train on in integers"
    )
    parser.add_argument("--whole-epochs", type=int, default=10, help="how long")
    parser.add_argument("--whole-rate", type=float, default=5e-4, help="peak learning rate then")


def fit_whole(
    model: nn.Sequential,
    x: Tensor,
    y: Tensor,
    options: argparse.Namespace,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor],
    smoothing: float,
) -> None:
    """Train ``model`` on as `fit` does, with rounded weights and pixels."""
    pixel, *layers = options.bits
    round_weights(model, layers)
    settings = copy(options)
    settings.epochs, settings.rate = options.whole_epochs, options.whole_rate
    settings.checkpoint = options.checkpoint and options.checkpoint.with_suffix(".whole.pt")
    settings.bfloat16 = False

    def rounded(images: Tensor, generator: torch.Generator) -> Tensor:
        return round_pixels(augment(images, generator), pixel)

    fit(model, x, y, settings, augment=rounded, smoothing=smoothing)


def round_weights(model: nn.Sequential, bits: Sequence[int]) -> None:
    """Have each layer of ``model`` use weights rounded to signed integers of so many bits times a unit.

    The unit is the one of `fixed_point.in_integers`, so that nothing is lost there. A gradient passes the rounding as
    if it were none, to weights that keep their fractions.
    """
    layers = [layer for layer in model if isinstance(layer, (nn.Conv2d, nn.Linear))]
    for layer, width in zip(layers, bits, strict=True):
        parametrize.register_parametrization(layer, "weight", _Rounded(2 ** (width - 1) - 1))


def round_pixels(images: Tensor, bits: int) -> Tensor:
    """``images``, in [0, 1], with as many shades as integers of so many bits have."""
    brightest = 2**bits - 1
    return (images * brightest).round() / brightest


class _Rounded(nn.Module):
    """From weights to the nearest whole multiples of a unit, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, weight: Tensor) -> Tensor:
        """The rounded weights."""
        with torch.no_grad():
            unit = weight.abs().max() / self.most
            error = (weight / unit).round() * unit - weight
        return weight + error

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Weights as training starts with them: their fractions are kept."""
        return weight
