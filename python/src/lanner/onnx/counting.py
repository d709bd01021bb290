"""Sums of all elements up to each place, and tables of what they count: the numbers of a text's tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lookup import Bits, Embedded, Indices, Lookup, Opsets, check_finite, of_truth, rows_product
from lanner.onnx.movement import integers, sample_axis
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.selection import along, broadcast


@lowers("CumSum")
def lower_cumulative_sum(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``CumSum``: sums of 1, 2, 4, ... elements up to each place, which parties add on their own shares.

    Shapes: the result has x's shape.

    Raises:
        UnsupportedOpError: If the axis is not constant, or samples would be added up.
    """
    x = node.wire(0)
    axes = integers(node, 1)
    if axes is None or len(axes) != 1:
        raise node.unsupported("axis", "is not a constant")
    axis = sample_axis(node, x, axes[0])
    return _sums(graph, x, axis, is_reverse=bool(node.attr("reverse", 0)), is_exclusive=bool(node.attr("exclusive", 0)))


def _sums(graph: GraphBuilder, x: Wire, axis: int, *, is_reverse: bool, is_exclusive: bool) -> Wire:
    side = x.shape[axis]

    def moved(y: Wire, by: int) -> Wire:
        """The elements so many places further, behind zeros."""
        kept = range(by, side) if is_reverse else range(side - by)
        zeros = tuple(by if place == axis else 0 for place in range(len(y.shape)))
        nothing = (0,) * len(y.shape)
        before, after = (nothing, zeros) if is_reverse else (zeros, nothing)
        return replace(graph.pad(graph.slice(y, along(y, axis, kept)), before, after), batch=y.batch)

    sums, added = x, 1
    while added < side:
        sums = replace(graph.add(sums, moved(sums, added)), batch=x.batch)
        added *= 2
    if is_exclusive:
        return moved(sums, 1) if side > 1 else graph.subtract(x, x)
    return sums


@dataclass(frozen=True, slots=True)
class Counted(Indices):
    """What follows, at each place of a line, from its truth value and from how many hold up to it.

    The choices are these numbers where the value there does not hold, then where it does. As `Indices`, but that the
    value is computed: what a table says of it is made of comparisons, as many as the table has different rows.

    Attributes:
        source: The numbers, and the `stride` more where the truth value holds: shape (length, 1).
        counts: The numbers alone, of the same shape.
        stride: The choices of the numbers.
        truths: The truth values that were counted.
        least: The least number where the truth value holds: 1 where it counts itself. Where it does not hold, the
            largest is one less than the length.
    """

    counts: Wire
    truths: Lookup
    least: int

    @property
    def is_counted(self) -> bool:
        """It is."""
        return True

    @property
    def stride(self) -> int:
        """The choices of the numbers."""
        return len(self.table) // 2

    @staticmethod
    def of(node: Node, inputs: Sequence[object], graph: GraphBuilder) -> Counted | None:
        """What a ``CumSum`` of truth values of one line makes; None of anything else."""
        truths, axis = inputs[0], inputs[1] if len(inputs) > 1 else None
        if isinstance(truths, Embedded | Counted) or not isinstance(truths, Indices | Bits):
            return None
        holds = truths.bits(graph)
        is_line = holds is not None and len(holds.shape) == 1
        if holds is None or not is_line or not isinstance(axis, np.ndarray) or axis.ravel().tolist() not in ([1], [-1]):
            return None
        (length,) = holds.shape
        counts = _sums(
            graph, holds, 0, is_reverse=bool(node.attr("reverse", 0)), is_exclusive=bool(node.attr("exclusive", 0))
        )
        both, stride = holds, 1
        while stride <= length:
            both, stride = graph.add(both, both), 2 * stride
        both = graph.add(both, counts)
        columns = [graph.reshape(each, (length, 1)) for each in (both, counts)]
        kind = truths.table.dtype if isinstance(truths, Indices) else truths.pair.dtype
        # Choices that nothing makes are as the next one that something does.
        least = 0 if node.attr("exclusive", 0) else 1
        possible = ([0, length - 1], [least, length - 1 + least])
        table = np.concatenate([np.clip(np.arange(stride), low, high) for low, high in possible])
        table = table.astype(np.int64 if kind == np.bool_ else kind)
        return Counted(columns[0], (length,), table, columns[1], truths, least)

    def retold(self, other: Lookup) -> Lookup | None:
        """What the same truth values choose, told of these numbers; None of other elements."""
        if isinstance(other, Counted):
            return other if other.source == self.source and other.table.ndim == self.table.ndim else None
        if self.table.ndim > 1 or self.shape != self.truths.stand_in.shape[: len(self.shape)]:
            return None
        pair = of_truth(self.truths, other)
        return None if pair is None else replace(self, table=np.repeat(pair, self.stride))

    def viewed(self, node: Node, inputs: Sequence[object], opsets: Opsets, graph: GraphBuilder) -> Indices | None:
        """The same elements in another shape."""
        found = Indices.viewed(self, node, inputs, opsets, graph)
        if not isinstance(found, Counted) or found.shape == self.shape:
            return found
        return replace(found, counts=graph.reshape(self.counts, (*found.shape, 1)))

    def materialised(self, graph: GraphBuilder) -> Wire:
        """What is looked up, as a value of the network."""
        table = self.table.astype(np.float32)
        check_finite(table, self.source)
        length = math.prod(self.shape)
        rows = table.reshape(len(table), -1)
        first, second = np.split(rows, 2)
        # Where all numbers that both have stand for the same, the number alone says which.
        same = np.array_equal(first[self.least : length], second[self.least : length])
        value, rows = (self.counts, np.concatenate([first[:length], second[length:]])) if same else (self.source, rows)
        value = graph.reshape(value, (length, 1))
        ends = np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1
        count = len(ends)
        if not count:
            constant = np.broadcast_to(rows[0], (length, rows.shape[1])).astype(np.float32)
            nothing = graph.subtract(value, value)
            y = graph.add_constant(broadcast(graph, nothing, constant.shape), constant)
            return graph.reshape(y, (*self.shape, *table.shape[1:]))
        # Twice the number and an odd one are whole where the number is: no unit lies between them.
        twice = broadcast(graph, graph.add(value, value), (length, count))
        above = graph.step(graph.add_constant(twice, 1.0 - 2.0 * ends.astype(np.float32)))
        following = graph.pad(graph.slice(above, (range(length), range(1, count))), (0, 0), (0, 1))
        within = graph.subtract(above, following) if count > 1 else above
        y = rows_product(graph, within, rows[ends] - rows[:1])
        y = graph.add_constant(y, rows[:1]) if rows[0].any() else y
        return graph.reshape(y, (*self.shape, *table.shape[1:]))
