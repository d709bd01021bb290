"""Operators that move elements, drop some or put constants around or beside them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    """Lower ``Concat`` of values equal on every axis but one; constants become zeros that they are then added to.

    Raises:
        UnsupportedOpError: If the shapes do not fit, or samples would be joined.
    """
    wires = [value for value in node.inputs if isinstance(value, Wire)]
    axis = _sample_axis(node, wires[0], node.attr("axis", 0))
    parts = [
        value if isinstance(value, Wire) else _without_batch(node, index) for index, value in enumerate(node.inputs)
    ]
    shapes = [part.shape for part in parts]
    if len({len(shape) for shape in shapes}) > 1 or len({(*s[:axis], *s[axis + 1 :]) for s in shapes}) > 1:
        raise node.unsupported("inputs", f"have shapes {shapes}; they must fit along the axis")
    if len(wires) == len(parts):
        return wires[0] if len(wires) == 1 else graph.concat(tuple(wires), axis)
    return _concat_with_constants(graph, parts, axis)


def _concat_with_constants(graph: GraphBuilder, parts: Sequence[Wire | NDArray[np.float32]], axis: int) -> Wire:
    """Constants are zeros around the wire before them, or the first, to which they are added when all is joined."""
    first = next(index for index, part in enumerate(parts) if isinstance(part, Wire))
    rank = len(parts[first].shape)
    joined: list[Wire] = []
    for index, part in enumerate(parts):
        if isinstance(part, Wire):
            ahead = sum(constant.shape[axis] for constant in parts[:first]) if index == first else 0
            joined.append(graph.pad(part, _along(axis, rank, ahead), (0,) * rank))
        elif index > first:
            joined[-1] = graph.pad(joined[-1], (0,) * rank, _along(axis, rank, part.shape[axis]))
    whole = graph.concat(tuple(joined), axis) if len(joined) > 1 else joined[0]
    terms = [np.zeros(part.shape, np.float32) if isinstance(part, Wire) else part for part in parts]
    return graph.add_constant(whole, np.concatenate(terms, axis))


def _along(axis: int, rank: int, count: int) -> tuple[int, ...]:
    return tuple(count if position == axis else 0 for position in range(rank))


def _without_batch(node: Node, index: int) -> NDArray[np.float32]:
    value = node.weight(index)
    if value.ndim < 2 or value.shape[0] != BATCH:
        raise node.unsupported(f"input {index}", f"has shape {value.shape}; a constant must fit a batch of one")
    return np.asarray(value[0], np.float32)


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
    """Lower ``Pad`` with a constant; negative pads cut off first, and another constant than 0 is added to the zeros.

    Raises:
        UnsupportedOpError: If the mode is not ``constant``, samples are added, or nothing is left.
    """
    node.require("mode", "constant")
    x = node.wire(0)
    value = 0.0 if node.constant(2) is None else float(node.weight(2).reshape(()))
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
    padded = graph.pad(graph.slice(x, kept), zeros[0], zeros[1])
    if value == 0.0 or not any(zeros[0] + zeros[1]):
        return padded
    inside = np.zeros([len(side) for side in kept], np.float32)
    return graph.add_constant(padded, np.pad(inside, list(zip(*zeros, strict=True)), constant_values=value))


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
