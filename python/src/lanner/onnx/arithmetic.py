"""Sums, differences, products and quotients, of the secret with constants and with itself."""

from __future__ import annotations

import functools

import numpy as np

from lanner.onnx.bends import bent_sum
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.matrices import repeated_product
from lanner.onnx.node import Node
from lanner.onnx.operands import add_term, read_operands, shape_of_all
from lanner.onnx.pairing import product
from lanner.onnx.powers import power
from lanner.onnx.registry import lowers
from lanner.onnx.selection import unrepeated
from lanner.onnx.variance import variance


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
    operands = read_operands(node, graph, unbounded=True)
    if not operands.constants:
        return _sum(graph, operands.secrets[0], graph.negate(operands.secrets[1]))
    (x,), (value,) = operands.secrets, operands.constants
    if isinstance(node.inputs[0], Wire):
        return add_term(node, graph, x, -value)
    return add_term(node, graph, graph.negate(x), value)


@lowers("Mul")
def lower_mul(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Mul``; the result has the shape to which both broadcast."""
    return _product(node, graph)


@lowers("Div")
def lower_div(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Div`` to a product with the divisor's reciprocal; the result has the shape to which both broadcast.

    Raises:
        UnsupportedOpError: If a constant divisor holds a zero.
    """
    divisor = node.inputs[1]
    if isinstance(divisor, Wire):
        divided = node.inputs[0]
        if isinstance(divided, Wire) and divided.shape == divisor.shape:
            divisor = unrepeated(graph, divisor)
        return _product(Node(node.proto, (divided, power(graph, divisor, -1.0))), graph)
    operands = read_operands(node, graph)
    known = operands.constants[0].astype(np.float64)
    if not np.all(known):
        raise node.unsupported("input 1", "holds a zero")
    with np.errstate(over="ignore"):
        factor = (1.0 / known).astype(np.float32)
    if not np.isfinite(factor).all():
        raise node.unsupported("input 1", "holds a number whose reciprocal is beyond float32")
    return graph.multiply_constant(operands.secrets[0], factor)


@lowers("Neg")
def lower_neg(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Neg``; the result has x's shape."""
    return graph.negate(node.wire(0))


@lowers("Pow")
def lower_pow(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Pow`` with one constant exponent for all elements; the result has x's shape.

    Raises:
        UnsupportedOpError: If exponents differ, or depend on the secret, or are 0.
    """
    x, exponent = node.wire(0), node.weight(1)
    known = float(exponent.reshape(())) if exponent.size == 1 and exponent.ndim <= len(x.shape) + 1 else 0.0
    if known == 0.0:
        raise node.unsupported("input 1", "must be one number other than 0")
    if known in (1.0, 2.0):
        return x if known == 1.0 else graph.square(x)
    return power(graph, x, known)


def _product(node: Node, graph: GraphBuilder) -> Wire:
    secrets = [value for value in node.inputs if isinstance(value, Wire)]
    if len({x.shape for x in secrets}) > 1:
        shape_of_all(node)
        return repeated_product(graph, *secrets)
    operands = read_operands(node, graph)
    if not operands.constants:
        return product(graph, operands.secrets[0], operands.secrets[1])
    return graph.multiply_constant(operands.secrets[0], operands.constants[0])


def _sum(graph: GraphBuilder, x: Wire, y: Wire) -> Wire:
    return bent_sum(graph, x, y) or variance(graph, x, y) or graph.add(x, y)


def _total(node: Node, graph: GraphBuilder) -> Wire:
    operands = read_operands(node, graph, unbounded=True)
    total = functools.reduce(functools.partial(_sum, graph), operands.secrets)
    if not operands.constants:
        return total
    with np.errstate(invalid="ignore", over="ignore"):
        return add_term(node, graph, total, functools.reduce(np.add, operands.constants))
