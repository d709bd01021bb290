"""Smooth functions of each element: fixed point has polynomials for them, found when a network is compiled."""

from __future__ import annotations

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.powers import power
from lanner.onnx.registry import lowers

#: Those that have a limit far below and far above 0, or are taken where calibration saw their input, and no attributes.
_FUNCTIONS = ("Sigmoid", "Tanh", "Erf", "Softsign", "Sin", "Cos", "Exp", "Log", "Sqrt", "Reciprocal")


@lowers(*_FUNCTIONS)
def lower_function(node: Node, graph: GraphBuilder) -> Wire:
    """Lower a function without attributes; the result has x's shape."""
    exponent = {"Sqrt": 0.5, "Reciprocal": -1.0}.get(node.operator)
    if exponent is not None:
        return power(graph, node.wire(0), exponent)
    return graph.function(node.wire(0), node.operator)


@lowers("Softplus", "Mish")
def lower_ramp(node: Node, graph: GraphBuilder) -> Wire:
    """Lower a function near a constant below 0 and near a line above, without attributes; the result has x's shape."""
    return graph.ramp(node.wire(0), node.operator)


@lowers("Elu", "Celu")
def lower_elu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Elu`` and ``Celu``; the result has x's shape.

    Raises:
        UnsupportedOpError: If the alpha of Celu is not above 0.
    """
    return graph.ramp(node.wire(0), node.operator, alpha=_alpha(node, positive=node.operator == "Celu"))


@lowers("Selu")
def lower_selu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Selu``; the result has x's shape.

    Raises:
        UnsupportedOpError: If gamma is 0.
    """
    gamma = float(node.attr("gamma", 1.05070102214813232421875))
    if gamma == 0.0:
        raise node.unsupported("gamma", "must not be 0")
    return graph.ramp(node.wire(0), "Selu", alpha=float(node.attr("alpha", 1.67326319217681884765625)), gamma=gamma)


@lowers("Swish")
def lower_swish(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Swish``: ``x sigmoid(alpha x)``; the result has x's shape.

    Raises:
        UnsupportedOpError: If alpha is not above 0.
    """
    return graph.ramp(node.wire(0), "Swish", alpha=_alpha(node, positive=True))


@lowers("com.microsoft.QuickGelu")
def lower_quick_gelu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower onnxruntime's ``QuickGelu``, a ``Swish`` with another default; the result has x's shape.

    Raises:
        UnsupportedOpError: If alpha is not above 0.
    """
    return graph.ramp(node.wire(0), "Swish", alpha=_alpha(node, 1.702, positive=True))


@lowers("Gelu", "com.microsoft.Gelu")
def lower_gelu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Gelu``; the result has x's shape.

    Raises:
        UnsupportedOpError: If it is approximated by another function than a hyperbolic tangent.
    """
    approximate = node.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.unsupported("approximate", f"is {approximate}; none and tanh are supported")
    return graph.ramp(node.wire(0), "Gelu", approximate=approximate == "tanh")


@lowers("com.microsoft.FastGelu", "com.microsoft.BiasGelu")
def lower_biased_gelu(node: Node, graph: GraphBuilder) -> Wire:
    """Lower onnxruntime's ``FastGelu`` and ``BiasGelu`` behind a sum with a constant; the result has x's shape.

    Raises:
        UnsupportedOpError: If what is added is not a constant.
    """
    x = node.wire(0)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        x = graph.add_constant(x, node.weight(1))
    return graph.ramp(x, "Gelu", approximate=node.operator == "FastGelu")


def _alpha(node: Node, default: float = 1.0, *, positive: bool) -> float:
    alpha = float(node.attr("alpha", default))
    if positive and alpha <= 0.0:
        raise node.unsupported("alpha", f"is {alpha:g}; a number above 0 is needed")
    return alpha
