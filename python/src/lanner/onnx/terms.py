"""Sums and products of values of which some are known: the first step of a recurrent network starts from constants."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.pairing import product

Array = NDArray[np.float32]

#: A vector that is computed, or known.
Term: TypeAlias = Wire | Array


def plus(graph: GraphBuilder, a: Term, b: Term) -> Term:
    """Add ``a + b``; nothing where one is 0."""
    if isinstance(b, Wire):
        a, b = b, a
    if isinstance(b, Wire):
        return graph.add(b, a) if isinstance(a, Wire) else graph.add_constant(b, a)
    if isinstance(a, Wire):
        return graph.add_constant(a, b) if b.any() else a
    return a + b


def minus(graph: GraphBuilder, a: Term, b: Term) -> Term:
    """Add ``a - b``; nothing where b is 0."""
    return plus(graph, a, graph.negate(b) if isinstance(b, Wire) else -b)


def times(graph: GraphBuilder, a: Term, b: Term) -> Term:
    """Add ``a * b``, element by element; nothing where one is known to be 0 or 1 everywhere."""
    if isinstance(b, Wire):
        return product(graph, b, a) if isinstance(a, Wire) else _weighed(graph, b, a)
    return _weighed(graph, a, b) if isinstance(a, Wire) else a * b


def _weighed(graph: GraphBuilder, x: Wire, weights: Array) -> Term:
    if (weights == 1.0).all():
        return x
    return graph.multiply_constant(x, weights) if weights.any() else np.zeros(x.shape, np.float32)
