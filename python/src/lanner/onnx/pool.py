"""Pooling, over rows, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.activation import absolute
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.powers import power
from lanner.onnx.registry import lowers
from lanner.onnx.selection import pick
from lanner.onnx.window import AxisWindow, resolve_axes, window_of


@lowers("MaxPool")
def lower_max_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MaxPool`` over one axis, two or three.

    Shapes: x (c, l), (c, h, w) or (c, d, h, w); the result has as many axes.

    Raises:
        UnsupportedOpError: If the kernel has more axes, the indices are used, or a window holds padding alone.
    """
    node.single_output()
    x, axes = _input(node), _axes(node)
    for axis, window in enumerate(axes):
        if not window.real().any(1).all():
            raise node.unsupported("pads", f"leaves a window of axis {axis + 2} padding alone")
    if any(window.dilation > 1 for window in axes):
        x, axes = _gathered(graph, x, axes)
    return _pooled(graph, x, axes, "MaxPool")


@lowers("AveragePool")
def lower_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``AveragePool`` over one axis, two or three.

    Shapes: x (c, l), (c, h, w) or (c, d, h, w); the result has as many axes.

    Raises:
        UnsupportedOpError: If the kernel has more axes, or a window holds padding alone.
    """
    return _average(node, graph, _input(node), counted=bool(node.attr("count_include_pad", 0)))


@lowers("LpPool")
def lower_lp_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LpPool``: a root of the sum of powers over each window; padding adds nothing.

    Shapes: x (c, l), (c, h, w) or (c, d, h, w); the result has as many axes.

    Raises:
        UnsupportedOpError: If p is below 1.
    """
    axes, p = _axes(node), _exponent(node)
    mean = _average(node, graph, _powers(graph, _input(node), p), counted=True, whole=True)
    return _root(graph, graph.scale(mean, float(math.prod(window.kernel for window in axes))), p)


@lowers("GlobalLpPool")
def lower_global_lp_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalLpPool``: a root of the sum of powers of each channel.

    Shapes: x (c, ...); the result is (c, 1, ...).

    Raises:
        UnsupportedOpError: If p is below 1.
    """
    x, p = _input(node), _exponent(node)
    mean = graph.global_average_pool(_flat(graph, _powers(graph, x, p)))
    return graph.reshape(_root(graph, graph.scale(mean, float(x.size // x.shape[0])), p), _global_shape(x))


@lowers("GlobalAveragePool")
def lower_global_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalAveragePool``.

    Shapes: x (c, ...); the result is (c, 1, ...).
    """
    x = _input(node)
    pooled = graph.global_average_pool(_flat(graph, x))
    return graph.rows(pooled) if len(x.shape) == 2 else graph.reshape(pooled, _global_shape(x))


