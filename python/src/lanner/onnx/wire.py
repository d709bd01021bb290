"""A value of the network as lowerings see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

W = TypeVar("W", bound="Wire")


@dataclass(frozen=True, slots=True)
class Wire:
    """A tensor computed from the secret input: the graph node that yields it, and its shape without a batch axis.

    Attributes:
        name: The node's name.
        shape: The shape of one sample.
        batch: Which axis the batch is, or would be if it shared none.
        merged: Whether the batch shares its axis of the ONNX tensor with the sample's axis before it, whose elements
            are then the slower ones, and whether with the one behind, whose are the faster ones. With shape (t, h, d)
            and batch 1 the tensor is (t n, h, d), (t, n h, d) or (t n h, d).
    """

    name: str
    shape: tuple[int, ...]
    batch: int = field(default=0, kw_only=True)
    merged: tuple[bool, bool] = field(default=(False, False), kw_only=True)

    @property
    def size(self) -> int:
        """The number of elements of one sample."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def axis(self) -> int:
        """The axis of the ONNX tensor that holds the batch."""
        return self.batch - self.merged[0]

    @property
    def rank(self) -> int:
        """The number of axes of the ONNX tensor."""
        return len(self.shape) + 1 - sum(self.merged)

    @property
    def shares(self) -> tuple[int, ...]:
        """What the axis that holds the batch is made of, for a batch of one: that of the batch, and those merged."""
        return (*self.shape[self.axis : self.batch], 1, *self.shape[self.batch : self.batch + self.merged[1]])

    @property
    def batch_shape(self) -> str:
        """The shape with its batch axis, as messages show it."""
        whole = [str(side) for side in self.with_batch(1)]
        before, behind = self.shares[: self.merged[0]], self.shares[self.merged[0] + 1 :]
        whole[self.axis] = " * ".join([*map(str, before), "n", *map(str, behind)])
        return f"({', '.join(whole)})"

    def with_batch(self, size: int) -> tuple[int, ...]:
        """The shape of the ONNX tensor with a batch of a given size."""
        behind = self.shape[self.batch + self.merged[1] :]
        return (*self.shape[: self.axis], math.prod(self.shares) * size, *behind)

    def apart(self: W) -> W:
        """The same value in the tensor whose batch has an axis of its own."""
        return replace(self, merged=(False, False))

    @property
    def is_column(self) -> bool:
        """Whether the tensor's one axis is the batch, of which each sample has one number."""
        return self.shape == (1,) and self.merged == (False, True)

    def as_column(self: W) -> W:
        """The same one number of each sample in a tensor without an axis beside the batch."""
        return replace(self, batch=0, merged=(False, True))

    def plain(self: W) -> W:
        """The same value with the batch first."""
        return replace(self, batch=0, merged=(False, False))
