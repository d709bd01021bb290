"""Folds batch normalisations into weights."""

from __future__ import annotations

import torch
from circulant import is_circulant
from torch import Tensor, nn
from torch.nn.utils import parametrize


def fold(model: nn.Sequential) -> nn.Sequential:
    """The function that ``model`` is in evaluation, without batch normalisations; ``model`` is used up.

    A batch normalisation multiplies each channel by its own factor and adds to it. The weights of its convolution take
    the factors up, unless they are circulant in blocks, which rows of unequal factors are not. From there the factors
    pass the square, as their squares, to the matrix behind it.
    """
    layers: list[nn.Module] = []
    postponed: Tensor | None = None
    for layer in model:
        if isinstance(layer, nn.BatchNorm2d):
            postponed = _fold_into(layers[-1], layer)
            continue
        if postponed is not None and isinstance(layer, nn.Linear):
            # Behind the flattening each channel is a run of columns.
            layer.weight.data *= postponed.square().repeat_interleave(layer.in_features // len(postponed))
            postponed = None
        layers.append(layer)
    return nn.Sequential(*layers)


@torch.no_grad()
def _fold_into(layer: nn.Module, normalisation: nn.BatchNorm2d) -> Tensor | None:
    """Give a convolution the bias of its normalisation, and the factors too; return them if it cannot take them."""
    if not isinstance(layer, nn.Conv2d):
        raise TypeError(f"the layer before a normalisation is {type(layer).__name__}, not Conv2d")
    factors = normalisation.weight / (normalisation.running_var + normalisation.eps).sqrt()
    bias = normalisation.bias - normalisation.running_mean * factors
    if is_circulant(layer):
        layer.bias = nn.Parameter(bias / factors)
        return factors
    if parametrize.is_parametrized(layer):
        parametrize.remove_parametrizations(layer, "weight")
    layer.bias = nn.Parameter(bias)
    layer.weight *= factors[:, None, None, None]
    return None
