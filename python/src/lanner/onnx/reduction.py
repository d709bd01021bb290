"""Sums, means and maxima along axes of a sample."""

from __future__ import annotations

import math

import numpy as np

from lanner.onnx.activation import absolute
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.exponentials import Exponentials
from lanner.onnx.lines import Lines, reduced
from lanner.onnx.node import Node
from lanner.onnx.pairing import product
from lanner.onnx.powers import power
from lanner.onnx.registry import lowers

#: The most elements whose product is taken.
_MOST_FACTORS = 16


@lowers("ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL1")
def lower_reduce_sum(node: Node, graph: GraphBuilder) -> Wire:
    """Lower sums along axes, of the elements, their squares or their magnitudes, and means: a pool over all of them.

    Shapes: x (...); the result has sides of 1 at the axes, or lacks them without ``keepdims``.

    Raises:
        UnsupportedOpError: If the axes are not constant, or samples would be mixed.
    """
    x, axes = node.wire(0), _axes(node)
    if node.operator == "ReduceSumSquare":
        x = graph.square(x)
    elif node.operator == "ReduceL1":
        x = absolute(graph, x)
    if not axes:
        return x
    if node.operator == "ReduceMean":
        return reduced(graph, graph.global_average_pool(_columns(graph, x, axes)), x.shape, axes, keepdims=_keeps(node))
    return reduced(graph, sum_along(graph, x, axes), x.shape, axes, keepdims=_keeps(node))


@lowers("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
def lower_reduce_root(node: Node, graph: GraphBuilder) -> Wire:
    """Lower functions of sums along axes: roots of sums of squares, logarithms of sums, and of sums of exponentials.

    Shapes: x (...); the result has sides of 1 at the axes, or lacks them without ``keepdims``.

    Raises:
        UnsupportedOpError: If the axes are not constant, or samples would be mixed.
    """
    x, axes = node.wire(0), _axes(node)
    if not axes:
        return _of_each(node, graph, x)
    lines = Lines.of(graph, x, axes)
    if node.operator == "ReduceL2":
        each = power(graph, lines.over(graph.square(lines.image)).sum(graph), 0.5)
    elif node.operator == "ReduceLogSum":
        each = graph.function(lines.sum(graph), "Log")
    else:
        each = Exponentials.of(graph, lines).total(graph) if lines.length > 1 else lines.image
    return lines.reduced(graph, each, keepdims=_keeps(node))


def _of_each(node: Node, graph: GraphBuilder, x: Wire) -> Wire:
    """What a reduction makes of each element where no axis is reduced."""
    if node.operator == "ReduceL2":
        return absolute(graph, x)
    return graph.function(x, "Log") if node.operator == "ReduceLogSum" else x


@lowers("ReduceMax", "ReduceMin")
def lower_reduce_max(node: Node, graph: GraphBuilder) -> Wire:
    """Lower the largest or the smallest along axes: a pool over all of them.

    Shapes: x (...); the result has sides of 1 at the axes, or lacks them without ``keepdims``.

    Raises:
        UnsupportedOpError: If the axes are not constant, or samples would be mixed.
    """
    x, axes = node.wire(0), _axes(node)
    if not axes:
        return x
    if node.operator == "ReduceMax":
        return reduced(graph, graph.global_max_pool(_columns(graph, x, axes)), x.shape, axes, keepdims=_keeps(node))
    largest = graph.global_max_pool(_columns(graph, graph.negate(x), axes))
    return reduced(graph, graph.negate(largest), x.shape, axes, keepdims=_keeps(node))


@lowers("ReduceProd")
def lower_reduce_product(node: Node, graph: GraphBuilder) -> Wire:
    """Lower products along axes: of halves, again and again.

    Shapes: x (...); the result has sides of 1 at the axes, or lacks them without ``keepdims``.

    Raises:
        UnsupportedOpError: If the axes are not constant, samples would be mixed, or many elements are multiplied.
    """
    x, axes = node.wire(0), _axes(node)
    if not axes:
        return x
    lines = Lines.of(graph, x, axes)
    count, length = lines.image.shape[0], lines.length
    if length > _MOST_FACTORS:
        raise node.unsupported("axes", f"hold {length} elements, and {_MOST_FACTORS} are multiplied at most")
    rows = graph.reshape(lines.image, (count, length))
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        parts = [graph.slice(rows, (range(count), picked)) for picked in (range(half), range(half, 2 * half))]
        whole = product(graph, parts[0], parts[1])
        left = range(2 * half, rows.shape[1])
        rows = graph.concat((whole, graph.slice(rows, (range(count), left))), 1) if left else whole
    return lines.reduced(graph, graph.reshape(rows, (count, 1, 1)), keepdims=_keeps(node))


def sum_along(graph: GraphBuilder, x: Wire, axes: list[int]) -> Wire:
    """Add the sums along one axis or more; the result is (c, 1, 1), with a channel for each element that is kept."""
    mean = graph.global_average_pool(_columns(graph, x, axes))
    return graph.scale(mean, float(math.prod(x.shape[axis] for axis in axes)))


def _axes(node: Node) -> list[int]:
    """The axes, counted without the batch, in order; empty where nothing is reduced."""
    x = node.wire(0)
    rank = len(x.shape) + 1
    listed = node.constant(1) if len(node.inputs) > 1 else None
    axes = list(node.attr("axes", [])) if listed is None else np.ravel(np.asarray(listed)).tolist()
    if not axes and node.attr("noop_with_empty_axes", 0):
        return []
    if not axes or not all(-rank <= axis < rank and axis % rank for axis in axes):
        raise node.unsupported("axes", f"is {axes or 'absent'}; samples must stay apart")
    return sorted({axis % rank - 1 for axis in axes})


def _keeps(node: Node) -> bool:
    return bool(node.attr("keepdims", 1))


def _columns(graph: GraphBuilder, x: Wire, axes: list[int]) -> Wire:
    """An image of one channel for each result, which holds what is reduced to it."""
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    if kept == [0] and len(axes) < 3:
        return graph.image(x)
    moved = graph.transpose(x, (*kept, *axes))
    if len(kept) == 1 and len(axes) == 2:
        return moved
    channels = math.prod(x.shape[axis] for axis in kept)
    return graph.reshape(moved, (channels, x.size // channels, 1))
