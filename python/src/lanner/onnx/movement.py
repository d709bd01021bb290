"""Operators that move elements, drop some or add zeros, and compute nothing."""

from __future__ import annotations

import itertools

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Transpose")
def lower_transpose(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Transpose``.

    Raises:
        UnsupportedOpError: If the batch axis does not stay first.
    """
    x = node.wire(0)
    rank = len(x.shape) + 1
    order = [int(axis) for axis in node.attr("perm", list(range(rank))[::-1])]
    if sorted(order) != list(range(rank)) or order[0] != 0:
        raise node.unsupported("perm", f"is {order}; the batch must stay first")
    return graph.transpose(x, tuple(axis - 1 for axis in order[1:]))


@lowers("Concat")
def lower_concat(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Concat`` of values computed from the secret, equal on every axis but one.

    Raises:
        UnsupportedOpError: If an input is constant, the shapes do not fit, or samples would be joined.
    """
    wires = tuple(node.wire(index) for index in range(len(node.inputs)))
    axis = _sample_axis(node, wires[0], node.attr("axis", 0))
    others = {(*wire.shape[:axis], *wire.shape[axis + 1 :]) for wire in wires}
    if len(others) > 1 or len({len(wire.shape) for wire in wires}) > 1:
        raise node.unsupported("inputs", f"have shapes {[wire.shape for wire in wires]}; they must fit along the axis")
    return wires[0] if len(wires) == 1 else graph.concat(wires, axis)


@lowers("Slice")
def lower_slice(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Slice`` with constant bounds.

    Raises:
        UnsupportedOpError: If a bound is not constant, nothing is left, or samples are picked.
    """
    x = node.wire(0)
    starts, ends = _integers(node, 1) or [], _integers(node, 2) or []
    axes = _integers(node, 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = _integers(node, 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.unsupported("axes", "differs in length from starts, ends or steps")
    picks = [range(side) for side in (BATCH, *x.shape)]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise node.unsupported("steps", "holds 0")
        if not -len(picks) <= axis < len(picks):
            raise node.unsupported("axes", f"is {axis}, of {len(picks)} axes")
        picks[axis] = range(*slice(start, end, step).indices(len(picks[axis])))
        if not picks[axis]:
            raise node.unsupported("ends", f"leaves nothing of axis {axis}")
    if picks[0].step != 1:
        raise node.unsupported("steps", f"is {picks[0].step} on the batch; samples must stay apart")
    return graph.slice(x, tuple(picks[1:]))


@lowers("Split")
def lower_split(node: Node, graph: GraphBuilder) -> tuple[Wire, ...]:
    """Lower ``Split`` to one slice per output.

    Raises:
        UnsupportedOpError: If the sizes are not constant or do not add up, or samples would be parted.
    """
    x = node.wire(0)
    axis = _sample_axis(node, x, node.attr("axis", 0))
    count, side = len(node.proto.output), x.shape[axis]
    sizes = _integers(node, 1)
    if sizes is None:
        chunk = -(-side // count)
        sizes = [min(chunk, side - first) for first in range(0, side, chunk)]
    if len(sizes) != count or sum(sizes) != side or min(sizes) < 1:
        raise node.unsupported("split", f"is {sizes}; {count} positive sizes that add up to {side} are needed")
    ends = list(itertools.accumulate(sizes))
    whole = tuple(range(side) for side in x.shape)
    return tuple(
        graph.slice(x, (*whole[:axis], range(end - size, end), *whole[axis + 1 :]))
        for size, end in zip(sizes, ends, strict=True)
    )


@lowers("Gather")
def lower_gather(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Gather`` of one constant index, or of several at equal distances, to a slice.

    Raises:
        UnsupportedOpError: If the indices are not constant or not at equal distances, or samples are picked.
    """
    x = node.wire(0)
    axis = _sample_axis(node, x, node.attr("axis", 0))
    indices = np.asarray(node.constant(1))
    side = x.shape[axis]
    listed = [int(index) for index in np.ravel(indices)]
    if indices.ndim > 1 or not listed or not all(-side <= index < side for index in listed):
        raise node.unsupported("input 1", f"is {listed}; indices below {side} in one row are needed")
    pick = _as_range([index % side for index in listed])
    if pick is None:
        raise node.unsupported("input 1", f"is {listed}; the indices must be at equal distances")
    whole = tuple(range(side) for side in x.shape)
    sliced = graph.slice(x, (*whole[:axis], pick, *whole[axis + 1 :]))
    if indices.ndim == 1:
        return sliced
    if len(x.shape) == 1:
        raise node.unsupported("input 1", "is a scalar, which leaves no axis; gather a list of one index")
    return graph.reshape(sliced, (*sliced.shape[:axis], *sliced.shape[axis + 1 :]))


@lowers("Pad")
def lower_pad(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Pad`` with zeros; negative pads cut off first.

    Raises:
        UnsupportedOpError: If the mode is not ``constant``, the value is not 0, samples are added, or nothing is left.
    """
    node.require("mode", "constant")
    x = node.wire(0)
    value = node.constant(2)
    if value is not None and np.any(value):
        raise node.unsupported("constant_value", f"is {np.ravel(value)[0]}; only 0 is supported")
    before, after = _pads(node, len(x.shape) + 1)
    if before[0] or after[0]:
        raise node.unsupported("pads", "adds samples to the batch")
    kept = tuple(
        range(max(-low, 0), side - max(-high, 0))
        for low, side, high in zip(before[1:], x.shape, after[1:], strict=True)
    )
    if not all(kept):
        raise node.unsupported("pads", f"leaves nothing of {x.shape}")
    zeros = [tuple(max(pad, 0) for pad in pads[1:]) for pads in (before, after)]
    return graph.pad(graph.slice(x, kept), zeros[0], zeros[1])


def _pads(node: Node, rank: int) -> tuple[list[int], list[int]]:
    """Pads before and after, per axis, with the batch axis."""
    pads, axes = _integers(node, 1) or [], _integers(node, 3)
    axes = list(range(rank)) if axes is None else axes
    if len(pads) != 2 * len(axes) or not all(-rank <= axis < rank for axis in axes):
        raise node.unsupported("pads", f"is {pads}; two numbers per axis are needed")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[len(axes) + position]
    return before, after


def _as_range(indices: list[int]) -> range | None:
    """The range that yields the indices, or None."""
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    if step == 0:
        return None
    pick = range(indices[0], indices[0] + step * len(indices), step)
    return pick if list(pick) == indices else None


def _sample_axis(node: Node, x: Wire, axis: int) -> int:
    """An axis, counted without the batch."""
    rank = len(x.shape) + 1
    if not -rank <= axis < rank or axis % rank == 0:
        raise node.unsupported("axis", f"is {axis}; samples must stay apart")
    return axis % rank - 1


def _integers(node: Node, index: int) -> list[int] | None:
    value = node.constant(index)
    return None if value is None else [int(number) for number in np.ravel(np.asarray(value))]
