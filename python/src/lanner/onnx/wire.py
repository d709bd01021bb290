"""A value of the network as lowerings see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wire:
    """A tensor computed from the secret input: the graph node that yields it, and its shape without a batch axis.

    Attributes:
        name: The node's name.
        shape: The shape of one sample.
        batch: Which axis of the ONNX tensor the batch is.
    """

    name: str
    shape: tuple[int, ...]
    batch: int = field(default=0, kw_only=True)

    @property
    def size(self) -> int:
        """The number of elements of one sample."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def batch_shape(self) -> str:
        """The shape with its batch axis, as messages show it."""
        return f"({', '.join(map(str, self.with_batch('n')))})"

    def with_batch(self, size: T) -> tuple[int | T, ...]:
        """The shape with its batch axis, of a given size."""
        return (*self.shape[: self.batch], size, *self.shape[self.batch :])
