"""Comparisons of private values, and the truth values that these make, which are 0 and 1.

All are made of the step function, 1 above 0 and 0 elsewhere, which is exact on the integers of fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import UNBOUNDED, GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.operands import aligned
from lanner.onnx.registry import lowers
from lanner.onnx.selection import broadcast

#: What compares numbers.
ORDERS = frozenset(("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"))

#: What makes truth values.
TRUTHS = ORDERS | {"And", "Or", "Xor", "Not"}


def _logit(y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(y) - np.log1p(-y)


#: Functions that always grow: the numbers that each never reaches, and what undoes it between them.
_GROWING: dict[str, tuple[float, float, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "Sigmoid": (0.0, 1.0, _logit),
    "Tanh": (-1.0, 1.0, np.arctanh),
}

#: What is compared: a secret, or a constant.
Side: TypeAlias = "Wire | NDArray[np.float32]"


@lowers("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")
def lower_comparison(node: Node, graph: GraphBuilder) -> Wire:
    """Lower a comparison of a secret with a constant or another secret; the result is 0 and 1.

    Shapes: the result has the shape to which both broadcast.

    Raises:
        UnsupportedOpError: If a constant holds whole numbers that float32 does not, or none that a value may reach.
        NotFiniteError: If a constant is NaN.
    """
    _, (first, second) = _sides(node, graph)
    first, second = _before_function(graph, first, second)
    if node.operator == "Equal":
        return negation(graph, graph.add(_above(graph, first, second), _above(graph, second, first)))
    if node.operator in ("Less", "GreaterOrEqual"):
        first, second = second, first
    above = _above(graph, first, second)
    return above if node.operator in ("Greater", "Less") else negation(graph, above)


@lowers("And", "Or", "Xor")
def lower_both(node: Node, graph: GraphBuilder) -> Wire:
    """Lower an operator of two truth values; the result has the shape to which both broadcast."""
    shape, (first, second) = _sides(node, graph)
    if isinstance(first, Wire) and isinstance(second, Wire):
        if node.operator == "Xor":
            return graph.square(graph.subtract(first, second))
        both = first if first == second else graph.multiply(first, second)
        return both if node.operator == "And" else graph.subtract(graph.add(first, second), both)
    x, known = (first, second) if isinstance(first, Wire) else (second, first)
    if not isinstance(x, Wire) or isinstance(known, Wire):
        raise node.unsupported("inputs", "must hold a secret")
    x = broadcast(graph, x, shape)
    if node.operator == "And":
        return _times(graph, x, known)
    if node.operator == "Or":
        return _plus(graph, _times(graph, x, np.float32(1.0) - known), known)
    return _plus(graph, _times(graph, x, np.float32(1.0) - np.float32(2.0) * known), known)


@lowers("Not")
def lower_not(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Not``; the result has x's shape."""
    return negation(graph, node.wire(0))


