"""Layers whose weights are circulant in blocks: Falcon's spectral form, [LLJ20] section 2.4.

Rows (outputs) and columns (inputs) are cut into blocks of k by k, and within a block the weight at row a and column b
depends on (a - b) mod k alone. Where the sides are no multiples of k the last blocks reach beyond the matrix, as if
rows and columns were appended and cut off again. Training sees the k free values of each block; the network that is
written holds the whole matrix, so that any program can run it.

[LLJ20] Lou, Lu, Hong, Jiang, "Falcon: Fast Spectral Inference on Encrypted Data", NeurIPS 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize


def make_circulant(layer: nn.Conv2d | nn.Linear, block: int) -> None:
    """Replace the weights of ``layer`` by the nearest that are circulant in blocks, and have training keep them so.

    A convolution is circulant over its channels, at each position of the kernel.
    """
    rows, columns = layer.weight.shape[:2]
    parametrize.register_parametrization(layer, "weight", _Circulant(rows, columns, block))


def is_circulant(layer: nn.Module) -> bool:
    """Whether training keeps the weights of ``layer`` circulant in blocks."""
    return parametrize.is_parametrized(layer, "weight") and isinstance(layer.parametrizations.weight[0], _Circulant)


class _Circulant(nn.Module):
    """Between the weights ``(rows, columns, ...)`` and the free values ``(row blocks * column blocks * k, ...)``."""

    place: Tensor
    """Where among the free values each weight is found, ``(rows * columns,)``."""

    count: Tensor
    """How many weights each free value stands for."""

    def __init__(self, rows: int, columns: int, block: int) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns
        across = -(-columns // block)
        row, column = torch.arange(rows)[:, None], torch.arange(columns)
        place = (row // block * across + column // block) * block + (row - column) % block
        self.register_buffer("place", place.flatten(), persistent=False)
        self.register_buffer(
            "count", torch.bincount(self.place, minlength=-(-rows // block) * across * block), persistent=False
        )

    def forward(self, free: Tensor) -> Tensor:
        """The weights."""
        return free.index_select(0, self.place).unflatten(0, (self.rows, self.columns))

    def right_inverse(self, weight: Tensor) -> Tensor:
        """The free values of the nearest weights of this form: the mean along each diagonal of a block."""
        sums = weight.new_zeros(len(self.count), *weight.shape[2:]).index_add(0, self.place, weight.flatten(0, 1))
        # A free value that stands for no weight, all of its diagonal being beyond the sides, stays zero.
        return sums / self.count.clamp(min=1).view(-1, *[1] * (sums.dim() - 1))
