"""Convolution."""

from __future__ import annotations

import numpy as np

from lanner.errors import ModelError
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
        ModelError: If the kernel's shape is not that of the weights.
    """
    x, weight = node.wire(0), node.weight(1)
    if len(x.shape) != 3:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; an image is needed")
    if weight.ndim != 4:
        raise node.unsupported("input 1", f"has shape {weight.shape}; (out, in / group, height, width) is needed")
    bias = None if node.constant(2) is None else node.weight(2)
    kernel = (weight.shape[2], weight.shape[3])
    stated = tuple(node.attr("kernel_shape", list(kernel)))
    if stated != kernel:
        what = f"kernel_shape of Conv is {stated}, and its weights are of {kernel}"
        raise ModelError(what, where=node.where, fix="export the model again")
    window = resolve_window(node, kernel, (x.shape[1], x.shape[2]))
    attributes = {
        "strides": list(window.strides),
        "pads": list(window.pads),
        "dilations": list(window.dilations),
        "groups": int(node.attr("group", 1)),
    }
    tensors = {"weight": weight, "bias": None if bias is None else np.ravel(bias)}
    return graph.add_node("Conv", (x,), (weight.shape[0], *window.output), attributes, tensors)
