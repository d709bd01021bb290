"""Variances written as mean squares less squared means, as flax writes LayerNorm: the mean square about the mean.

Both are far larger than their difference where the mean is, and fixed point would lose it in their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.selection import tile

#: How far the two factors may be apart, relative to either: what is left of reciprocals in float32.
_TOLERANCE = 1e-6

_MOVEMENTS = ("Reshape", "Flatten", "Transpose")


@dataclass(frozen=True, slots=True)
class _Means:
    """A value that is ``factor`` times the mean, over each channel of an image, of something or of its square.

    Attributes:
        of: What the mean is taken of, in the image's order, (c, h, w): not squared.
        source: The name of what was moved to it, and the place of each of the image's elements there.
        factor: What the means are multiplied with.
        squared: Whether the mean is that of squares.
    """

    of: Wire
    source: tuple[str, NDArray[np.int64]]
    factor: float
    squared: bool

    @staticmethod
    def find(graph: GraphBuilder, x: Wire) -> _Means | None:
        """Read a wire as such a value, in whatever shape; None if it is none."""
        factor, pooled = _unscaled(graph, x)
        made = graph.made(pooled)
        if made is None or made.operator != "GlobalAveragePool":
            return None
        image = made.inputs[0]
        inner, places = _moved(graph, image)
        of = graph.made(inner)
        if of is None or of.operator != "Square":
            return _Means(image, (graph.image_name(inner), places), factor, squared=False)
        base, behind = _moved(graph, of.inputs[0])
        return _Means(image, (graph.image_name(base), behind.reshape(-1)[places]), factor, squared=True)


def variance(graph: GraphBuilder, x: Wire, y: Wire) -> Wire | None:
    """Add the sum of two wires as a multiple of the variance, if it is one: a mean square less the squared mean."""
    for square, less in ((x, y), (y, x)):
        found, mean = _Means.find(graph, square), _mean_squared(graph, less)
        if found is None or mean is None or not found.squared or mean[0].squared:
            continue
        of, factor = mean
        same = found.source[0] == of.source[0] and found.of.shape == of.of.shape
        if not same or not np.array_equal(found.source[1], of.source[1]):
            continue
        if abs(found.factor + factor) > _TOLERANCE * abs(found.factor):
            continue
        _, height, width = of.of.shape
        each = tile(graph, tile(graph, graph.global_average_pool(of.of), 1, height), 2, width)
        apart = graph.square(graph.subtract(of.of, each))
        return graph.reshape(graph.scale(graph.global_average_pool(apart), found.factor), x.shape)
    return None


def _mean_squared(graph: GraphBuilder, x: Wire) -> tuple[_Means, float] | None:
    """The means that a wire is the square of, and what the square of the plain means is multiplied with."""
    factor, squared = _unscaled(graph, x)
    made = graph.made(squared)
    if made is None or made.operator != "Square":
        return None
    means = _Means.find(graph, made.inputs[0])
    return None if means is None else (means, factor * means.factor**2)


def _unscaled(graph: GraphBuilder, x: Wire) -> tuple[float, Wire]:
    """A wire as a number times another one, which its elements stand in the order of, in whatever shape."""
    factor = 1.0
    while (made := graph.made(x)) is not None:
        if made.operator == "MulConstant" and made.constant is not None:
            factor *= made.constant
        elif made.operator not in ("Reshape", "Flatten"):
            break
        x = made.inputs[0]
    return factor, x


def _moved(graph: GraphBuilder, x: Wire) -> tuple[Wire, NDArray[np.int64]]:
    """What a wire's elements were before they were moved, and the place there of each of them."""
    steps = []
    shape = x.shape
    while (made := graph.made(x)) is not None and made.operator in _MOVEMENTS:
        steps.append(made)
        x = made.inputs[0]
    places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    for made in reversed(steps):
        if made.operator == "Transpose":
            places = places.reshape(made.inputs[0].shape).transpose(made.attributes["axes"])
    return x, places.reshape(shape)
