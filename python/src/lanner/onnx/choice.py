"""Choices between values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.chosen import chosen_by, is_bounded
from lanner.onnx.node import Node
from lanner.onnx.operands import add_term, aligned
from lanner.onnx.registry import lowers
from lanner.onnx.selection import along, broadcast

#: The most pieces that a choice among two secrets is joined of; of more it is a sum of products.
_PIECES = 64


@lowers("Where")
def lower_where(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Where``; the result has the shape to which all broadcast.

    By a constant condition pieces of two secrets are joined; a constant is added where it is chosen, and the secret is
    multiplied by 0 there. By a secret condition it is one product, or the maximum or the bent line that it is.
    """
    if isinstance(node.inputs[0], Wire):
        shape, constants = aligned(node, unbounded=True)
        known = iter(constants)
        first, second = (value if isinstance(value, Wire) else next(known) for value in node.inputs[1:])
        for index, value in enumerate((first, second), 1):
            if isinstance(value, np.ndarray) and np.isnan(value).any():
                raise node.not_finite(index)
            if not is_bounded(value):
                what = "holds a number that hides what it replaces, which only a Softmax may read"
                raise node.unsupported(f"input {index}", what, "export the model with a number of its own size")
        return chosen_by(graph, node.inputs[0], first, second, shape)
    shape, (condition, *constants) = aligned(node, unbounded=True)
    secrets = [broadcast(graph, value, shape) for value in node.inputs if isinstance(value, Wire)]
    chosen = np.broadcast_to(condition != 0.0, shape)
    if len(secrets) == 2:
        return _joined(graph, secrets[0], secrets[1], chosen)
    (x,), (value,) = secrets, constants
    if not isinstance(node.inputs[1], Wire):
        chosen = ~chosen
    if chosen.all():
        return x
    undefined = graph.undefined(x)
    kept = graph.multiply_constant(x, _small(chosen).astype(np.float32))
    if undefined is not None and not (undefined & chosen).any():
        graph.leaves_out(kept)
    elif undefined is not None:
        graph.note_undefined(kept, undefined & chosen)
    terms = np.where(chosen, np.float32(0.0), np.broadcast_to(value, shape))
    return add_term(node, graph, kept, _small(terms)) if terms.any() else kept


@lowers("IsNaN", "IsInf")
def lower_is_nan(node: Node, graph: GraphBuilder) -> NDArray[np.bool_]:
    """Lower ``IsNaN`` and ``IsInf``: private values are finite, but where a mask hides a whole row.

    Returns:
        Shape (1, *x), or with the batch's 1 where x has it.
    """
    x = node.wire(0)
    undefined = graph.undefined(x) if node.operator == "IsNaN" else None
    if undefined is None:
        return np.zeros(x.with_batch(1), np.bool_)
    return np.expand_dims(undefined, x.batch).reshape(x.with_batch(1))


def _joined(graph: GraphBuilder, x: Wire, y: Wire, chosen: NDArray[np.bool_]) -> Wire:
    """Add x where it is chosen, and y elsewhere: pieces of both beside each other."""
    if _pieces(chosen) <= _PIECES:
        return _pieced(graph, x, y, chosen)
    ones = _small(chosen).astype(np.float32)
    return graph.add(graph.multiply_constant(x, ones), graph.multiply_constant(y, 1.0 - ones))


def _pieced(graph: GraphBuilder, x: Wire, y: Wire, chosen: NDArray[np.bool_]) -> Wire:
    if chosen.all() or not chosen.any():
        return x if chosen.all() else y
    axis, runs = _shortest(chosen)
    parts = []
    for run in runs:
        first, second = (graph.slice(wire, along(wire, axis, run)) for wire in (x, y))
        parts.append(_pieced(graph, first, second, np.take(chosen, run, axis)))
    return graph.concat(tuple(parts), axis)


def _pieces(chosen: NDArray[np.bool_]) -> int:
    """How many pieces a choice is made of, as `_pieced` cuts it, or more than `_PIECES`."""
    if chosen.all() or not chosen.any():
        return 1
    axis, runs = _shortest(chosen)
    if len(runs) > _PIECES:
        return len(runs)
    return sum(_pieces(np.take(chosen, run, axis)) for run in runs)


def _shortest(chosen: NDArray[np.bool_]) -> tuple[int, Sequence[range]]:
    """The axis along which the choice changes least often, and the ranges in which it stays."""
    found: list[tuple[int, list[range]]] = []
    for axis, side in enumerate(chosen.shape):
        rows = np.moveaxis(chosen, axis, 0).reshape(side, -1)
        ends = [0, *(np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1).tolist(), side]
        if len(ends) > 2:
            found.append((axis, [range(first, end) for first, end in itertools.pairwise(ends)]))
    return min(found, key=lambda each: len(each[1]))


def _small(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Values with one element along the axes where they repeat."""
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if (values == first).all():
            values = first
    return values
