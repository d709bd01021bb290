"""Activations, element by element."""

from __future__ import annotations

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Relu")
def lower_relu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Relu``; the result has x's shape."""
    return graph.relu(node.wire(0))


@lowers("LeakyRelu")
def lower_leaky_relu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LeakyRelu``; the result has x's shape."""
    x = node.wire(0)
    return graph.add_node("LeakyRelu", (x,), x.shape, {"alpha": float(node.attr("alpha", 0.01))})


@lowers("PRelu")
def lower_prelu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``PRelu`` with one slope for all elements, which is ``LeakyRelu``; the result has x's shape.

    Raises:
        UnsupportedOpError: If the slopes are not constant or differ.
    """
    x, slope = node.wire(0), node.weight(1)
    if np.unique(slope).size != 1:
        raise node.unsupported("input 1", "holds several slopes; only one for all elements is supported")
    return graph.add_node("LeakyRelu", (x,), x.shape, {"alpha": float(slope.flat[0])})


@lowers("Clip")
def lower_clip(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Clip``; bounds that clip nothing in float32 count as absent.

    Fixed point clips from 0, so other bounds are moved there: ``clip(x, low, high)`` is
    ``clip(x - low, 0, high - low) + low``, and ``min(x, high)`` is ``high - max(high - x, 0)``.

    Raises:
        UnsupportedOpError: If a bound is not constant, or the lower one is above the upper one.
    """
    x = node.wire(0)
    low, high = _bound(node, 1), _bound(node, 2)
    if high is None:
        return x if low is None else _shift(graph, graph.relu(_shift(graph, x, -low)), low)
    if low is None:
        return graph.subtract_from(high, graph.relu(graph.subtract_from(high, x)))
    if low > high:
        raise node.unsupported("input 1", f"is {low:g}, above input 2, which is {high:g}")
    bounds = {"min": 0.0, "max": high - low}
    return _shift(graph, graph.add_node("Clip", (_shift(graph, x, -low),), x.shape, bounds), low)


def _shift(graph: GraphBuilder, x: Wire, distance: float) -> Wire:
    return x if distance == 0.0 else graph.add_constant(x, np.array(distance, np.float32))


def _bound(node: Node, index: int) -> float | None:
    value = node.constant(index)
    if value is None:
        return None
    bound = float(np.asarray(value, dtype=np.float64).reshape(()))
    return bound if abs(bound) < float(np.finfo(np.float32).max) else None
