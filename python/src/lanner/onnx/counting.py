"""Sums of all elements up to each place, and tables of what they count: the numbers of a text's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lookup import Bits, Embedded, Indices, Lookup, of_truth, rows_product
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
        counts: The numbers alone, shape (length, 1).
        stride: The choices of the numbers.
        truths: The truth values that were counted.
    """

    counts: Wire
    truths: Lookup

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
        # Places hold at most as many as there are; other numbers are choices that nothing makes.
        table = np.tile(np.minimum(np.arange(stride), length), 2).astype(np.int64 if kind == np.bool_ else kind)
        return Counted(columns[0], (length,), table, columns[1], truths)

    def retold(self, other: Lookup) -> Lookup | None:
        """What the same truth values choose, told of these numbers; None of other elements."""
        if isinstance(other, Counted):
            return other if other.source == self.source and other.table.ndim == self.table.ndim else None
        if self.table.ndim > 1:
            return None
        pair = of_truth(self.truths, other)
        return None if pair is None else replace(self, table=np.repeat(pair, self.stride))

    def materialised(self, graph: GraphBuilder) -> Wire:
        """What is looked up, as a value of the network."""
        table = self.table.astype(np.float32)
        rows = table.reshape(len(table), -1)
        first, second = np.split(rows, 2)
        value, rows = (self.counts, first) if np.array_equal(first, second) else (self.source, rows)
        ends = np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1
        (length,), count = self.shape, len(ends)
        if not count:
            constant = np.broadcast_to(rows[0], (length, rows.shape[1])).astype(np.float32)
            nothing = graph.subtract(value, value)
            y = graph.add_constant(broadcast(graph, nothing, constant.shape), constant)
            return graph.reshape(y, (*self.shape, *table.shape[1:]))
        above = graph.step(graph.add_constant(broadcast(graph, value, (length, count)), 0.5 - ends.astype(np.float32)))
        following = graph.pad(graph.slice(above, (range(length), range(1, count))), (0, 0), (0, 1))
        within = graph.subtract(above, following) if count > 1 else above
        y = rows_product(graph, within, rows[ends] - rows[:1])
        y = graph.add_constant(y, rows[:1]) if rows[0].any() else y
        return graph.reshape(y, (*self.shape, *table.shape[1:]))
