"""Powers with a constant exponent: roots, reciprocals, and reciprocals of roots, which are one function."""

from __future__ import annotations

from lanner.onnx.builder import GraphBuilder, Wire

#: Powers that have a name of their own.
_NAMED = {0.5: "Sqrt", -1.0: "Reciprocal"}

#: Operators of one input whose results are not negative if that is not.
_KEEP_SIGN = {"GlobalAveragePool", "AveragePool", "MaxPool", "Reshape", "Flatten", "Transpose"}

#: Operators, and functions, whose results are never negative.
_NEVER_NEGATIVE = {"Square", "Relu"}
_POSITIVE = {"Exp", "Sqrt", "Sigmoid", "Within"}


def power(graph: GraphBuilder, x: Wire, exponent: float, term: float = 0.0) -> Wire:
    """Add ``(x + term) ** exponent``: of a root one power; what was added to what is never negative is a term."""
    if term:
        return _power(graph, x, exponent, term)
    root = graph.made(x)
    if exponent == -1.0 and root is not None and root.operator == "Function":
        inner = root.attributes.get("Power", {"exponent": 0.5} if "Sqrt" in root.attributes else None)
        if inner is not None:
            return _power(graph, root.inputs[0], -inner["exponent"], inner.get("term", 0.0))
    made = graph.made(x)
    if made is not None and made.operator == "AddConstant" and made.constant is not None and made.constant > 0.0:
        base = made.inputs[0]
        if never_negative(graph, base):
            return _power(graph, base, exponent, made.constant)
    return _power(graph, x, exponent, 0.0)


def never_negative(graph: GraphBuilder, x: Wire) -> bool:
    """Whether a wire is known to be 0 or above, whatever the input is."""
    made = graph.made(x)
    if made is None:
        return False
    if made.operator in _NEVER_NEGATIVE:
        return True
    if made.operator == "Function":
        return bool(_POSITIVE & made.attributes.keys())
    if made.operator in ("MulConstant", "AddConstant"):
        return made.constant is not None and made.constant >= 0.0 and never_negative(graph, made.inputs[0])
    return made.operator in _KEEP_SIGN and never_negative(graph, made.inputs[0])


def _power(graph: GraphBuilder, x: Wire, exponent: float, term: float) -> Wire:
    if term == 0.0 and exponent in _NAMED:
        return graph.function(x, _NAMED[exponent])
    return graph.function(x, "Power", exponent=exponent, **({"term": term} if term else {}))
