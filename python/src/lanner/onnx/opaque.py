"""Values that cannot be computed, because a node on the way to them is refused: what of their shapes is known.

A refused node must not hide what stands behind it. Its output is a wire without a node where ONNX's shape inference
tells the shape of a sample, so that the nodes behind are lowered and checked as usual, and `Opaque` elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import onnx
from onnx import numpy_helper, shape_inference

from lanner.onnx.builder import Wire
from lanner.onnx.contents import constant_nodes
from lanner.onnx.folding import BATCH, check_size

#: A tensor's shape with a batch of one; None where it is not known.
Shape = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A tensor that cannot be computed.

    Attributes:
        shape: Its shape, where it is known.
        of_shapes: Whether it follows from the shapes of other tensors alone, and so is a constant of unknown value.
    """

    shape: Shape = None
    of_shapes: bool = False


def follows_from_shapes(operator: str, inputs: Iterable[object]) -> bool:
    """Whether a node's value is a constant, though not a known one: what it reads is, or it asks for a shape alone."""
    if operator in ("Shape", "Size"):
        return True
    return not any(isinstance(value, Wire) or (isinstance(value, Opaque) and not value.of_shapes) for value in inputs)


@dataclass(frozen=True)
class InferredShapes:
    """The shapes of a model's tensors for one sample, as far as ONNX infers them.

    Attributes:
        proto: The model.
    """

    proto: onnx.ModelProto = field(repr=False)

    def stand_in(self, name: str) -> Wire | Opaque:
        """What stands in for a tensor that is not computed."""
        shape = self.shapes.get(name)
        if shape is None or len(shape) < 2 or shape[0] != BATCH:
            return Opaque(shape)
        # No node of the graph has such a name.
        return Wire(f"?{name}", shape[1:])

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes that are known in full, by the tensor's name, with the batch axis."""
        if any(map(_ends_inference, self.proto.graph.node)):
            return {}
        try:
            model = _of_one_sample(self.proto)
            inferred = shape_inference.infer_shapes(model, data_prop=_is_small(model.graph)).graph
        except Exception:  # noqa: BLE001 - inference raises errors of many kinds, and no shape is known then
            return {}
        known = {}
        for entry in (*inferred.input, *inferred.value_info, *inferred.output):
            tensor = entry.type.tensor_type
            sides = [side.dim_value for side in tensor.shape.dim]
            if tensor.HasField("shape") and all(side > 0 for side in sides):
                known[entry.name] = tuple(sides)
        for initializer in inferred.initializer:
            known[initializer.name] = tuple(initializer.dims)
        return known


def _is_small(graph: onnx.GraphProto) -> bool:
    """Whether no operator makes a constant of the file's own numbers that is too large for any use."""
    held = {tensor.name: tensor for tensor in graph.initializer}
    held |= constant_nodes(graph)
    try:
        for node in graph.node:
            if node.input and all(name in held for name in node.input):
                check_size(node.op_type, [numpy_helper.to_array(held[name]) for name in node.input])
    except ArithmeticError:
        return False
    return True


def _of_one_sample(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a batch of one, and without the shapes that the file states for another."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    constants = {tensor.name for tensor in copy.graph.initializer}
    for entry in copy.graph.input:
        sides = entry.type.tensor_type.shape.dim
        if entry.name not in constants and len(sides) > 1:
            sides[0].dim_value = BATCH
    del copy.graph.value_info[:]
    for entry in copy.graph.output:
        entry.type.tensor_type.ClearField("shape")
    return copy


def _ends_inference(node: onnx.NodeProto) -> bool:
    """Whether onnx's inference of a node's shape ends the process: of an encoder of floats as integers."""
    names = {attribute.name for attribute in node.attribute}
    return node.op_type == "LabelEncoder" and {"keys_floats", "values_int64s"} <= names
