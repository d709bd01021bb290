"""Sums, differences, products and quotients, of the secret with constants and with itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Add")
def lower_add(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Add``; the result has the secret operand's shape."""
    if _both_secret(node):
        return graph.add(*_equal_shapes(node))
    x, value, _ = _secret_and_constant(node)
    return graph.add_constant(x, value)


@lowers("Sub")
def lower_sub(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Sub`` to sums with a negated operand; the result has the secret operand's shape."""
    if _both_secret(node):
        x, y = _equal_shapes(node)
        return graph.add(x, graph.negate(y))
    x, value, constant_first = _secret_and_constant(node)
    if constant_first:
        return graph.subtract_from(value, x)
    return graph.add_constant(x, -value)


@lowers("Mul")
def lower_mul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Mul``; the result has the secret operand's shape."""
    if _both_secret(node):
        x, y = _equal_shapes(node)
        return graph.square(x) if x == y else graph.multiply(x, y)
    x, value, _ = _secret_and_constant(node)
    return graph.multiply_constant(x, value)


@lowers("Div")
def lower_div(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Div`` by a constant to a product with its reciprocal.

    Raises:
        UnsupportedOpError: If the divisor depends on the secret or holds a zero.
    """
    if not isinstance(node.inputs[0], Wire) or isinstance(node.inputs[1], Wire):
        raise node.unsupported("input 1", "must be a constant: division by a secret is not supported")
    x, value, _ = _secret_and_constant(node)
    if not np.all(value):
        raise node.unsupported("input 1", "holds a zero")
    return graph.multiply_constant(x, (1.0 / value.astype(np.float64)).astype(np.float32))


@lowers("Neg")
def lower_neg(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Neg``; the result has x's shape."""
    return graph.negate(node.wire(0))


@lowers("Pow")
def lower_pow(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Pow`` with exponent 2; the result has x's shape.

    Raises:
        UnsupportedOpError: If the exponent is not 2.
    """
    x, exponent = node.wire(0), node.weight(1)
    if exponent.size != 1 or float(exponent.reshape(())) != 2.0:
        raise node.unsupported("input 1", "must be 2")
    return graph.square(x)


def _both_secret(node: Node) -> bool:
    return all(isinstance(value, Wire) for value in node.inputs)


def _equal_shapes(node: Node) -> tuple[Wire, Wire]:
    x, y = node.wire(0), node.wire(1)
    if x.shape != y.shape:
        raise node.unsupported("inputs", f"have shapes {x.shape} and {y.shape}; they must be equal")
    return x, y


def _secret_and_constant(node: Node) -> tuple[Wire, NDArray[np.float32], bool]:
    """The secret operand, the constant without its batch axis, and whether the constant stands first."""
    constant_first = not isinstance(node.inputs[0], Wire)
    x, value = node.wire(int(constant_first)), node.weight(int(not constant_first))
    if value.ndim == len(x.shape) + 1 and value.shape[0] == 1:
        value = value[0]
    try:
        fits = np.broadcast_shapes(x.shape, value.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise node.unsupported(
            f"input {int(not constant_first)}",
            f"has shape {value.shape}, which does not broadcast to {x.shape}",
        )
    return x, value, constant_first
