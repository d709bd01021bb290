"""Products of two secrets of which one is repeated along axes, or a sum is taken: products of matrices in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.selection import broadcast


def multiply_matrices(graph: GraphBuilder, x: Wire, y: Wire) -> Wire:
    """Add ``x @ y``: x (..., m, k), y (..., k, n), what stands before of as many axes in both, which broadcast."""
    leading = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    (rows, inner), columns = x.shape[-2:], y.shape[-1]
    left = graph.reshape(broadcast(graph, x, (*leading, rows, inner)), (math.prod(leading), rows, inner))
    right = graph.reshape(broadcast(graph, y, (*leading, inner, columns)), (math.prod(leading), inner, columns))
    return graph.reshape(graph.matrix_product(left, right), (*leading, rows, columns))


def repeated_product(graph: GraphBuilder, x: Wire, y: Wire) -> Wire:
    """Add ``x * y`` of as many axes, of which some have one element in either: the products of columns and rows."""
    axes = range(len(x.shape))
    shared = [axis for axis in axes if x.shape[axis] == y.shape[axis]]
    left = [axis for axis in axes if axis not in shared and y.shape[axis] == 1]
    right = [axis for axis in axes if axis not in shared and x.shape[axis] == 1]
    sides = np.broadcast_shapes(x.shape, y.shape)
    order = (*shared, *left, *right)
    groups, rows, columns = (math.prod(sides[axis] for axis in group) for group in (shared, left, right))
    column = graph.reshape(graph.transpose(x, order), (groups, rows, 1))
    row = graph.reshape(graph.transpose(y, order), (groups, 1, columns))
    apart = graph.reshape(graph.matrix_product(column, row), tuple(sides[axis] for axis in order))
    return graph.transpose(apart, inverse(order))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another one."""
    return tuple(order.index(axis) for axis in range(len(order)))