@lowers("GlobalMaxPool")
def lower_global_max_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalMaxPool``.

    Shapes: x (c, ...); the result is (c, 1, ...).
    """
    x = _input(node)
    pooled = graph.global_max_pool(_flat(graph, x))
    return graph.rows(pooled) if len(x.shape) == 2 else graph.reshape(pooled, _global_shape(x))


def _average(node: Node, graph: GraphBuilder, x: Wire, *, counted: bool, whole: bool = False) -> Wire:
    """The means over windows.

    Args:
        node: What has their attributes.
        graph: Where nodes are added.
        x: What they are of.
        counted: Whether padding counts as zeros.
        whole: Whether what windows reach beyond the padding counts, too.
    """
    axes = _axes(node)
    divisors = [_divisors(window, counted=counted, whole=whole) for window in axes]
    if min(int(divisor.min()) for divisor in divisors) < 1:
        raise node.unsupported("pads", "leaves a window padding alone")
    exact = all((divisor == window.kernel).all() for divisor, window in zip(divisors, axes, strict=True))
    dilated = any(window.dilation > 1 for window in axes)
    if dilated:
        added = [(window.pads[0], max(int(window.places().max()) - window.side + 1, 0)) for window in axes]
        x = graph.pad(x, (0, *(low for low, _ in added)), (0, *(high for _, high in added)))
        padded = [_moved(window, low, high) for window, (low, high) in zip(axes, added, strict=True)]
        x, axes = _gathered(graph, x, padded)
    # The graph's own averages leave padding out, too.
    own = not counted and not dilated
    pooled = _pooled(graph, x, axes, "AveragePool", counted=exact or not own)
    if exact or own:
        return pooled
    for axis, (divisor, window) in enumerate(zip(divisors, axes, strict=True)):
        if (divisor != window.kernel).any():
            factor = (window.kernel / divisor).astype(np.float32)
            pooled = graph.multiply_constant(pooled, factor.reshape((-1,) + (1,) * (len(axes) - 1 - axis)))
    return pooled


def _divisors(window: AxisWindow, *, counted: bool, whole: bool) -> NDArray[np.int64]:
    """How many taps of each window count."""
    if whole:
        return np.full(window.count, window.kernel, np.int64)
    places = window.places()
    low, high = (-window.pads[0], window.side + window.pads[1]) if counted else (0, window.side)
    return np.asarray(((places >= low) & (places < high)).sum(1), np.int64)


def _moved(window: AxisWindow, before: int, after: int) -> AxisWindow:
    """The same window over an axis whose padding is elements."""
    side = before + window.side + after
    return AxisWindow(side, window.kernel, window.stride, window.dilation, (0, 0), window.count, 0)


def _gathered(graph: GraphBuilder, x: Wire, axes: Sequence[AxisWindow]) -> tuple[Wire, list[AxisWindow]]:
    """What the taps of windows meet, window by window beside each other; what meets padding meets another element."""
    beside = []
    for axis, window in enumerate(axes):
        places, real = window.places(), window.real()
        first = np.take_along_axis(places, real.argmax(1)[:, np.newaxis], 1)
        x = pick(graph, x, axis + 1, np.where(real, places, first).ravel().tolist())
        side = window.count * window.kernel
        beside.append(AxisWindow(side, window.kernel, window.kernel, 1, (0, 0), window.count, 0))
    return x, beside


def _pooled(graph: GraphBuilder, x: Wire, axes: Sequence[AxisWindow], operator: str, *, counted: bool = False) -> Wire:
    """Add a pool: of a volume one over each of its images, then one over depths."""
    if len(axes) < 3:
        window = window_of(axes)
        pools = {"kernel": list(window.kernel), "strides": list(window.strides), "pads": list(window.pads)}
        attributes = pools if operator == "MaxPool" else {**pools, "count_include_pad": counted}
        pooled = graph.add_node(operator, (graph.image(x),), (x.shape[0], *window.output), attributes)
        return graph.rows(pooled) if len(axes) == 1 else pooled
    channels, depth, height, width = x.shape
    images = graph.reshape(x, (channels * depth, height, width))
    within = _pooled(graph, images, axes[1:], operator, counted=counted)
    rows, columns = within.shape[1:]
    upright = graph.reshape(within, (channels, depth, rows * columns))
    beside = AxisWindow(rows * columns, 1, 1, 1, (0, 0), rows * columns, 0)
    pooled = _pooled(graph, upright, (axes[0], beside), operator, counted=counted)
    return graph.reshape(pooled, (channels, axes[0].count, rows, columns))


def _powers(graph: GraphBuilder, x: Wire, p: int) -> Wire:
    if p == 2:
        return graph.square(x)
    magnitudes = absolute(graph, x)
    return magnitudes if p == 1 else power(graph, magnitudes, float(p))


def _root(graph: GraphBuilder, x: Wire, p: int) -> Wire:
    return x if p == 1 else power(graph, x, 1.0 / p)


def _exponent(node: Node) -> int:
    p = int(node.attr("p", 2))
    if p < 1:
        raise node.unsupported("p", f"is {p}; a number from 1 is needed")
    return p


def _input(node: Node) -> Wire:
    x = node.wire(0)
    if len(x.shape) not in (2, 3, 4):
        needed = "rows, an image or a volume of channels are needed"
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; {needed}")
    return x


def _flat(graph: GraphBuilder, x: Wire) -> Wire:
    """Channels as an image of one axis, or of two as it is."""
    return graph.image(x) if len(x.shape) < 4 else graph.reshape(x, (x.shape[0], x.size // x.shape[0], 1))


def _global_shape(x: Wire) -> tuple[int, ...]:
    return (x.shape[0], *(1,) * (len(x.shape) - 1))


def _axes(node: Node) -> list[AxisWindow]:
    sides = _input(node).shape[1:]
    kernel: list[int] = list(node.attr("kernel_shape", []))
    if len(kernel) != len(sides) or min(kernel) < 1:
        raise node.unsupported("kernel_shape", f"is {kernel}; {len(sides)} numbers from 1 are needed")
    return resolve_axes(node, kernel, sides)
