"""Models of other numbers than float32: half, bfloat16 and double ones, and integers that are cast to floats first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from lanner.onnx.bodies import names_read
from lanner.onnx.contents import all_graphs, all_tensors, constant_nodes

#: Types of floats that become float32.
OTHER_FLOATS = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)

FLOATS = (TensorProto.FLOAT, *OTHER_FLOATS)

INTEGERS = (
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
)


def to_float32(proto: onnx.ModelProto) -> None:
    """Make a model whose input is of another type one of float32.

    Where the input is of another float type, every tensor of that type becomes float32. Where it is of integers and
    only moved until it is cast to floats, it is taken as floats from the beginning. Any other model stays as it is.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    for entry in proto.graph.input:
        kind = entry.type.tensor_type.elem_type
        if entry.name in constants:
            continue
        if kind in OTHER_FLOATS:
            _convert_floats(proto.graph, kind)
        elif kind in INTEGERS:
            _take_as_floats(proto.graph, entry)


def _convert_floats(graph: onnx.GraphProto, kind: int) -> None:
    for tensor in all_tensors(graph):
        if tensor.data_type == kind:
            with np.errstate(over="ignore"):
                values = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for inner in all_graphs(graph):
        for entry in (*inner.input, *inner.output, *inner.value_info):
            if entry.type.tensor_type.elem_type == kind:
                entry.type.tensor_type.elem_type = TensorProto.FLOAT
        for attribute in (attribute for node in inner.node for attribute in node.attribute):
            # The type that a Cast, or one that makes constants, gives.
            if attribute.name in ("to", "dtype") and attribute.i == kind:
                attribute.i = TensorProto.FLOAT


def _take_as_floats(graph: onnx.GraphProto, entry: onnx.ValueInfoProto) -> None:
    """Let an integer input be of floats if nothing but a Cast to floats, their unit or a shape is computed from it."""
    if is_mask(entry.name, graph):
        return
    moved, pending = {entry.name}, [entry.name]
    while pending:
        name = pending.pop()
        for node in graph.node:
            if name not in names_read(node) or node.op_type == "Shape" or _makes_floats(node):
                continue
            # A body may read it, too, which shows in no list of inputs.
            if (
                name not in node.input
                or node.op_type not in _MOVEMENTS
                or name in node.input[1:]
                or node.domain not in ("", "ai.onnx")
            ):
                return
            pending += [output for output in node.output if output not in moved]
            moved.update(node.output)
    if moved.intersection(output.name for output in graph.output):
        return
    entry.type.tensor_type.elem_type = TensorProto.FLOAT
    kept = [info for info in graph.value_info if info.name not in moved]
    del graph.value_info[:]
    graph.value_info.extend(kept)


def is_mask(name: str, graph: onnx.GraphProto) -> bool:
    """Whether an input, or what is a function of each of its elements, is a mask's bit.

    It is multiplied by a number that masks, or is made floats, and those are asked for their truth, or counted.
    """
    held = {tensor.name: tensor for tensor in graph.initializer} | constant_nodes(graph)
    seen, pending = {name}, [name]
    while pending:
        read = pending.pop()
        for node in graph.node:
            if read not in node.input:
                continue
            others = [numpy_helper.to_array(held[other]) for other in node.input if other in held]
            if node.op_type == "Mul" and any(each.size == 1 and each.min() <= -MASKING for each in others):
                return True
            if node.op_type == "CumSum" or (read != name and _casts_to(node, (TensorProto.BOOL,))):
                return True
            moves = node.op_type in (*_MOVEMENTS, "Cast", "Expand") and read == node.input[0]
            if moves or (node.op_type in ("Sub", "Add", "Mul") and others):
                pending += [output for output in node.output if output not in seen]
                seen.update(node.output)
    return False


#: Numbers below the negative of this are a mask's, which scores hardly make up for.
MASKING = 1000.0


def _makes_floats(node: onnx.NodeProto) -> bool:
    """Whether a node takes integers for the same numbers as floats, in a unit of theirs or not."""
    return node.op_type == "DequantizeLinear" or _casts_to(node, FLOATS)


def _casts_to(node: onnx.NodeProto, kinds: Sequence[int]) -> bool:
    return node.op_type == "Cast" and any(
        attribute.name == "to" and helper.get_attribute_value(attribute) in kinds for attribute in node.attribute
    )


#: Operators of one value that move its elements without looking at them.
_MOVEMENTS = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Split")
