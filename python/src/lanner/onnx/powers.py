"""Powers with a constant exponent: roots, reciprocals, and reciprocals of roots, which are one function."""

from __future__ import annotations

import numpy as np

from lanner.onnx.builder import GraphBuilder, Made, Wire

#: Powers that have a name of their own.
_NAMED = {0.5: "Sqrt", -1.0: "Reciprocal"}

#: Operators of one input whose results are not negative if that is not.
_KEEP_SIGN = {"GlobalAveragePool", "AveragePool", "MaxPool", "Reshape", "Flatten", "Transpose"}

#: Operators, and functions, whose results are never negative.
_NEVER_NEGATIVE = {"Square", "Relu"}
_POSITIVE = {"Exp", "Sqrt", "Sigmoid", "Within"}


def power(graph: GraphBuilder, x: Wire, exponent: float, term: float = 0.0) -> Wire:
    """Add ``(x + term) ** exponent``: of a root one power; what was added to what is never negative is a term.

    Where x is the larger of a constant and something else, a power below 0 is one of inputs that end there.
    """
    if term:
        return _power(graph, x, exponent, term)
    floored = _floored(graph, x) if exponent < 0.0 else None
    if floored is not None:
        base, bound = floored
        inner = _root(graph, base)
        if inner is not None:
            base, root, added = inner
            exponent, bound = exponent * root, bound ** (1.0 / root) - added
            if bound <= float(np.finfo(np.float32).tiny):
                return graph.reshape(_power(graph, base, exponent, added), x.shape)
            terms = {"term": added} if added else {}
            return graph.reshape(graph.within(base, "Power", low=bound, exponent=exponent, **terms), x.shape)
        return graph.reshape(graph.within(base, "Power", low=bound, exponent=exponent), x.shape)
    inner = _root(graph, x) if exponent == -1.0 else None
    if inner is not None:
        base, root, added = inner
        return graph.reshape(_power(graph, base, -root, added), x.shape)
    made = graph.made(x)
    if made is not None and made.operator == "AddConstant" and made.constant is not None and made.constant > 0.0:
        base = made.inputs[0]
        if never_negative(graph, base):
            return graph.reshape(_power(graph, base, exponent, made.constant), x.shape)
    return _power(graph, x, exponent, 0.0)


def _root(graph: GraphBuilder, x: Wire) -> tuple[Wire, float, float] | None:
    """What a wire is a power of, in whatever shape, the exponent and the term; None where it is no power."""
    made = graph.made(x)
    while made is not None and made.operator in ("Reshape", "Flatten"):
        made = graph.made(made.inputs[0])
    if made is None or made.operator != "Function":
        return None
    inner = made.attributes.get("Power", {"exponent": 0.5} if "Sqrt" in made.attributes else None)
    return None if inner is None else (made.inputs[0], inner["exponent"], inner.get("term", 0.0))


def _floored(graph: GraphBuilder, x: Wire) -> tuple[Wire, float] | None:
    """What a wire is the larger of beside a constant above 0, and that."""
    outer = graph.made(x)
    if outer is None or outer.operator != "AddConstant" or outer.constant is None or outer.constant <= 0.0:
        return None
    kept = graph.made(outer.inputs[0])
    inner = graph.made(kept.inputs[0]) if kept is not None and kept.operator == "Relu" else None
    if inner is None or inner.operator != "AddConstant" or inner.constant != -outer.constant:
        return None
    return inner.inputs[0], outer.constant


def never_negative(graph: GraphBuilder, x: Wire) -> bool:
    """Whether a wire is known to be 0 or above, whatever the input is."""
    made = graph.made(x)
    if made is None:
        return False
    if made.operator in _NEVER_NEGATIVE:
        return True
    if made.operator == "Function":
        return bool(_POSITIVE & made.attributes.keys())
    if made.operator == "Add":
        return _is_magnitude(graph, made) or all(never_negative(graph, each) for each in made.inputs)
    if made.operator in ("MulConstant", "AddConstant"):
        return made.constant is not None and made.constant >= 0.0 and never_negative(graph, made.inputs[0])
    return made.operator in _KEEP_SIGN and never_negative(graph, made.inputs[0])


def _is_magnitude(graph: GraphBuilder, made: Made) -> bool:
    """Whether a sum is ``2 relu(x) - x``."""
    twice, less = (graph.made(each) for each in made.inputs)
    if twice is None or less is None or (twice.constant, less.constant) != (2.0, -1.0):
        return False
    bent = graph.made(twice.inputs[0])
    return bent is not None and bent.operator == "Relu" and bent.inputs == less.inputs


def _power(graph: GraphBuilder, x: Wire, exponent: float, term: float) -> Wire:
    if term == 0.0 and exponent in _NAMED:
        return graph.function(x, _NAMED[exponent])
    return graph.function(x, "Power", exponent=exponent, **({"term": term} if term else {}))
