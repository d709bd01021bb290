"""Pooling."""

from __future__ import annotations

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.window import Window, resolve_window


@lowers("MaxPool")
def lower_max_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MaxPool`` over images or rows.

    Shapes: x (c, h, w) or (c, l); the result is (c, h', w') or (c, l').

    Raises:
        UnsupportedOpError: If the kernel has three axes, is dilated, or the indices are used.
    """
    node.single_output()
    x, window = _image(node, graph), _window(node)
    pooled = graph.add_node("MaxPool", (x,), (x.shape[0], *window.output), _attributes(window))
    return _as_input(node, graph, pooled)


@lowers("AveragePool")
def lower_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``AveragePool`` over images or rows.

    Shapes: x (c, h, w) or (c, l); the result is (c, h', w') or (c, l').

    Raises:
        UnsupportedOpError: If the kernel has three axes or is dilated, or if ``ceil_mode`` makes windows
            reach beyond padding that ``count_include_pad`` counts.
    """
    x, window = _image(node, graph), _window(node)
    counted = bool(node.attr("count_include_pad", 0))
    if counted and any(window.overhang):
        raise node.unsupported("ceil_mode", "with count_include_pad is not supported where windows overhang")
    attributes = {**_attributes(window), "count_include_pad": counted}
    pooled = graph.add_node("AveragePool", (x,), (x.shape[0], *window.output), attributes)
    return _as_input(node, graph, pooled)


@lowers("GlobalAveragePool")
def lower_global_average_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalAveragePool``.

    Shapes: x (c, h, w) or (c, l); the result is (c, 1, 1) or (c, 1).
    """
    return _as_input(node, graph, graph.global_average_pool(_image(node, graph)))


@lowers("GlobalMaxPool")
def lower_global_max_pool(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``GlobalMaxPool``.

    Shapes: x (c, h, w) or (c, l); the result is (c, 1, 1) or (c, 1).
    """
    return _as_input(node, graph, graph.global_max_pool(_image(node, graph)))


def _image(node: Node, graph: GraphBuilder) -> Wire:
    x = node.wire(0)
    if len(x.shape) not in (2, 3):
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; an image or rows of channels are needed")
    return graph.image(x)


def _as_input(node: Node, graph: GraphBuilder, pooled: Wire) -> Wire:
    return graph.rows(pooled) if len(node.wire(0).shape) == 2 else pooled


def _window(node: Node) -> Window:
    sides = node.wire(0).shape[1:]
    kernel: list[int] = list(node.attr("kernel_shape", []))
    dilations: list[int] = list(node.attr("dilations", []))
    if len(kernel) != len(sides):
        raise node.unsupported("kernel_shape", f"is {kernel}; {len(sides)} numbers are needed")
    if any(dilation != 1 for dilation in dilations):
        raise node.unsupported("dilations", f"is {dilations}; only 1 is supported")
    return resolve_window(node, tuple(kernel), sides)


def _attributes(window: Window) -> dict[str, list[int]]:
    return {"kernel": list(window.kernel), "strides": list(window.strides), "pads": list(window.pads)}
