"""Products of matrices, of a secret and a constant or of two secrets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.matrices import multiply_matrices
from lanner.onnx.node import Node
from lanner.onnx.operands import broadcasts
from lanner.onnx.registry import lowers


@lowers("Gemm")
def lower_gemm(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Gemm``: ``alpha * a @ b + beta * c``.

    Shapes: a (k,), or (t, k) where its rows are those of samples' parts, b (k, m) after ``transB``, c broadcastable to
    (1, m); the result is (m,) or (t, m).

    Raises:
        UnsupportedOpError: If ``transA`` is set, or b or c is not constant.
    """
    node.require("transA", 0)
    x, weight = _rows(node), node.weight(1)
    weight = weight.T if node.attr("transB", 0) else weight
    _check_sizes(node, x, weight)
    columns = weight.shape[1]
    bias = None
    if node.constant(2) is not None:
        addend = node.weight(2) * np.float32(node.attr("beta", 1.0))
        if addend.ndim > 2 or addend.shape[:-1] not in ((), (1,)) or addend.shape[-1:] not in ((), (1,), (columns,)):
            raise node.unsupported("input 2", f"has shape {addend.shape}; one row of {columns} numbers is needed")
        bias = np.broadcast_to(addend, (1, columns))[0]
    weight = weight * np.float32(node.attr("alpha", 1.0))
    rows = x.plain()
    if len(x.shape) == 1:
        return graph.matmul(rows, weight, bias)
    product = _rows_by_matrix(node, graph, rows, weight)
    y = product if bias is None else graph.add_constant(product, bias)
    return replace(y, batch=x.batch, merged=x.merged)


@lowers("MatMul")
def lower_matmul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MatMul`` of two secrets, or by a constant on either side: of several rows a convolution of one tap.

    Shapes: a (..., m, k) or (k,), b (..., k, n) or (k,), what stands before by numpy's rule; the result is (..., m, n).
    A constant on the left needs a sample of two axes or more, for the first axis of all is the batch; so do two
    secrets, which have as many axes as each other.

    Raises:
        UnsupportedOpError: If shapes do not fit, or samples would be mixed.
    """
    if all(isinstance(value, Wire) for value in node.inputs):
        return _secret_matrices(node, graph)
    if isinstance(node.inputs[0], Wire):
        x, weight = node.wire(0), node.weight(1)
        if weight.ndim == 1 and len(x.shape) > 1:
            product = _rows_by_matrix(node, graph, x, weight[:, np.newaxis])
            return graph.reshape(product, product.shape[:-1])
        if weight.ndim == 1:
            return _rows_by_matrix(node, graph, x, weight[:, np.newaxis]).as_column()
        return _rows_by_matrix(node, graph, x, weight)
    weight, x = node.weight(0), node.wire(1)
    if weight.ndim < 2 or len(x.shape) < 2:
        raise node.unsupported("inputs", f"have shapes {weight.shape} and {x.batch_shape}; samples must stay apart")
    # (w x) is the transpose of (x' w').
    return _swap_last(graph, _rows_by_matrix(node, graph, _swap_last(graph, x), np.swapaxes(weight, -1, -2)))


def _secret_matrices(node: Node, graph: GraphBuilder) -> Wire:
    x, y = node.wire(0), node.wire(1)
    rank = len(x.shape)
    paired = all(a == b or 1 in (a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=False))
    if rank != len(y.shape) or rank < 2 or x.shape[-1] != y.shape[-2] or not paired:
        shapes = f"{x.batch_shape} and {y.batch_shape}"
        raise node.unsupported("inputs", f"have shapes {shapes}; matrices of each sample, of as many axes, are needed")
    return multiply_matrices(graph, x, y)


def _rows_by_matrix(node: Node, graph: GraphBuilder, x: Wire, weight: NDArray[np.float32]) -> Wire:
    """Multiply x (..., m, k) by one matrix (k, n), or by one for each of x's leading axes."""
    inner, columns = x.shape[-1], weight.shape[-1]
    # Those of the file's axes, the batch included, that stand before the matrices.
    leading = (1, *x.shape)[:-2]
    if weight.ndim < 2 or weight.shape[-2] != inner or not broadcasts(weight.shape[:-2], leading):
        raise node.unsupported(
            f"input {int(isinstance(node.inputs[0], Wire))}",
            f"has shape {weight.shape}; matrices of {inner} rows that fit {x.batch_shape} are needed",
        )
    count = math.prod(x.shape[:-1])
    if count == 1:
        product = graph.matmul(graph.reshape(x, (inner,)), weight.reshape(inner, columns))
    elif math.prod(weight.shape[:-2]) == 1:
        product = grouped(graph, graph.reshape(x, (1, count, inner)), weight.reshape(1, inner, columns))
    else:
        matrices = np.broadcast_to(weight, (*leading, inner, columns)).reshape(-1, inner, columns)
        product = grouped(graph, graph.reshape(x, (len(matrices), x.shape[-2], inner)), matrices)
    return graph.reshape(product, (*x.shape[:-1], columns))


def grouped(graph: GraphBuilder, x: Wire, matrices: NDArray[np.float32]) -> Wire:
    """Multiply x (g, m, k) by matrices (g, k, n): the inner axis becomes the channels, the rows the picture."""
    groups, rows, inner = x.shape
    columns = matrices.shape[-1]
    image = graph.reshape(graph.transpose(x, (0, 2, 1)), (groups * inner, rows, 1))
    taps = np.swapaxes(matrices, 1, 2).reshape(groups * columns, inner, 1, 1)
    product = graph.one_tap(image, taps, groups)
    return graph.transpose(graph.reshape(product, (groups, columns, rows)), (0, 2, 1))


def _swap_last(graph: GraphBuilder, x: Wire) -> Wire:
    axes = tuple(range(len(x.shape)))
    return graph.transpose(x, (*axes[:-2], axes[-1], axes[-2]))


def _rows(node: Node) -> Wire:
    """The first input, of whose two axes the first has the samples, or parts of theirs."""
    x = node.wire(0)
    if x.rank != 2 or x.axis:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; a matrix of one row per sample is needed")
    return x


def _check_sizes(node: Node, x: Wire, weight: NDArray[np.float32]) -> None:
    if weight.ndim != 2 or weight.shape[0] != x.shape[-1]:
        raise node.unsupported("input 1", f"has shape {weight.shape}; a matrix of {x.shape[-1]} rows is needed")
