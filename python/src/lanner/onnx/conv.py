"""Convolution."""

from __future__ import annotations

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.window import resolve_window


@lowers("Conv")
def lower_conv(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Conv`` over images.

    Shapes: x (c_in, h, w), weight (c_out, c_in / group, kh, kw), bias (c_out,); the result is (c_out, h', w').

    Raises:
        UnsupportedOpError: If the weights are not constant or the convolution is not two-dimensional.
    """
    x, weight = node.wire(0), node.weight(1)
    if weight.ndim != 4 or len(x.shape) != 3:
        raise node.unsupported("kernel_shape", f"has {weight.ndim - 2} dimensions; only images (2) are supported")
    bias = None if node.constant(2) is None else node.weight(2)
    kernel = (weight.shape[2], weight.shape[3])
    window = resolve_window(node, kernel, (x.shape[1], x.shape[2]))
    attributes = {
        "strides": list(window.strides),
        "pads": list(window.pads),
        "dilations": list(window.dilations),
        "groups": int(node.attr("group", 1)),
    }
    tensors = {"weight": weight, "bias": None if bias is None else np.ravel(bias)}
    return graph.add_node("Conv", (x,), (weight.shape[0], *window.output), attributes, tensors)
