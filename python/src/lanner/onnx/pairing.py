"""Two secrets of one shape, combined: weighted sums of both as one layer, and their product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.gates import gated


def weighted_sums(graph: GraphBuilder, x: Wire, y: Wire, taps: NDArray[np.float32]) -> Wire:
    """Add weighted sums of x and y, channel by channel.

    Args:
        graph: Where nodes are added.
        x: Shape (c, ...).
        y: As x.
        taps: The weights of x and y, (c k, 2, 1, 1): k sums for each channel.

    Returns:
        Shape (c k, elements of a channel, 1).
    """
    channels = x.shape[0]
    rows = (channels, 1, x.size // channels)
    both = graph.concat((graph.reshape(x, rows), graph.reshape(y, rows)), 1)
    return graph.one_tap(graph.reshape(both, (2 * channels, rows[2], 1)), taps, channels)


def product(graph: GraphBuilder, x: Wire, y: Wire) -> Wire:
    """Add the element-wise product: of a value with itself a square, with some functions of it another function."""
    if x == y:
        return graph.square(x)
    return gated(graph, x, y) or graph.multiply(x, y)
