"""Batch normalization, with the statistics that training left."""

from __future__ import annotations

from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("BatchNormalization")
def lower_batch_normalization(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``BatchNormalization``: ``(x - mean) / sqrt(var + epsilon) * scale + bias`` per channel.

    Shapes: x (c, ...), the four constants (c,); the result has x's shape.

    Raises:
        UnsupportedOpError: If it is in training mode, or a statistic is not constant.
    """
    node.require("training_mode", 0)
    node.single_output()
    x = node.wire(0)
    names = ("scale", "bias", "mean", "var")
    tensors = {name: node.weight(index) for index, name in enumerate(names, 1)}
    for name, tensor in tensors.items():
        if tensor.shape != x.shape[:1]:
            raise ModelError(f"{name} has shape {tensor.shape}, not {x.shape[:1]}", where=node.where)
    return graph.elementwise("BatchNorm", x, {"eps": float(node.attr("epsilon", 1e-5))}, dict(tensors))
