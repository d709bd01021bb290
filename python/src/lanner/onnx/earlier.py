"""What the conversion of older opsets leaves out."""

from __future__ import annotations

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
