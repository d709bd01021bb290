"""Operators that move elements, drop some or put constants around or beside them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.batch_size import gathers_rows, names_each
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.selection import along, broadcast, pick, tile


@lowers("Transpose")
def lower_transpose(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Transpose``; the batch may go to any place, as that moves nothing within a sample.

    Raises:
        UnsupportedOpError: If it names axes that are not there.
    """
    x = node.wire(0)
    perm = [int(axis) for axis in node.attr("perm", list(range(x.rank))[::-1])]
    if sorted(perm) != list(range(x.rank)):
        raise node.unsupported("perm", f"is {perm}; an order of {x.rank} axes is needed")
    # What shares the batch's axis goes with it.
    further = sum(x.merged)
    parts = [[axis + further * (axis > x.axis)] for axis in range(x.rank)]
    parts[x.axis] = list(range(x.axis, x.axis + 1 + further))
    order = [part for axis in perm for part in parts[axis]]
    moved = graph.transpose(x, tuple(axis - (axis > x.batch) for axis in order if axis != x.batch))
    return replace(moved, batch=order.index(x.batch), merged=x.merged)


@lowers("Concat")
def lower_concat(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Concat`` of values equal on every axis but one; constants become zeros that they are then added to.

    Raises:
        UnsupportedOpError: If the shapes do not fit, or samples would be joined.
    """
    wires = [value for value in node.inputs if isinstance(value, Wire)]
    axis = sample_axis(node, wires[0], node.attr("axis", 0))
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
    starts, ends = integers(node, 1) or [], integers(node, 2) or []
    axes = integers(node, 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = integers(node, 4) or [1] * len(starts)
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
    axis = sample_axis(node, x, node.attr("axis", 0))
    count, side = len(node.proto.output), x.shape[axis]
    sizes = integers(node, 1)
    if sizes is None:
        chunk = -(-side // count)
        sizes = [min(chunk, side - first) for first in range(0, side, chunk)]
    if len(sizes) != count or sum(sizes) != side or min(sizes) < 1:
        raise node.unsupported("split", f"is {sizes}; {count} positive sizes that add up to {side} are needed")
    ends = list(itertools.accumulate(sizes))
    return tuple(graph.slice(x, along(x, axis, range(end - size, end))) for size, end in zip(sizes, ends, strict=True))


@lowers("Gather")
def lower_gather(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Gather`` of constant indices, in any order and number, to slices that are joined.

    Indices into rows of all samples must name the same rows of each sample, as `gathers_rows` finds.

    Raises:
        UnsupportedOpError: If the indices are not constant, none, or beyond the axis, or samples are picked.
    """
    x = node.wire(0)
    if gathers_rows(node):
        places = np.asarray(node.constant(1))[0]
        rows = pick(graph, x.apart(), 0, np.ravel(places).tolist())
        return graph.reshape(rows, (*places.shape, *x.shape[1:]))
    axis = sample_axis(node, x, node.attr("axis", 0))
    indices = np.asarray(node.constant(1))
    side = x.shape[axis]
    listed = [int(index) for index in np.ravel(indices)]
    if not listed or not all(-side <= index < side for index in listed):
        raise node.unsupported("input 1", f"is {listed}; indices below {side} are needed")
    picked = pick(graph, x, axis, [index % side for index in listed])
    if indices.ndim == 0 and len(x.shape) == 1:
        return picked.as_column()
    return graph.reshape(picked, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


@lowers("GatherND")
def lower_gather_nd(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GatherND`` of constant indices into axes in front of the batch, or behind it.

    Shapes: x (..., k of these axes, ...), indices (..., k); the result has the indices' other axes in place of the k.
    Behind the batch are those with ``batch_dims`` 1, and those that name for each sample itself, as masks of
    transformers do.

    Raises:
        UnsupportedOpError: If the indices are not constant, go beyond an axis, or pick samples.
    """
    x, ahead = node.wire(0), int(node.attr("batch_dims", 0))
    indices = np.asarray(node.constant(1))
    if not ahead and x.batch == 0 and _names_itself(node, indices):
        ahead, indices = 1, indices[..., 1:]
    depth = indices.shape[-1] if indices.ndim else 0
    behind = ahead == 1 and x.batch == 0 and indices.shape[0] == BATCH and depth <= len(x.shape)
    if any(x.merged) or depth < 1 or not (behind or (ahead == 0 and depth <= x.batch)):
        raise node.unsupported("input 1", f"picks among the samples of {x.batch_shape}; samples must stay apart")
    sides, rest = x.shape[:depth], x.shape[depth:]
    places = indices[0] if ahead else indices
    if not all(((-side <= at) & (at < side)).all() for at, side in zip(np.moveaxis(places, -1, 0), sides, strict=True)):
        raise node.unsupported("input 1", f"goes beyond axes of {sides}")
    flat = np.ravel_multi_index([places[..., axis] % side for axis, side in enumerate(sides)], sides)
    picked = pick(graph, graph.reshape(x, (math.prod(sides), *rest)), 0, np.ravel(flat).tolist())
    whole = graph.reshape(picked, (*places.shape[:-1], *rest))
    return replace(whole, batch=0 if ahead else x.batch - depth + places.ndim - 1)


def _names_itself(node: Node, indices: NDArray[np.generic]) -> bool:
    """Whether indices name samples, each one itself, or the only one where the file fixes a batch of one."""
    if indices.ndim < 2 or indices.shape[-1] < 2:
        return False
    if node.for_two is None:
        return not indices[..., 0].any()
    return names_each(indices, node.for_two.get(node.proto.input[1]))


@lowers("ScatterND")
def lower_scatter_nd(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ScatterND`` of constant indices in a file of one sample; the result has the shape of what is written to.

    Shapes: data (1, ...) or constant, indices (..., k) whose first is 0, updates or a constant for them.

    Raises:
        UnsupportedOpError: If the indices are not constant or go beyond an axis, samples may be several, or numbers
            are added to those that are there.
    """
    node.require("reduction", "none")
    indices = np.asarray(node.constant(1)).astype(np.int64)
    data, updates = (value if isinstance(value, Wire) else np.asarray(value) for value in node.inputs[::2])
    if any(isinstance(value, Wire) and (value.batch or any(value.merged)) for value in (data, updates)):
        raise node.unsupported("inputs", "must have samples first, alone on their axis", "transpose them before")
    if node.for_two is not None or indices.shape[-1] < 1 or indices[..., 0].any():
        fix = "export the model with a batch of 1"
        raise node.unsupported("input 1", "names samples, of which there may be several", fix)
    shape = data.with_batch(BATCH) if isinstance(data, Wire) else data.shape
    sides = shape[: indices.shape[-1]]
    if not all(
        ((-side <= at) & (at < side)).all() for at, side in zip(np.moveaxis(indices, -1, 0), sides, strict=True)
    ):
        raise node.unsupported("input 1", f"goes beyond axes of {sides}")
    # Where each element of the result is: among the data, or behind them among the updates.
    size = math.prod(shape)
    places = np.arange(size).reshape(shape)
    count = math.prod((*indices.shape[:-1], *shape[len(sides) :]))
    written = np.arange(size, size + count).reshape(*indices.shape[:-1], *shape[len(sides) :])
    places[tuple(np.moveaxis(indices, -1, 0))] = written
    chosen = places.ravel()
    given = [(data, chosen < size), (updates, chosen >= size)]
    known = np.concatenate([np.zeros(each.size) if isinstance(each, Wire) else np.ravel(each) for each, _ in given])
    if all(isinstance(each, Wire) for each, _ in given):
        parts = tuple(graph.reshape(each, (each.size,)) for each, _ in given if isinstance(each, Wire))
        return graph.reshape(pick(graph, graph.concat(parts, 0), 0, chosen.tolist()), shape[1:])
    wire, from_wire = next((each, kept) for each, kept in given if isinstance(each, Wire))
    # A zero behind the secret stands where constants go.
    padded = graph.pad(graph.reshape(wire, (wire.size,)), (0,), (1,))
    behind = 0 if isinstance(data, Wire) else size
    picked = pick(graph, padded, 0, np.where(from_wire, chosen - behind, wire.size).tolist())
    terms = np.where(from_wire, 0.0, known[chosen]).astype(np.float32)
    return graph.reshape(graph.add_constant(picked, terms), shape[1:])


@lowers("Expand")
def lower_expand(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Expand`` to a constant shape: axes of one element are repeated.

    Raises:
        UnsupportedOpError: If the shape is not constant, does not fit, or repeats samples.
    """
    x, wanted = node.wire(0), tuple(integers(node, 1) or [])
    source = (BATCH, *x.shape)
    try:
        shape = np.broadcast_shapes(source, wanted)
    except ValueError:
        shape = ()
    if len(shape) != len(source) or shape[0] != BATCH or 0 in shape:
        raise node.unsupported("shape", f"turns {x.batch_shape} into {wanted}; samples must stay apart")
    return broadcast(graph, x, shape[1:])


@lowers("Tile")
def lower_tile(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Tile`` with constant repeats to joins of the value with itself.

    Raises:
        UnsupportedOpError: If the repeats are not constant, not one from 1 for each axis, or repeat samples.
    """
    x, times = node.wire(0), integers(node, 1) or []
    if len(times) != len(x.shape) + 1 or times[0] != 1 or min(times) < 1:
        raise node.unsupported("repeats", f"is {times}; samples must stay apart, and something must be left")
    for axis, count in enumerate(times[1:]):
        x = tile(graph, x, axis, count)
    return x


def sample_axis(node: Node, x: Wire, axis: int, fix: str = "") -> int:
    """An axis, counted without the batch."""
    rank = len(x.shape) + 1
    if not -rank <= axis < rank or axis % rank == 0:
        raise node.unsupported("axis", f"is {axis}; samples must stay apart", fix)
    return axis % rank - 1


def integers(node: Node, index: int) -> list[int] | None:
    """A constant input as a list of integers; None where it is absent."""
    value = node.constant(index)
    return None if value is None else [int(number) for number in np.ravel(np.asarray(value))]
