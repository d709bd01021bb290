"""Pooling."""

from __future__ import annotations

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.window import Window, resolve_window


@lowers("MaxPool")
def lower_max_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MaxPool`` over images.

    Shapes: x (c, h, w); the result is (c, h', w').

    Raises:
        UnsupportedOpError: If the kernel is not two-dimensional, is dilated, or the indices are used.
    """
    node.single_output()
    x, window = node.wire(0), _window(node)
    return graph.add_node("MaxPool", (x,), (x.shape[0], *window.output), _attributes(window))


@lowers("AveragePool")
def lower_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``AveragePool`` over images.

    Shapes: x (c, h, w); the result is (c, h', w').

    Raises:
        UnsupportedOpError: If the kernel is not two-dimensional or is dilated, or if ``ceil_mode`` makes windows
            reach beyond padding that ``count_include_pad`` counts.
    """
    x, window = node.wire(0), _window(node)
    counted = bool(node.attr("count_include_pad", 0))
    if counted and any(window.overhang):
        raise node.unsupported("ceil_mode", "with count_include_pad is not supported where windows overhang")
    attributes = {**_attributes(window), "count_include_pad": counted}
    return graph.add_node("AveragePool", (x,), (x.shape[0], *window.output), attributes)


@lowers("GlobalAveragePool")
def lower_global_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalAveragePool``.

    Shapes: x (c, h, w); the result is (c, 1, 1).
    """
    x = node.wire(0)
    if len(x.shape) != 3:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; an image is needed")
    return graph.global_average_pool(x)


@lowers("ReduceMean")
def lower_reduce_mean(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ReduceMean`` over an image's height and width, which is ``GlobalAveragePool``.

    Shapes: x (c, h, w) or, with axes 1 and 2, (h, w, c); the result has sides of 1 in place of h and w, or is (c,)
    without ``keepdims``.

    Raises:
        UnsupportedOpError: If other axes are reduced.
    """
    x = node.wire(0)
    listed = node.constant(1) if len(node.inputs) > 1 else None
    axes = node.attr("axes", []) if listed is None else np.asarray(listed).tolist()
    reduced = sorted(axis % 4 for axis in axes)
    if len(x.shape) != 3 or reduced not in ([2, 3], [1, 2]):
        raise node.unsupported("axes", f"is {list(axes)}; only the height and width of an image are supported")
    channels_last = reduced == [1, 2]
    pooled = graph.global_average_pool(graph.transpose(x, (2, 0, 1)) if channels_last else x)
    channels = pooled.shape[0]
    if not node.attr("keepdims", 1):
        return graph.reshape(pooled, (channels,))
    return graph.reshape(pooled, (1, 1, channels)) if channels_last else pooled


def _window(node: Node) -> Window:
    x = node.wire(0)
    kernel: list[int] = list(node.attr("kernel_shape", []))
    if len(kernel) != 2 or len(x.shape) != 3:
        raise node.unsupported("kernel_shape", f"is {kernel}; only images are supported")
    node.require("dilations", [1, 1])
    return resolve_window(node, (kernel[0], kernel[1]), (x.shape[1], x.shape[2]))


def _attributes(window: Window) -> dict[str, list[int]]:
    return {"kernel": list(window.kernel), "strides": list(window.strides), "pads": list(window.pads)}
