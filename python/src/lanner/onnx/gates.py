"""Products of a value with a function of it that are one function: SiLU, GELU and Mish as exporters write them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanner.onnx.builder import GraphBuilder, Wire

#: How far a constant of a formula may be from it, relative to it: exporters round to a few digits.
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A constant multiple of a wire."""

    factor: float
    of: Wire


def gated(graph: GraphBuilder, x: Wire, y: Wire) -> Wire | None:
    """Add the product of two wires as one function of what both are made of, if it is one that the graph has."""
    for value, gate in ((x, y), (y, x)):
        linear, bent = _scaled(graph, value), _scaled(graph, gate)
        found = _ramp(graph, linear.of, bent.of)
        if found is not None:
            factor, name, attributes = found
            return graph.scale(graph.ramp(linear.of, name, **attributes), linear.factor * bent.factor * factor)
    return None


def _ramp(graph: GraphBuilder, x: Wire, gate: Wire) -> tuple[float, str, dict[str, float | bool]] | None:
    """The ramp of x that x times the gate is, with the factor before it."""
    inner = graph.argument(gate, "Sigmoid")
    if inner is not None:
        steep = _scaled(graph, inner)
        return (1.0, "Swish", {"alpha": steep.factor}) if _same(graph, steep.of, x) and steep.factor > 0 else None
    inner = graph.argument(gate, "Tanh")
    if inner is not None:
        line = graph.argument(inner, "Softplus")
        return (1.0, "Mish", {}) if line is not None and _same(graph, line, x) else None
    return _gelu(graph, x, gate)


def _gelu(graph: GraphBuilder, x: Wire, gate: Wire) -> tuple[float, str, dict[str, float | bool]] | None:
    """The GELU that x times ``c + c erf(x / sqrt(2))`` is, or with the hyperbolic tangent that approximates it."""
    made = graph.made(gate)
    if made is None or made.operator != "AddConstant" or made.constant is None:
        return None
    bent = _scaled(graph, made.inputs[0])
    if not _near(bent.factor, made.constant):
        return None
    inner = graph.argument(bent.of, "Erf")
    if inner is not None:
        steep = _scaled(graph, inner)
        exact = _same(graph, steep.of, x) and _near(steep.factor, math.sqrt(0.5))
        return (2.0 * made.constant, "Gelu", {"approximate": False}) if exact else None
    inner = graph.argument(bent.of, "Tanh")
    if inner is None or not _is_cubic(graph, x, inner):
        return None
    return 2.0 * made.constant, "Gelu", {"approximate": True}


def _is_cubic(graph: GraphBuilder, x: Wire, inner: Wire) -> bool:
    """Whether a wire is ``sqrt(2 / pi) (x + 0.044715 x^3)``, as a sum or as x times ``1 + 0.044715 x^2``."""
    slope, curve = math.sqrt(2.0 / math.pi), 0.044715
    whole = _scaled(graph, inner)
    made = graph.made(whole.of)
    if made is None:
        return False
    if made.operator == "Add":
        for first, second in (made.inputs, made.inputs[::-1]):
            line, cube = _scaled(graph, first), _scaled(graph, second)
            factor = _factor_of_power(graph, cube.of, x, 3)
            if _same(graph, line.of, x) and factor is not None:
                return _near(whole.factor * line.factor, slope) and _near(cube.factor * factor / line.factor, curve)
    if made.operator == "Mul":
        for first, second in (made.inputs, made.inputs[::-1]):
            line, rest = _scaled(graph, first), graph.made(second)
            if _same(graph, line.of, x) and rest is not None and rest.operator == "AddConstant" and rest.constant:
                square = _scaled(graph, rest.inputs[0])
                near = _near(whole.factor * line.factor * rest.constant, slope)
                factor = _factor_of_power(graph, square.of, x, 2)
                return near and factor is not None and _near(square.factor * factor / rest.constant, curve)
    return False


def _factor_of_power(graph: GraphBuilder, value: Wire, x: Wire, exponent: int) -> float | None:
    """The constant that a wire is times that power of x, wherever exporters put it; None where it is no such."""
    scaled = _scaled(graph, value)
    if exponent == 1:
        return scaled.factor if _same(graph, scaled.of, x) else None
    made = graph.made(scaled.of)
    if made is None:
        return None
    if made.operator == "Square" and exponent % 2 == 0:
        root = _factor_of_power(graph, made.inputs[0], x, exponent // 2)
        return None if root is None else scaled.factor * root**2
    base = graph.argument(scaled.of, "Power")
    if base is not None:
        power = made.attributes["Power"] == {"exponent": float(exponent)} and _same(graph, base, x)
        return scaled.factor if power else None
    for one, other in (made.inputs, made.inputs[::-1]) if made.operator == "Mul" else ():
        first, rest = _factor_of_power(graph, one, x, 1), _factor_of_power(graph, other, x, exponent - 1)
        if first is not None and rest is not None:
            return scaled.factor * first * rest
    return None


def _scaled(graph: GraphBuilder, x: Wire) -> _Scaled:
    """What a wire is a constant multiple of."""
    factor = 1.0
    while (made := graph.made(x)) is not None and made.operator == "MulConstant" and made.constant is not None:
        factor, x = factor * made.constant, made.inputs[0]
    return _Scaled(factor, x)


def _same(graph: GraphBuilder, x: Wire, y: Wire) -> bool:
    return graph.image_name(x) == graph.image_name(y)


def _near(value: float, wanted: float) -> bool:
    return math.isclose(value, wanted, rel_tol=_TOLERANCE)