@lowers("Sign")
def lower_sign(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Sign``, by two comparisons since it is 0 at 0; the result has x's shape."""
    x = node.wire(0)
    return graph.subtract(graph.step(x), graph.step(graph.negate(x)))


@lowers("ai.onnx.ml.Binarizer")
def lower_binarizer(node: Node, graph: GraphBuilder) -> Wire:
    """Lower scikit-learn's ``Binarizer``: 1 above a threshold, else 0; the result has x's shape."""
    return graph.step(graph.shift(node.wire(0), -float(node.attr("threshold", 0.0))))


@lowers("Shrink")
def lower_shrink(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Shrink``: ``x - bias`` above lambd, ``x + bias`` below -lambd, 0 between; the result has x's shape.

    Raises:
        UnsupportedOpError: If lambd is below 0, where the two overlap.
    """
    x, bias, end = node.wire(0), float(node.attr("bias", 0.0)), float(node.attr("lambd", 0.5))
    if end < 0.0:
        raise node.unsupported("lambd", f"is {end:g}; a number from 0 is needed")
    if bias == end:
        above, below = (graph.relu(graph.shift(side, -end)) for side in (x, graph.negate(x)))
        return graph.subtract(above, below)
    above, below = (graph.step(graph.shift(side, -end)) for side in (x, graph.negate(x)))
    kept = graph.multiply(graph.add(above, below), x)
    return graph.subtract(kept, graph.scale(graph.subtract(above, below), bias)) if bias else kept


def negation(graph: GraphBuilder, bit: Wire) -> Wire:
    """Add ``1 - bit``."""
    return graph.subtract_from(1.0, bit)


def is_computed(graph: GraphBuilder, bit: Wire) -> bool:
    """Whether a truth value follows from comparisons, and not from the input's own bits alone."""
    seen, pending = set[str](), [bit]
    while pending:
        made = graph.made(pending.pop())
        if made is not None and made.operator == "Step":
            return True
        inputs = () if made is None else made.inputs
        pending += [wire for wire in inputs if wire.name not in seen]
        seen.update(wire.name for wire in inputs)
    return False


@dataclass(frozen=True, slots=True)
class Compared:
    """What a truth value says.

    Attributes:
        first: What is above.
        second: What is below.
        holds: Whether it says that the first is above the second; else that it is not.
    """

    first: Side
    second: Side
    holds: bool

    @classmethod
    def of(cls, graph: GraphBuilder, bit: Wire) -> Compared | None:
        """The comparison that a wire is the result of; None where it is no such."""
        made = graph.made(bit)
        holds = True
        if made is not None and made.operator == "AddConstant" and made.constant == 1.0:
            positive = _negated(graph, made.inputs[0])
            made, holds = (None if positive is None else graph.made(positive)), False
        if made is None or made.operator != "Step":
            return None
        return cls(*_difference(graph, made.inputs[0]), holds)


def _difference(graph: GraphBuilder, x: Wire) -> tuple[Side, Side]:
    """What a wire is the difference of."""
    nothing = np.zeros((), np.float32)
    made = graph.made(x)
    if made is not None and made.operator == "AddConstant" and made.value is not None:
        negated = _negated(graph, made.inputs[0])
        return (made.inputs[0], -made.value) if negated is None else (made.value, negated)
    negated = _negated(graph, x)
    if negated is not None:
        return nothing, negated
    if made is not None and made.operator == "Add":
        other = _negated(graph, made.inputs[1])
        if other is not None:
            return made.inputs[0], other
    return x, nothing


def _negated(graph: GraphBuilder, x: Wire) -> Wire | None:
    """What a wire is -1 times; None where it is no such."""
    made = graph.made(x)
    return made.inputs[0] if made is not None and made.operator == "MulConstant" and made.constant == -1.0 else None


def _sides(node: Node, graph: GraphBuilder) -> tuple[tuple[int, ...], tuple[Side, Side]]:
    """The shape of the result, and both operands, secrets repeated to that shape."""
    for index, value in enumerate(node.inputs):
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and (value.astype(np.float32) != value).any():
            raise node.unsupported(f"input {index}", "holds whole numbers that float32 does not")
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
            raise node.not_finite(index)
    shape, constants = aligned(node, unbounded=True)
    index = next((index for index, value in enumerate(node.inputs) if isinstance(value, np.ndarray)), 0)
    if any(_is_beyond(each).all() for each in constants):
        raise node.unsupported(f"input {index}", "holds no number that a private value may reach", "leave it out")
    known = iter(constants)
    first, second = (broadcast(graph, side, shape) if isinstance(side, Wire) else next(known) for side in node.inputs)
    return shape, (first, second)


def _before_function(graph: GraphBuilder, first: Side, second: Side) -> tuple[Side, Side]:
    """The same question of what a growing function is computed of, which is exact where its values would be rounded."""
    if isinstance(second, Wire) and not isinstance(first, Wire):
        return _before_function(graph, second, first)[::-1]
    made = graph.made(first) if isinstance(first, Wire) else None
    if made is None or made.operator != "Function" or isinstance(second, Wire):
        return first, second
    for low, high, inverse in (_GROWING[name] for name in made.attributes if name in _GROWING):
        if ((low < second) & (second < high)).all():
            return made.inputs[0], inverse(second.astype(np.float64)).astype(np.float32)
    return first, second


def _above(graph: GraphBuilder, first: Side, second: Side) -> Wire:
    """Add 1 where the first is above the second, else 0."""
    if isinstance(first, Wire) and isinstance(second, Wire):
        return graph.step(graph.subtract(first, second))
    if isinstance(first, Wire):
        x, terms, always = first, *_terms(-np.asarray(second, np.float32))
    else:
        x, terms, always = graph.negate(second) if isinstance(second, Wire) else graph.input, *_terms(first)
    above = graph.step(_plus(graph, x, terms))
    if always is None:
        return above
    # What is infinite decides by itself.
    free = (np.abs(always) == 0.0).astype(np.float32)
    return _plus(graph, _times(graph, above, free), np.maximum(always, 0.0))


def _terms(value: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """What is added to a value before its sign is asked for, and where that is certain: 1 or -1; None nowhere."""
    beyond = _is_beyond(value)
    certain = np.where(beyond, np.sign(value), np.float32(0.0)).astype(np.float32)
    return np.where(beyond, np.float32(0.0), value).astype(np.float32), certain if beyond.any() else None


def _is_beyond(known: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where a constant is infinite, or so large that no ring holds it."""
    return np.abs(known) >= -UNBOUNDED


def _plus(graph: GraphBuilder, x: Wire, value: NDArray[np.float32]) -> Wire:
    return graph.add_constant(x, value) if value.any() else x


def _times(graph: GraphBuilder, x: Wire, value: NDArray[np.float32]) -> Wire:
    return x if (value == 1.0).all() else graph.multiply_constant(x, value)
