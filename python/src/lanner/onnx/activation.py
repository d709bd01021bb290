"""Activations, element by element."""

from __future__ import annotations

import numpy as np

from lanner.onnx.bends import bend, sloped
from lanner.onnx.bounds import at_least, at_most, between
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.powers import never_negative
from lanner.onnx.registry import lowers


@lowers("Relu")
def lower_relu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Relu``; the result has x's shape."""
    return at_least(graph, node.wire(0), np.zeros((), np.float32))


@lowers("LeakyRelu")
def lower_leaky_relu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LeakyRelu``; the result has x's shape."""
    return sloped(graph, node.wire(0), float(node.attr("alpha", 0.01)))


@lowers("PRelu")
def lower_prelu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``PRelu``, which is ``LeakyRelu`` where all slopes are one; the result has x's shape.

    With other slopes than one for all it is ``slope * x + (1 - slope) * relu(x)``.

    Raises:
        UnsupportedOpError: If the slopes are not constant, or do not broadcast to x's shape.
    """
    x, slope = node.wire(0), node.weight(1)
    if slope.ndim == len(x.shape) + 1 and slope.shape[0] == 1:
        slope = slope[0]
    try:
        fits = np.broadcast_shapes(x.shape, slope.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise node.unsupported("input 1", f"has shape {slope.shape}, which does not broadcast to {x.batch_shape}")
    return bend(graph, x, slope)


@lowers("Abs")
def lower_abs(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Abs``: ``2 relu(x) - x``; the result has x's shape."""
    return absolute(graph, node.wire(0))


@lowers("Clip")
def lower_clip(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Clip``; bounds that clip nothing in float32 count as absent.

    Raises:
        UnsupportedOpError: If a bound is not constant, or the lower one is above the upper one.
    """
    x = node.wire(0)
    low, high = _bound(node, 1), _bound(node, 2)
    if low is not None and high is not None:
        if low > high:
            raise node.unsupported("input 1", f"is {low:g}, above input 2, which is {high:g}")
        return between(graph, x, low, high)
    if low is not None:
        return at_least(graph, x, np.array(low, np.float32))
    return x if high is None else at_most(graph, x, np.array(high, np.float32))


@lowers("HardSigmoid")
def lower_hard_sigmoid(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``HardSigmoid``: ``alpha * x + beta``, clipped to [0, 1]; the result has x's shape."""
    slope, term = float(node.attr("alpha", 0.2)), float(node.attr("beta", 0.5))
    return graph.clip(graph.shift(graph.scale(node.wire(0), slope), term), 1.0)


@lowers("HardSwish")
def lower_hard_swish(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``HardSwish``; the result has x's shape.

    With ``u = clip(x + 3, 0, 6)`` it is ``(u^2 - 3 u) / 6 + relu(x - 3)``. The square takes the clip itself: behind a
    term fixed point would need a layer in front of it.
    """
    x = node.wire(0)
    u = graph.clip(graph.shift(x, 3.0), 6.0)
    middle = graph.add(graph.scale(graph.square(u), 1.0 / 6.0), graph.scale(u, -0.5))
    return graph.add(middle, graph.relu(graph.shift(x, -3.0)))


@lowers("ThresholdedRelu")
def lower_thresholded_relu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ThresholdedRelu``: x where it is above alpha, else 0; the result has x's shape."""
    x, alpha = node.wire(0), float(node.attr("alpha", 1.0))
    return graph.multiply(graph.step(graph.shift(x, -alpha)), x) if alpha else graph.relu(x)


def absolute(graph: GraphBuilder, x: Wire) -> Wire:
    """Add ``|x|``, which is x where that is known."""
    if never_negative(graph, x):
        return x
    return graph.subtract(graph.scale(graph.relu(x), 2.0), x)


def _bound(node: Node, index: int) -> float | None:
    value = node.constant(index)
    if value is None:
        return None
    bound = float(np.asarray(value, dtype=np.float64).reshape(()))
    if np.isnan(bound):
        raise node.unsupported(f"input {index}", "is NaN; a number is needed")
    return bound if abs(bound) < float(np.finfo(np.float32).max) else None
