"""Transposed convolution: zeros between the elements, then a convolution with the kernel turned round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.conv import read_kernel
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.volume import convolve_volume
from lanner.onnx.window import AxisWindow, positive, window_of


@lowers("ConvTranspose")
def lower_conv_transpose(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ConvTranspose`` over rows, images or volumes.

    Shapes: x (c_in, l), (c_in, h, w) or (c_in, d, h, w), weight (c_in, c_out / group, ...) with a kernel of as many
    axes, bias (c_out,); the result is (c_out, ...).

    Raises:
        UnsupportedOpError: If the weights are not constant, the convolution has more axes, or an attribute is unknown.
        ModelError: If nothing is left, or the channels do not fit.
    """
    x, weight, bias = read_kernel(node, ("in", "out / group"))
    groups, channels = int(node.attr("group", 1)), x.shape[0]
    if groups < 1 or weight.shape[0] != channels or channels % groups:
        what = f"the weights have shape {weight.shape}, and the input {channels} channels in {groups} groups"
        raise ModelError(what, where=node.where, fix="export the model again")
    count = len(x.shape) - 1
    strides, dilations = positive(node, "strides", count), positive(node, "dilations", count)
    margins = _margins(node, x.shape[1:], weight.shape[2:], strides, dilations)
    inside = _cut(node, graph, _spread(graph, x, strides), margins)
    # (g, in / g, out / g, ...) becomes (g, out / g, in / g, ...), each kernel from its end.
    apart = weight.reshape(groups, channels // groups, *weight.shape[1:])
    turned = np.flip(np.swapaxes(apart, 1, 2), tuple(range(3, apart.ndim)))
    kernel = turned.reshape(groups * weight.shape[1], channels // groups, *weight.shape[2:])
    axes = [
        _axis(side, taps, dilation, (max(low, 0), max(high, 0)))
        for side, taps, dilation, (low, high) in zip(
            inside.shape[1:], weight.shape[2:], dilations, margins, strict=True
        )
    ]
    if count == 3:
        return convolve_volume(graph, inside, kernel, bias, axes, groups)
    window = window_of(axes)
    attributes = {
        "strides": [1, 1],
        "pads": list(window.pads),
        "dilations": list(window.dilations),
        "groups": groups,
    }
    tensors = {"weight": kernel.reshape(*kernel.shape[:2], *window.kernel), "bias": bias}
    result = graph.add_node("Conv", (graph.image(inside),), (len(kernel), *window.output), attributes, tensors)
    return graph.rows(result) if count == 1 else result


def _axis(side: int, kernel: int, dilation: int, pads: tuple[int, int]) -> AxisWindow:
    """Windows one element apart."""
    count = side + sum(pads) - (kernel - 1) * dilation
    return AxisWindow(side, kernel, 1, dilation, pads, count, 0)


def _spread(graph: GraphBuilder, x: Wire, strides: Sequence[int]) -> Wire:
    """Put zeros between neighbours of x (c, ...), so that they are `strides` apart."""
    if set(strides) == {1}:
        return x
    channels, *sides = x.shape
    alone = tuple(side for each in sides for side in (each, 1))
    zeros = tuple(count for stride in strides for count in (0, stride - 1))
    apart = graph.pad(graph.reshape(x, (channels, *alone)), (0,) * (1 + len(alone)), (0, *zeros))
    whole = graph.reshape(apart, (channels, *(side * stride for side, stride in zip(sides, strides, strict=True))))
    kept = (range((side - 1) * stride + 1) for side, stride in zip(sides, strides, strict=True))
    return graph.slice(whole, (range(channels), *kept))


def _cut(node: Node, graph: GraphBuilder, x: Wire, margins: Sequence[tuple[int, int]]) -> Wire:
    """Cut off what negative margins leave out."""
    kept = tuple(
        range(max(-low, 0), side - max(-high, 0)) for (low, high), side in zip(margins, x.shape[1:], strict=True)
    )
    if not all(kept):
        raise node.unsupported("pads", "leaves nothing of the image")
    return graph.slice(x, (range(x.shape[0]), *kept))


def _margins(
    node: Node, sides: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """For each axis how many zeros stand before and after the spread image; elements are cut off where it is negative.

    Raises:
        UnsupportedOpError: If an attribute has another length than the axes, or is unknown.
        ModelError: If nothing is left.
    """
    count = len(sides)
    auto = node.attr("auto_pad", "NOTSET") or "NOTSET"
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise node.unsupported("auto_pad", f"is {auto}; NOTSET, VALID, SAME_UPPER and SAME_LOWER are supported")
    pads = _numbers(node, "pads", 2 * count) if auto != "VALID" else [0] * 2 * count
    extra = _numbers(node, "output_padding", count)
    reaches = [(k - 1) * dilation for k, dilation in zip(kernel, dilations, strict=True)]
    wholes = [
        (side - 1) * stride + 1 + reach + more
        for side, stride, reach, more in zip(sides, strides, reaches, extra, strict=True)
    ]
    cuts = _cuts(node, auto, wholes, [side * stride for side, stride in zip(sides, strides, strict=True)])
    cuts = cuts or list(zip(pads[:count], pads[count:], strict=True))
    for axis, (whole, (low, high)) in enumerate(zip(wholes, cuts, strict=True)):
        if whole - low - high < 1:
            what = f"nothing is left of axis {axis + 2} of ConvTranspose"
            raise ModelError(what, where=node.where, fix="check the pads")
    return [(reach - low, reach - high + more) for reach, more, (low, high) in zip(reaches, extra, cuts, strict=True)]


def _cuts(node: Node, auto: str, wholes: list[int], same: list[int]) -> list[tuple[int, int]]:
    """How much is cut off both ends of each axis where the result's sides are given; empty where pads are."""
    shape: list[int] = list(node.attr("output_shape", []))[-len(wholes) :]
    if not shape and not auto.startswith("SAME"):
        return []
    if len(shape) not in (0, len(wholes)):
        raise node.unsupported("output_shape", f"is {shape}; {len(wholes)} numbers are needed")
    cuts = []
    for whole, side in zip(wholes, shape or same, strict=True):
        total = whole - side
        if not shape and total < 0:
            # Runtimes make images of two sizes here.
            raise node.unsupported("auto_pad", f"is {auto}, with strides that the kernel does not reach over")
        small = max(total, 0) // 2
        low = small if auto == "SAME_UPPER" else max(total, 0) - small
        cuts.append((low, total - low))
    return cuts


def _numbers(node: Node, name: str, count: int) -> list[int]:
    values: list[int] = list(node.attr(name, [0] * count))
    if len(values) != count or min(values) < 0:
        raise node.unsupported(name, f"is {values}; {count} numbers from 0 are needed")
    return values
