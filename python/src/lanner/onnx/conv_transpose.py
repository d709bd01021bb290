"""Transposed convolution: zeros between the elements, then a convolution with the kernel turned round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.conv import read_kernel
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.window import pair, positive


@lowers("ConvTranspose")
def lower_conv_transpose(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ConvTranspose`` over images or rows.

    Shapes: x (c_in, h, w) or (c_in, l), weight (c_in, c_out / group, kh, kw) or (c_in, c_out / group, k), bias
    (c_out,); the result is (c_out, h', w') or (c_out, l').

    Raises:
        UnsupportedOpError: If the weights are not constant, the convolution has three axes, or an attribute is unknown.
        ModelError: If nothing is left of the image, or the channels do not fit.
    """
    x, weight, bias = read_kernel(node, "(in, out / group, height, width)")
    groups, channels = int(node.attr("group", 1)), x.shape[0]
    if groups < 1 or weight.shape[0] != channels or channels % groups:
        what = f"the weights have shape {weight.shape}, and the input {channels} channels in {groups} groups"
        raise ModelError(what, where=node.where, fix="export the model again")
    count = len(x.shape) - 1
    strides, dilations = positive(node, "strides", count), positive(node, "dilations", count)
    margins = _margins(node, x.shape[1:], weight.shape[2:], strides, dilations)
    kernel = pair(weight.shape[2:], 1)
    before, after = pair([low for low, _ in margins], 0), pair([high for _, high in margins], 0)
    image = _cut(node, graph, _spread(graph, graph.image(x), pair(strides, 1)), before, after)
    # (g, in / g, out / g, ...) becomes (g, out / g, in / g, ...), each kernel from its end.
    grouped = weight.reshape(groups, channels // groups, weight.shape[1], *kernel)
    turned = np.swapaxes(grouped, 1, 2)[..., ::-1, ::-1]
    outputs = groups * weight.shape[1]
    pads = [max(margin, 0) for margin in (*before, *after)]
    attributes = {"strides": [1, 1], "pads": pads, "dilations": list(pair(dilations, 1)), "groups": groups}
    tensors = {"weight": turned.reshape(outputs, channels // groups, *kernel), "bias": bias}
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, pair(dilations, 1), strict=True)]
    sides = tuple(
        side + pads[axis] + pads[axis + 2] - span + 1
        for axis, (side, span) in enumerate(zip(image.shape[1:], spans, strict=True))
    )
    result = graph.add_node("Conv", (image,), (outputs, *sides), attributes, tensors)
    return graph.rows(result) if count == 1 else result


def _spread(graph: GraphBuilder, image: Wire, strides: tuple[int, int]) -> Wire:
    """Put zeros between neighbours of an image (c, h, w), so that they are `strides` apart."""
    channels, height, width = image.shape
    down, right = strides
    apart = graph.reshape(image, (channels, height, 1, width, 1))
    apart = graph.pad(apart, (0,) * 5, (0, 0, down - 1, 0, right - 1))
    whole = graph.reshape(apart, (channels, height * down, width * right))
    return graph.slice(whole, (range(channels), range((height - 1) * down + 1), range((width - 1) * right + 1)))


def _cut(node: Node, graph: GraphBuilder, image: Wire, before: tuple[int, int], after: tuple[int, int]) -> Wire:
    """Cut off what negative margins leave out."""
    kept = tuple(
        range(max(-low, 0), side - max(-high, 0))
        for low, side, high in zip(before, image.shape[1:], after, strict=True)
    )
    if not all(kept):
        raise node.unsupported("pads", "leaves nothing of the image")
    return graph.slice(image, (range(image.shape[0]), *kept))


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
