"""Convolutions over volumes, each as one over an image: taps of the depth are channels, and depths are rows of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.window import AxisWindow


def convolve_volume(
    graph: GraphBuilder,
    x: Wire,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    axes: Sequence[AxisWindow],
    groups: int,
) -> Wire:
    """Add a convolution of a volume.

    Rows of zeros below each depth keep its windows apart from those of the next.

    Args:
        graph: Where nodes are added.
        x: Shape (c_in, d, h, w).
        weight: Shape (c_out, c_in / groups, kd, kh, kw).
        bias: Shape (c_out,).
        axes: The windows along depth, height and width.
        groups: The number of groups of channels.

    Returns:
        Shape (c_out, d', h', w').
    """
    (before, after), (top, bottom), (left, right) = (axis.pads for axis in axes)
    depth, height, width = axes
    channels = x.shape[0]
    # As many rows for each depth as whole steps take.
    rows = -(-(top + x.shape[2] + bottom) // height.stride) * height.stride
    padded = graph.pad(x, (0, before, top, left), (0, after, rows - top - x.shape[2], right))
    taps = _taps(graph, padded, depth)
    tall = graph.reshape(taps, (channels * depth.kernel, depth.count * rows, padded.shape[3]))
    span = (height.kernel - 1) * height.dilation + 1
    steps = depth.count * rows // height.stride
    attributes = {
        "strides": [height.stride, width.stride],
        "pads": [0, 0, max(span - height.stride, 0), 0],
        "dilations": [height.dilation, width.dilation],
        "groups": groups,
    }
    folded = np.ascontiguousarray(weight.reshape(weight.shape[0], -1, *weight.shape[3:]))
    tensors = {"weight": folded, "bias": bias}
    made = graph.add_node("Conv", (tall,), (weight.shape[0], steps, width.count), attributes, tensors)
    apart = graph.reshape(made, (weight.shape[0], depth.count, rows // height.stride, width.count))
    kept = (range(weight.shape[0]), range(depth.count), range(height.count), range(width.count))
    return graph.slice(apart, kept)


def _taps(graph: GraphBuilder, x: Wire, depth: AxisWindow) -> Wire:
    """What each tap of the depth's windows meets, tap by tap behind each channel: (c, kd, d', h, w)."""
    channels, _, *image = x.shape
    parts = []
    for tap in range(depth.kernel):
        first = tap * depth.dilation
        picked = range(first, first + (depth.count - 1) * depth.stride + 1, depth.stride)
        part = graph.slice(x, (range(channels), picked, *map(range, image)))
        parts.append(graph.reshape(part, (channels, 1, depth.count, *image)))
    return graph.concat(tuple(parts), 1)
