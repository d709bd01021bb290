"""A first convolution that learns on whitened patches, while it reads plain pixels.

Neighbouring pixels are nearly equal, so plain weights learn the mean brightness long before an edge. Here
weights are learnt for patches whose pixels are uncorrelated and alike in size. Whitening is linear, and so goes
into the weights: the network that is written has none.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

NOISE = 1e-2
"""Added to each variance: what varies less than this is not made as large as the rest."""

IMAGES = 2000
"""How many images the patches are taken from."""


def whiten(layer: nn.Conv2d, images: Tensor) -> None:
    """Have ``layer`` learn on whitened patches, of the covariance seen in ``images``, ``(n, c, h, w)``."""
    size = layer.kernel_size
    patches = functional.unfold(images[:IMAGES], size, stride=size[0] // 2).transpose(1, 2).flatten(0, 1).double()
    variances, directions = torch.linalg.eigh(torch.cov(patches.T))
    matrix = directions / (variances + NOISE).sqrt() @ directions.T
    parametrize.register_parametrization(layer, "weight", _Whitened((matrix / matrix.diagonal().mean()).float()))


class _Whitened(nn.Module):
    """From weights for whitened patches to weights for plain ones, ``(outputs, channels, height, width)``."""

    matrix: Tensor

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, weight: Tensor) -> Tensor:
        """The weights for plain patches."""
        return (weight.flatten(1) @ self.matrix).view_as(weight)
