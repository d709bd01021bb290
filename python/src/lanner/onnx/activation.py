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
    """Lower ``Clip``; bounds that clip nothing in float32 count as absent, and ``max(x, 0)`` alone is ``Relu``.

    Raises:
        UnsupportedOpError: If a bound is not constant.
    """
    x = node.wire(0)
    low, high = _bound(node, 1), _bound(node, 2)
    if low is None and high is None:
        return x
    if low == 0.0 and high is None:
        return graph.relu(x)
    return graph.add_node("Clip", (x,), x.shape, {"min": low, "max": high})


def _bound(node: Node, index: int) -> float | None:
    value = node.constant(index)
    if value is None:
        return None
    bound = float(np.asarray(value, dtype=np.float64).reshape(()))
    return bound if abs(bound) < float(np.finfo(np.float32).max) else None
