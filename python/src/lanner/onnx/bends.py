"""Lines with one bend, at 0: PReLU, also as the sums of a value and its ReLU that exporters write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.pairing import weighted_sums

#: How many sums and products deep a formula is looked through.
_DEPTH = 6

#: How far the slope above 0 may be from 1: what is left of slopes in float32.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class _Line:
    """``straight * x + bent * relu(x)``; both broadcast to x's image."""

    straight: NDArray[np.float64]
    bent: NDArray[np.float64]

    def __add__(self, other: _Line) -> _Line:
        return _Line(self.straight + other.straight, self.bent + other.bent)

    def times(self, factor: NDArray[np.float64]) -> _Line:
        return _Line(factor * self.straight, factor * self.bent)


def bend(graph: GraphBuilder, x: Wire, slope: NDArray[np.float32]) -> Wire:
    """Add ``x`` where positive, else ``slope * x``; slope broadcasts to x's shape, which is the result's."""
    if np.unique(slope).size == 1:
        return sloped(graph, x, float(slope.flat[0]))
    channels = x.shape[0]
    whole = np.broadcast_to(slope, x.shape).reshape(channels, -1)
    if (whole == whole[:, :1]).all():
        taps = np.stack([whole[:, 0], np.float32(1.0) - whole[:, 0]], 1).reshape(channels, 2, 1, 1)
        return graph.reshape(weighted_sums(graph, x, graph.relu(x), taps), x.shape)
    bent = graph.multiply_constant(graph.relu(x), np.float32(1.0) - slope)
    return graph.add(graph.multiply_constant(x, slope), bent)


def sloped(graph: GraphBuilder, x: Wire, alpha: float) -> Wire:
    """Add ``x`` where positive, else ``alpha * x``; fixed point has slopes from 0 to 1."""
    if alpha == 0.0:
        return graph.relu(x)
    if 0.0 < alpha <= 1.0 or not np.isfinite(alpha):
        return graph.elementwise("LeakyRelu", x, {"alpha": alpha})
    return graph.add(graph.scale(x, alpha), graph.scale(graph.relu(x), 1.0 - alpha))


def bent_sum(graph: GraphBuilder, x: Wire, y: Wire) -> Wire | None:
    """Add the sum of two wires as one PReLU of what both are made of, if it is one.

    So are ``relu(x) - slope * relu(-x)``, as Keras writes it, and ``relu(x) + slope / 2 * (x - |x|)``.
    """
    for of in dict.fromkeys((*_bases(graph, x), *_bases(graph, y))):
        parts = [_line(graph, wire, of) for wire in (x, y)]
        if parts[0] is None or parts[1] is None:
            continue
        line = parts[0] + parts[1]
        if np.abs(line.straight + line.bent - 1.0).max() <= _TOLERANCE and _is_slope(line.straight):
            bent = bend(graph, of, line.straight.astype(np.float32))
            return bent if bent.shape == x.shape else graph.rows(bent)
    return None


def _is_slope(slopes: NDArray[np.float64]) -> bool:
    """Whether these are slopes of a PReLU: the value itself is none, and its magnitude is a sum anyway."""
    return not bool((np.abs(slopes) == 1.0).all())


def _bases(graph: GraphBuilder, x: Wire, depth: int = _DEPTH) -> Iterator[Wire]:
    """What the ReLUs in a formula are taken of, and that without its factor."""
    made = graph.made(x)
    if made is None or depth == 0:
        return
    if made.operator == "Relu":
        yield from (made.inputs[0], *_unscaled(graph, made.inputs[0]))
    elif made.operator in {"Add", "MulConstant"}:
        for inner in made.inputs:
            yield from _bases(graph, inner, depth - 1)


def _unscaled(graph: GraphBuilder, x: Wire) -> tuple[Wire, ...]:
    made = graph.made(x)
    return (made.inputs[0],) if made is not None and made.operator == "MulConstant" else ()


def _line(graph: GraphBuilder, x: Wire, of: Wire, depth: int = _DEPTH) -> _Line | None:
    """A wire as a line with one bend of another; None if it is no such."""
    if graph.image_name(x) == graph.image_name(of):
        return _Line(np.ones(1), np.zeros(1))
    made = graph.made(x)
    if made is None or depth == 0:
        return None
    lines = [_line(graph, inner, of, depth - 1) for inner in made.inputs]
    if any(line is None for line in lines):
        return None
    of_inputs = [line for line in lines if line is not None]
    match made.operator:
        case "Add":
            return of_inputs[0] + of_inputs[1]
        case "MulConstant" if made.value is not None:
            return of_inputs[0].times(made.value.astype(np.float64))
        case "Relu":
            return _rectified(of_inputs[0])
    return None


def _rectified(line: _Line) -> _Line | None:
    """The ReLU of ``c x``: ``c relu(x)`` for c > 0, ``c (x - relu(x))`` for c < 0."""
    if line.bent.any():
        return None
    c = line.straight
    return _Line(np.minimum(c, 0.0), np.abs(c))
