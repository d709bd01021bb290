"""Weighted sums along an axis with public weights, such as an interpolation's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.gemm import grouped
from lanner.onnx.matrices import inverse
from lanner.onnx.selection import pick

#: The largest denominator of weights, of all axes together, that parties multiply shares by in place of a layer.
_LARGEST = 64

#: How far a weight may be from a fraction: what is left of it in float32.
_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Taps:
    """What each element of a result is the weighted sum of.

    Attributes:
        places: Which elements of the axis before, (target, taps).
        weights: Their weights, (target, taps).
    """

    places: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def denominator(self) -> int | None:
        """The smallest number whose fractions all weights are; None where it is too large."""
        for number in range(1, _LARGEST + 1):
            whole = self.weights * number
            if np.abs(whole - np.round(whole)).max() <= _TOLERANCE * number:
                return number
        return None

    def matrix(self, side: int) -> NDArray[np.float32]:
        """The same as a matrix, (side, target)."""
        matrix = np.zeros((side, len(self.places)))
        targets = np.broadcast_to(np.arange(len(self.places))[:, np.newaxis], self.places.shape)
        np.add.at(matrix, (self.places, targets), self.weights)
        return matrix.astype(np.float32)

    def is_identity(self, side: int) -> bool:
        """Whether an axis of so many elements stays as it is."""
        return len(self.places) == side and np.array_equal(self.matrix(side), np.eye(side))


def weighted_sums_along(graph: GraphBuilder, x: Wire, taps: Mapping[int, Taps]) -> Wire:
    """Add weighted sums along axes, one after the other.

    Each party computes them on its own share where the weights are fractions of a small number; else they are layers,
    since integers would grow by as much.

    Args:
        graph: Where nodes are added.
        x: The wire.
        taps: The sums along each axis, counted without the batch.
    """
    denominators = [each.denominator for each in taps.values()]
    known = [number for number in denominators if number is not None]
    alone = len(known) == len(denominators) and math.prod(known) <= _LARGEST
    for axis, each in taps.items():
        x = _on_shares(graph, x, axis, each) if alone else _as_layer(graph, x, axis, each)
    return x


def _on_shares(graph: GraphBuilder, x: Wire, axis: int, taps: Taps) -> Wire:
    """Sums of elements times public factors, those of the same weights together."""
    patterns, found = np.unique(np.round(taps.weights, 6), axis=0, return_inverse=True)
    of = np.ravel(found)
    parts, order = [], list[int]()
    for pattern in dict.fromkeys(of.tolist()):
        (targets,) = np.nonzero(of == pattern)
        terms = [
            graph.scale(pick(graph, x, axis, taps.places[targets, tap].tolist()), float(weight))
            for tap, weight in enumerate(taps.weights[targets[0]])
            if patterns[pattern, tap]
        ]
        total = terms[0]
        for term in terms[1:]:
            total = graph.add(total, term)
        parts.append(total)
        order += targets.tolist()
    count, width = len(parts), len(of) // len(parts)
    if order == [first + step * count for first in range(count) for step in range(width)]:
        return _in_turns(graph, parts, axis)
    return pick(graph, graph.concat(tuple(parts), axis), axis, np.argsort(order).tolist())


def _in_turns(graph: GraphBuilder, parts: Sequence[Wire], axis: int) -> Wire:
    """Join values of one shape along an axis, an element of each in turn."""
    shape = parts[0].shape
    before, side, after = shape[:axis], shape[axis], shape[axis + 1 :]
    apart = tuple(graph.reshape(part, (*before, side, 1, *after)) for part in parts)
    return graph.reshape(graph.concat(apart, axis + 1), (*before, side * len(parts), *after))


def _as_layer(graph: GraphBuilder, x: Wire, axis: int, taps: Taps) -> Wire:
    """A product of rows along the axis with one matrix."""
    matrix = taps.matrix(x.shape[axis])
    order = (*(other for other in range(len(x.shape)) if other != axis), axis)
    moved = graph.transpose(x, order)
    *before, side = moved.shape
    count = math.prod(before)
    if count == 1:
        product = graph.matmul(graph.reshape(moved, (side,)), matrix)
    else:
        product = grouped(graph, graph.reshape(moved, (1, count, side)), matrix[np.newaxis])
    return graph.transpose(graph.reshape(product, (*before, matrix.shape[1])), inverse(order))
