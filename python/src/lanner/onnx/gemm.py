"""Products with constant matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Gemm")
def lower_gemm(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Gemm``: ``alpha * a @ b + beta * c``.

    Shapes: a (k,), b (k, m) after ``transB``, c broadcastable to (1, m); the result is (m,).

    Raises:
        UnsupportedOpError: If ``transA`` is set, or b or c is not constant.
    """
    node.require("transA", 0)
    x, weight = _vector(node), node.weight(1)
    weight = weight.T if node.attr("transB", 0) else weight
    _check_sizes(node, x, weight)
    bias = None
    if node.constant(2) is not None:
        addend = node.weight(2) * np.float32(node.attr("beta", 1.0))
        bias = np.broadcast_to(addend, (1, weight.shape[1]))[0]
    return graph.matmul(x, weight * np.float32(node.attr("alpha", 1.0)), bias)


@lowers("MatMul")
def lower_matmul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MatMul`` by a constant on the right.

    Shapes: a (k,), b (k, m); the result is (m,).

    Raises:
        UnsupportedOpError: If b is not a constant matrix.
    """
    x, weight = _vector(node), node.weight(1)
    _check_sizes(node, x, weight)
    return graph.matmul(x, weight)


def _vector(node: Node) -> Wire:
    x = node.wire(0)
    if len(x.shape) != 1:
        raise node.unsupported("input 0", f"has shape {('n', *x.shape)}; a matrix of one row per sample is needed")
    return x


def _check_sizes(node: Node, x: Wire, weight: NDArray[np.float32]) -> None:
    if weight.ndim != 2 or weight.shape[0] != x.size:
        raise node.unsupported("input 1", f"has shape {weight.shape}; a matrix of {x.size} rows is needed")
