"""What the conversion of older opsets leaves out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
from onnx import helper, numpy_helper

from lanner.errors import UnsupportedOpError
from lanner.onnx.contents import constant_nodes

#: The last opset whose Resize had no attributes but its mode.
PLAIN_RESIZE = 10


def complete_resizes(proto: onnx.ModelProto) -> None:
    """Give each Resize of a converted model the attributes that stand for what it did at opset 10 and before.

    There elements were counted as in mode ``asymmetric``, and a place between two went to the lower one where the axis
    grew, to the upper one, in onnxruntime, where it shrank. Upsample has become Resize in the conversion.

    Raises:
        UnsupportedOpError: If one Resize does both to a place between two, which no attribute says.
    """
    held = {tensor.name: tensor for tensor in proto.graph.initializer} | constant_nodes(proto.graph)
    for node in proto.graph.node:
        if node.op_type != "Resize" or len(node.input) < 3:
            continue
        scales = np.ravel(numpy_helper.to_array(held[node.input[2]]) if node.input[2] in held else np.zeros(0))
        shrinks = [scale for scale in scales.tolist() if scale < 1 and not (1 / scale).is_integer()]
        grows = [scale for scale in scales.tolist() if scale > 1]
        if shrinks and grows:
            raise UnsupportedOpError(
                "scales of Resize shrink one axis and let another one grow",
                where=f"node {node.name or node.output[0]}",
                fix="export the model with opset 11 or later",
            )
        rounding = "ceil" if shrinks else "floor"
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
        node.attribute.append(helper.make_attribute("nearest_mode", rounding))


def keep_samples_apart(proto: onnx.ModelProto) -> None:
    """Let what the conversion flattens for a softmax of several axes keep the axes in front, the batch among them.

    A softmax of opset 12 and before was one over all axes from one on. Converted, all in front of that are one axis,
    too, for a softmax to which it makes no difference.
    """
    producers = {name: node for node in proto.graph.node for name in node.output}
    readers = Counter(name for node in proto.graph.node for name in node.input)
    for node in proto.graph.node:
        flat = producers.get(node.input[0]) if node.op_type in ("Softmax", "LogSoftmax") else None
        if flat is None or flat.op_type != "Flatten" or readers[flat.output[0]] != 1:
            continue
        axis = next((entry.i for entry in flat.attribute if entry.name == "axis"), 1)
        if axis > 1:
            sides = numpy_helper.from_array(np.array([0] * axis + [-1], np.int64), f"{flat.output[0]}_sides")
            proto.graph.initializer.append(sides)
            flat.op_type = "Reshape"
            flat.input.append(sides.name)
            del flat.attribute[:]
