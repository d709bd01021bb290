"""Choices between values by a private bit: a mask in front of a softmax, or one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
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
    first, second = (value if isinstance(value, Wire) else _of_one_sample(value, rank) for value in both)
    if first is None or second is None:
        return None
    shape = np.broadcast_shapes(*(value.shape for value in (bits.source, first, second)))
    holds = bits.pair.astype(np.bool_)
    for hidden, kept, where in ((first, second, holds), (second, first, ~holds)):
        if not (isinstance(hidden, np.ndarray) and isinstance(kept, Wire) and bool((hidden <= -MASKING).all())):
            continue
        if (least := bound(float(hidden.max()))) is not None:
            mask = Bits(bits.source, np.where(where, -np.inf, 0.0)).materialised(graph, least)
            return graph.add(broadcast(graph, kept, shape), broadcast(graph, mask, shape))
    chosen = broadcast(graph, Bits(bits.source, holds.astype(np.float32)).materialised(graph), shape)
    return _sum(graph, graph.multiply(chosen, _difference(graph, first, second, shape)), second, shape)


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
