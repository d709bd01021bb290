"""A value as lines of elements: what operators along some axes work on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.matrices import inverse
from lanner.onnx.selection import tile


@dataclass(frozen=True, slots=True)
class Lines:
    """A value whose elements along some axes stand side by side.

    Attributes:
        image: Shape (lines, elements of a line, 1).
        shape: The value's own shape.
        axes: The axes whose elements are a line, in order, counted without the batch.
    """

    image: Wire
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @staticmethod
    def of(graph: GraphBuilder, x: Wire, axes: Sequence[int]) -> Lines:
        """Add the lines of a value along axes."""
        length = math.prod(x.shape[axis] for axis in axes)
        moved = graph.transpose(x, (*_kept(x.shape, axes), *axes))
        image = graph.reshape(moved, (x.size // length, length, 1))
        return Lines(image, x.shape, tuple(axes))

    @property
    def length(self) -> int:
        """The number of elements of a line."""
        return self.image.shape[1]

    def largest(self, graph: GraphBuilder) -> Wire:
        """Add the largest element of each line: (lines, 1, 1)."""
        return graph.global_max_pool(self.image)

    def mean(self, graph: GraphBuilder) -> Wire:
        """Add the mean of each line: (lines, 1, 1)."""
        return graph.global_average_pool(self.image)

    def sum(self, graph: GraphBuilder) -> Wire:
        """Add the sum of each line: (lines, 1, 1)."""
        return graph.scale(self.mean(graph), float(self.length))

    def along(self, graph: GraphBuilder, each: Wire) -> Wire:
        """Add a value for each line, (lines, 1, 1), repeated to all of its elements."""
        return tile(graph, each, 1, self.length)

    def over(self, image: Wire) -> Lines:
        """The same lines of other elements, of this image's shape."""
        return Lines(image, self.shape, self.axes)

    def back(self, graph: GraphBuilder) -> Wire:
        """Add the value of the original shape."""
        order = (*_kept(self.shape, self.axes), *self.axes)
        apart = graph.reshape(self.image, tuple(self.shape[axis] for axis in order))
        return graph.transpose(apart, inverse(order))

    def reduced(self, graph: GraphBuilder, each: Wire, *, keepdims: bool) -> Wire:
        """Add a value for each line, (lines, 1, 1), with sides of 1 at the axes, or without them."""
        return reduced(graph, each, self.shape, self.axes, keepdims=keepdims)


def reduced(graph: GraphBuilder, x: Wire, shape: tuple[int, ...], axes: Sequence[int], *, keepdims: bool) -> Wire:
    """Add what is left of a shape, with sides of 1 at the axes, or without them; without any it is one number."""
    if keepdims:
        return graph.reshape(x, tuple(1 if axis in axes else side for axis, side in enumerate(shape)))
    kept = tuple(shape[axis] for axis in _kept(shape, axes))
    return graph.reshape(x, kept) if kept else graph.reshape(x, (1,)).as_column()


def _kept(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis in range(len(shape)) if axis not in axes)
