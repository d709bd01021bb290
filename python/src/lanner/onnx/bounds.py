"""Bounds of values, by the one nonlinear operator that fixed point has for them: a ReLU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.powers import never_negative

#: A value moved by this much keeps its precision in fixed point, whose units follow from the range of what is moved.
NEAR = 1.0


def at_least(graph: GraphBuilder, x: Wire, bound: NDArray[np.float32]) -> Wire:
    """Add ``max(x, bound)``, where the bound broadcasts to x's shape."""
    if not bound.any():
        return x if never_negative(graph, x) else graph.relu(x)
    if _is_near(bound):
        return graph.add_constant(graph.relu(graph.add_constant(x, -bound)), bound)
    return graph.add(x, graph.relu(graph.subtract_from(bound, x)))


def at_most(graph: GraphBuilder, x: Wire, bound: NDArray[np.float32]) -> Wire:
    """Add ``min(x, bound)``, where the bound broadcasts to x's shape."""
    if bound.any() and not _is_near(bound):
        return graph.subtract(x, graph.relu(graph.add_constant(x, -bound)))
    return graph.subtract_from(bound, graph.relu(graph.subtract_from(bound, x)))


def between(graph: GraphBuilder, x: Wire, low: float, high: float) -> Wire:
    """Add ``min(max(x, low), high)``, of which fixed point has the one from 0 as a single operator."""
    if abs(low) <= NEAR:
        return graph.shift(graph.clip(graph.shift(x, -low), high - low), low)
    above = graph.relu(graph.shift(x, -high))
    return graph.subtract(at_least(graph, x, np.array(low, np.float32)), above)


def _is_near(bound: NDArray[np.float32]) -> bool:
    return float(np.abs(bound).max()) <= NEAR
