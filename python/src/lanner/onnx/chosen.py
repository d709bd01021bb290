"""Choices between values by a private bit: a mask in front of a softmax, or one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.bends import bend
from lanner.onnx.bounds import at_least, at_most
from lanner.onnx.builder import UNBOUNDED, GraphBuilder, Wire
from lanner.onnx.comparison import Compared, Side, is_computed
from lanner.onnx.lookup import Bits
from lanner.onnx.number_types import MASKING
from lanner.onnx.selection import broadcast

_Value: TypeAlias = "Wire | NDArray[np.generic]"


def choose(graph: GraphBuilder, given: Sequence[object], bound: Callable[[float], float | None]) -> Wire | None:
    """Lower ``Where`` of a private bit: shapes are those of the node; None where it is no such choice.

    Args:
        graph: Where nodes are added.
        given: The condition and what stands where it holds and where it does not.
        bound: How far below 0 the mask of these scores must be, given the largest number that hides them; None where
            that number is one of the network's own.
    """
    bits, *both = given
    if not isinstance(bits, Bits) or any(not isinstance(value, Wire | np.ndarray) for value in both):
        return None
    values = [value for value in (bits.source, *both) if isinstance(value, Wire)]
    if len(values) < 2 or any(value.batch or any(value.merged) for value in values):
        return None
    rank = max(len(value.shape) for value in values)
    if any(len(value.shape) != rank for value in values):
        return None
    first, second = (value if isinstance(value, Wire) else _of_one_sample(value, rank) for value in both)
    if first is None or second is None:
        return None
    shape = np.broadcast_shapes(*(value.shape for value in (bits.source, first, second)))
    holds = bits.pair.astype(np.bool_)
    for hidden, kept, where in ((first, second, holds), (second, first, ~holds)):
        if not (isinstance(hidden, np.ndarray) and isinstance(kept, Wire) and bool((hidden <= -MASKING).all())):
            continue
        if (least := bound(float(hidden.max()))) is None:
            continue
        if is_computed(graph, bits.source):
            # Where all of a row are hidden they are alike.
            far = np.full_like(hidden, -least)
            first, second = (far if side is hidden else side for side in (first, second))
        else:
            mask = Bits(bits.source, np.where(where, -np.inf, 0.0)).materialised(graph, least)
            return graph.add(broadcast(graph, kept, shape), broadcast(graph, mask, shape))
    if not is_bounded(first) or not is_bounded(second):
        return None
    condition = Bits(bits.source, holds.astype(np.float32)).materialised(graph)
    return chosen_by(graph, condition, first, second, shape)


def chosen_by(graph: GraphBuilder, condition: Wire, first: _Value, second: _Value, shape: tuple[int, ...]) -> Wire:
    """Add the first where a truth value is 1 and the second where it is 0, all repeated to a shape."""
    bent = _bent(graph, condition, first, second, shape)
    if bent is not None:
        return bent
    chosen = broadcast(graph, condition, shape)
    if isinstance(first, Wire) and isinstance(second, np.ndarray) and (second.astype(np.float32) <= -MASKING).any():
        # A term on top of all would be taken for a mask, and a difference with it loses digits.
        kept = graph.multiply(chosen, broadcast(graph, first, shape))
        return graph.add(kept, _sum(graph, graph.multiply_constant(chosen, -second.astype(np.float32)), second, shape))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        apart = first.astype(np.float32) - second.astype(np.float32)
        return _sum(graph, graph.multiply_constant(chosen, apart), second, shape)
    return _sum(graph, graph.multiply(chosen, _difference(graph, first, second, shape)), second, shape)


def is_bounded(value: _Value) -> bool:
    """Whether no number of a constant is so far from 0 that a network has none such."""
    return isinstance(value, Wire) or bool((np.abs(value) < -UNBOUNDED).all())


def _bent(graph: GraphBuilder, condition: Wire, first: _Value, second: _Value, shape: tuple[int, ...]) -> Wire | None:
    """The maximum, minimum or bent line that a choice is whose condition compares what it chooses from."""
    compared = Compared.of(graph, condition)
    if compared is None or condition.shape != shape:
        return None
    larger, smaller = compared.first, compared.second
    if not compared.holds:
        first, second = second, first
    if _same(graph, first, larger, shape) and _same(graph, second, smaller, shape):
        return _larger(graph, larger, smaller)
    if _same(graph, first, smaller, shape) and _same(graph, second, larger, shape):
        return _smaller(graph, larger, smaller)
    for x, zero, kept, other in ((larger, smaller, first, second), (smaller, larger, second, first)):
        if isinstance(x, Wire) and isinstance(zero, np.ndarray) and not zero.any() and _same(graph, kept, x, shape):
            slope = _slope(graph, other, x)
            return None if slope is None else bend(graph, x, slope)
    return None


def _larger(graph: GraphBuilder, x: Side, y: Side) -> Wire | None:
    if isinstance(x, Wire) and isinstance(y, Wire):
        return graph.add(graph.relu(graph.subtract(x, y)), y)
    secret, bound = (x, y) if isinstance(x, Wire) else (y, x)
    return at_least(graph, secret, bound) if isinstance(secret, Wire) and isinstance(bound, np.ndarray) else None


def _smaller(graph: GraphBuilder, x: Side, y: Side) -> Wire | None:
    if isinstance(x, Wire) and isinstance(y, Wire):
        return graph.subtract(x, graph.relu(graph.subtract(x, y)))
    secret, bound = (x, y) if isinstance(x, Wire) else (y, x)
    return at_most(graph, secret, bound) if isinstance(secret, Wire) and isinstance(bound, np.ndarray) else None


def _slope(graph: GraphBuilder, value: _Value, x: Wire) -> NDArray[np.float32] | None:
    """What x is multiplied with to give a value; None where that is no such product."""
    if isinstance(value, np.ndarray):
        return None if value.any() else np.zeros((), np.float32)
    made = graph.made(value)
    if made is None or made.operator != "MulConstant" or value.shape != x.shape or made.inputs[0] != x:
        return None
    return made.value


def _same(graph: GraphBuilder, one: _Value, other: Side, shape: tuple[int, ...]) -> bool:
    """Whether a side of a choice and one of its comparison are one value."""
    if isinstance(one, Wire) and isinstance(other, Wire):
        return one.shape == other.shape == shape and graph.image_name(one) == graph.image_name(other)
    if isinstance(one, Wire) or isinstance(other, Wire):
        return False
    return np.array_equal(np.broadcast_to(one, shape), np.broadcast_to(other, shape))


def _of_one_sample(value: object, rank: int) -> NDArray[np.float32] | None:
    """A constant without its batch axis; None where it is of several samples."""
    constant = np.asarray(value, np.float32)
    if constant.ndim <= rank:
        return constant
    return constant[0] if constant.ndim == rank + 1 and len(constant) == 1 else None


def _difference(graph: GraphBuilder, a: _Value, b: _Value, shape: tuple[int, ...]) -> Wire:
    if isinstance(a, Wire):
        x = broadcast(graph, a, shape)
        if isinstance(b, Wire):
            return graph.subtract(x, broadcast(graph, b, shape))
        return _sum(graph, x, -np.asarray(b, np.float32), shape)
    return _sum(graph, graph.negate(broadcast(graph, b, shape)), a, shape)  # type: ignore[arg-type]


def _sum(graph: GraphBuilder, x: Wire, term: _Value, shape: tuple[int, ...]) -> Wire:
    if isinstance(term, Wire):
        return graph.add(x, broadcast(graph, term, shape))
    value = np.asarray(term, np.float32)
    return graph.add_constant(x, value) if value.any() else x
