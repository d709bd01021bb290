"""The batch of a file's input: samples are computed one at a time, however many it fixes and wherever they lie."""

from __future__ import annotations

import onnx
from onnx import helper

from lanner.onnx.registry import RECURRENT

#: The name that a batch axis gets whose size was fixed.
_SYMBOL = "batch"


def free_batch(proto: onnx.ModelProto) -> None:
    """Make the batch axis of a model symbolic where it is fixed at two or more, in place.

    A first axis counts as a batch where the only input and every output have the same: a model without a batch axis has
    other outputs. The lowerings then check node by node that samples stay apart, as they do for every model; a node
    that needs the fixed size is refused.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [entry for entry in proto.graph.input if entry.name not in constants]
    sizes = {_first(entry) for entry in (*inputs, *proto.graph.output)}
    if len(inputs) != 1 or len(sizes) != 1 or min(sizes) < 2:
        return
    for entry in (*inputs, *proto.graph.output):
        entry.type.tensor_type.shape.dim[0].dim_param = _SYMBOL
    # They state the fixed size.
    del proto.graph.value_info[:]


def samples_first(proto: onnx.ModelProto) -> None:
    """Let the samples of a model's input come first, in place, where they lie behind the steps of sequences.

    So they do where the second axis is symbolic and the first is not, or where a recurrent layer with one sample reads
    the input as it is. A Transpose is put before what reads the input then.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [entry for entry in proto.graph.input if entry.name not in constants]
    sides = inputs[0].type.tensor_type.shape.dim if len(inputs) == 1 else []
    if len(sides) < 3 or sides[0].dim_value < 2 or sides[1].dim_value > 1:
        return
    name = inputs[0].name
    if sides[1].dim_value == 1 and not any(_reads_steps(node, name) for node in proto.graph.node):
        return
    steps, batch = onnx.TensorShapeProto.Dimension(), onnx.TensorShapeProto.Dimension()
    steps.CopyFrom(sides[0])
    batch.CopyFrom(sides[1])
    sides[0].CopyFrom(batch)
    sides[1].CopyFrom(steps)
    turned = f"{name}_steps_first"
    for node in proto.graph.node:
        node.input[:] = [turned if read == name else read for read in node.input]
    order = [1, 0, *range(2, len(sides))]
    proto.graph.node.insert(0, helper.make_node("Transpose", [name], [turned], name=turned, perm=order))


def _reads_steps(node: onnx.NodeProto, name: str) -> bool:
    """Whether a node takes a tensor as the steps of sequences, each of all samples."""
    layouts = [attribute.i for attribute in node.attribute if attribute.name == "layout"]
    return node.op_type in RECURRENT and node.input[0] == name and not any(layouts)


def _first(entry: onnx.ValueInfoProto) -> int:
    """The first axis where it has a number, else 0."""
    sides = entry.type.tensor_type.shape.dim
    return int(sides[0].dim_value) if len(sides) > 1 else 0
