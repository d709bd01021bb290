"""Two secrets of one shape, combined: weighted sums of both as one layer, and their product by squares of such sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire


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
    """Add the element-wise product ``((x + y)^2 - (x - y)^2) / 4``.

    One layer makes sum and difference, behind which fixed point rescales before it squares.
    """
    if x == y:
        return graph.square(x)
    channels, rest = x.shape[0], x.size // x.shape[0]
    taps = np.tile(np.array([[1, 1], [1, -1]], np.float32), (channels, 1)).reshape(-1, 2, 1, 1)
    squares = graph.reshape(graph.square(weighted_sums(graph, x, y, taps)), (channels, 2, rest))
    of_sum, of_difference = (graph.slice(squares, (range(channels), range(at, at + 1), range(rest))) for at in (0, 1))
    return graph.reshape(graph.scale(graph.subtract(of_sum, of_difference), 0.25), x.shape)
