"""Convolution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.volume import convolve_volume
from lanner.onnx.window import Window, resolve_axes, resolve_window


@lowers("Conv")
def lower_conv(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Conv`` over rows, images or volumes.

    Shapes: x (c_in, l), (c_in, h, w) or (c_in, d, h, w), weight (c_out, c_in / group, ...) with a kernel of as many
    axes, bias (c_out,); the result is (c_out, ...).

    Raises:
        UnsupportedOpError: If the weights are not constant or the convolution has more axes.
        ModelError: If the kernel's shape is not that of the weights.
    """
    x, weight, bias = read_kernel(node, ("out", "in / group"))
    if len(x.shape) == 4:
        axes = resolve_axes(node, weight.shape[2:], x.shape[1:])
        return convolve_volume(graph, x, weight, bias, axes, int(node.attr("group", 1)))
    window = resolve_window(node, weight.shape[2:], x.shape[1:])
    if _reach(window) > _FAR and node.attr("group", 1) == 1:
        result = _by_taps(graph, graph.image(x), weight.reshape(*weight.shape[:2], *window.kernel), bias, window)
        return graph.rows(result) if len(x.shape) == 2 else result
    attributes = {
        "strides": list(window.strides),
        "pads": list(window.pads),
        "dilations": list(window.dilations),
        "groups": int(node.attr("group", 1)),
    }
    tensors = {"weight": weight.reshape(*weight.shape[:2], *window.kernel), "bias": bias}
    result = graph.add_node("Conv", (graph.image(x),), (weight.shape[0], *window.output), attributes, tensors)
    return graph.rows(result) if len(x.shape) == 2 else result


#: The farthest that taps may be apart: no layout of a layer reaches much farther.
_FAR = 1024


def _reach(window: Window) -> int:
    """How far the first and the last tap are apart along one axis."""
    return max((side - 1) * apart for side, apart in zip(window.kernel, window.dilations, strict=True))


def _by_taps(
    graph: GraphBuilder, image: Wire, weight: NDArray[np.float32], bias: NDArray[np.float32] | None, window: Window
) -> Wire:
    """Add a convolution as one of one tap, over what each of its taps meets, joined along the channels."""
    top, left, bottom, right = window.pads
    padded = graph.pad(image, (0, top, left), (0, bottom, right))
    steps = tuple(zip(window.dilations, window.strides, window.output, strict=True))
    parts = []
    for taps in np.ndindex(window.kernel):
        firsts = (tap * apart for tap, (apart, _, _) in zip(taps, steps, strict=True))
        picks = (
            range(first, first + (count - 1) * stride + 1, stride)
            for first, (_, stride, count) in zip(firsts, steps, strict=True)
        )
        parts.append(graph.slice(padded, (range(image.shape[0]), *picks)))
    joined = graph.concat(tuple(parts), 0)
    flat = np.ascontiguousarray(weight.transpose(0, 2, 3, 1)).reshape(len(weight), -1, 1, 1)
    attributes = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "groups": 1}
    return graph.add_node("Conv", (joined,), (len(weight), *window.output), attributes, {"weight": flat, "bias": bias})


#: What the axes behind the channels are.
_SIDES = {2: ("length",), 3: ("height", "width"), 4: ("depth", "height", "width")}


def read_kernel(node: Node, channels: tuple[str, str]) -> tuple[Wire, NDArray[np.float32], NDArray[np.float32] | None]:
    """The input, the weights and the bias of a convolution of one axis, two or three; weights begin with such channels.

    Raises:
        UnsupportedOpError: If the weights are not constant or there are more axes.
        ModelError: If the kernel's shape is not that of the weights.
    """
    x, weight = node.wire(0), node.weight(1)
    if len(x.shape) not in _SIDES:
        needed = "rows, an image or a volume of channels are needed"
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; {needed}")
    if weight.ndim != len(x.shape) + 1:
        needed = ", ".join((*channels, *_SIDES[len(x.shape)]))
        raise node.unsupported("input 1", f"has shape {weight.shape}; ({needed}) is needed")
    bias = None if node.constant(2) is None else np.ravel(node.weight(2))
    kernel = weight.shape[2:]
    stated = tuple(node.attr("kernel_shape", list(kernel)))
    if stated != kernel:
        what = f"kernel_shape of {node.operator} is {stated}, and its weights are of {kernel}"
        raise ModelError(what, where=node.where, fix="export the model again")
    return x, weight, bias
