"""Sums, differences, products and quotients, of the secret with constants and with itself."""

from __future__ import annotations

import functools

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.operands import read_operands
from lanner.onnx.pairing import product
from lanner.onnx.registry import lowers


@lowers("Add", "Sum")
def lower_add(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Add`` and ``Sum`` of any number of values; the result has the shape to which all broadcast."""
    return _total(node, graph)


@lowers("Mean")
def lower_mean(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Mean`` of any number of values; the result has the shape to which all broadcast."""
    return graph.scale(_total(node, graph), 1.0 / len(node.inputs))


@lowers("Sub")
def lower_sub(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Sub`` to sums with a negated operand; the result has the shape to which both broadcast."""
    operands = read_operands(node, graph)
    if not operands.constants:
        return graph.subtract(operands.secrets[0], operands.secrets[1])
    (x,), (value,) = operands.secrets, operands.constants
    if isinstance(node.inputs[0], Wire):
        return graph.add_constant(x, -value)
    return graph.subtract_from(value, x)


@lowers("Mul")
def lower_mul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Mul``; of two secrets it is a difference of squares. The result has the shape to which both broadcast."""
    operands = read_operands(node, graph)
    if not operands.constants:
        return product(graph, operands.secrets[0], operands.secrets[1])
    return graph.multiply_constant(operands.secrets[0], operands.constants[0])


@lowers("Div")
def lower_div(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Div`` by a constant to a product with its reciprocal.

    Raises:
        UnsupportedOpError: If the divisor depends on the secret or holds a zero.
    """
    if not isinstance(node.inputs[0], Wire) or isinstance(node.inputs[1], Wire):
        raise node.unsupported("input 1", "must be a constant: division by a secret is not supported")
    operands = read_operands(node, graph)
    divisor = operands.constants[0].astype(np.float64)
    if not np.all(divisor):
        raise node.unsupported("input 1", "holds a zero")
    with np.errstate(over="ignore"):
        reciprocal = (1.0 / divisor).astype(np.float32)
    if not np.isfinite(reciprocal).all():
        raise node.unsupported("input 1", "holds a number whose reciprocal is beyond float32")
    return graph.multiply_constant(operands.secrets[0], reciprocal)


@lowers("Neg")
def lower_neg(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Neg``; the result has x's shape."""
    return graph.negate(node.wire(0))


@lowers("Pow")
def lower_pow(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Pow`` with exponent 1 or 2; the result has x's shape.

    Raises:
        UnsupportedOpError: If the exponent is another: higher powers have more bits than rings hold.
    """
    x, exponent = node.wire(0), node.weight(1)
    known = float(exponent.reshape(())) if exponent.size == 1 and exponent.ndim <= len(x.shape) + 1 else 0.0
    if known not in (1.0, 2.0):
        raise node.unsupported("input 1", "must be 1 or 2")
    return x if known == 1.0 else graph.square(x)


def _total(node: Node, graph: GraphBuilder) -> Wire:
    operands = read_operands(node, graph)
    total = functools.reduce(graph.add, operands.secrets)
    if not operands.constants:
        return total
    return graph.add_constant(total, functools.reduce(np.add, operands.constants))
