"""Values of classes or members that converters put one after another along the samples, and turn back then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import Edit, attributes, axes_of, is_of


def keep_samples_apart(edit: Edit) -> None:
    """Join what each class or member of an ensemble says of a sample along the sample's own axis."""
    edit.each(_turned_back)
    edit.each(_mean_of_members)
    edit.each(_flat_constant)


def _turned_back(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """Columns, one for each class, that are joined along the samples, seen as a row for each class and turned."""
    if not is_of(node, ("Transpose",)) or list(attributes(node).get("perm", [])) != [1, 0]:
        return None
    rows = edit.maker(node.input[0], "Reshape")
    joined = None if rows is None else edit.maker(rows.input[0], "Concat")
    shape = None if rows is None else edit.constant(rows.input[1])
    if joined is None or shape is None or attributes(joined).get("axis") != 0:
        return None
    if shape.tolist() != [len(joined.input), -1]:
        return None
    return [helper.make_node("Concat", joined.input, node.output, name=node.name, axis=1)]


def _mean_of_members(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """The mean over members whose values are joined along an axis of their own in front of the samples."""
    if (
        not is_of(node, ("ReduceMean", "ReduceSum"))
        or axes_of(edit, node) != [0]
        or attributes(node).get("keepdims", 1)
    ):
        return None
    joined = edit.maker(node.input[0], "Concat")
    if joined is None or attributes(joined).get("axis") != 0:
        return None
    members = []
    for name in joined.input:
        view = edit.maker(name, "Reshape")
        shape = None if view is None else edit.constant(view.input[1])
        if view is None or shape is None or shape.size != 3 or shape.tolist()[:2] != [1, -1]:
            return None
        plain, own = edit.fresh(f"{name}_of_member"), edit.hold(np.array([-1, shape[2]], np.int64), f"{name}_shape")
        members.append(helper.make_node("Reshape", [view.input[0], own], [plain], name=plain))
    operator = "Mean" if node.op_type == "ReduceMean" else "Sum"
    names = [member.output[0] for member in members]
    return [*members, helper.make_node(operator, names, node.output, name=node.name)]


def _flat_constant(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """One number of three axes that is added to rows, where a ``Reshape`` makes rows of the result again."""
    if not is_of(node, ("Add", "Sub", "Mul")):
        return None
    readers = [other for other in edit.proto.graph.node if node.output[0] in other.input]
    if not readers or not all(is_of(other, ("Reshape",)) for other in readers):
        return None
    if any(node.output[0] == entry.name for entry in edit.proto.graph.output):
        return None
    for place, name in enumerate(node.input):
        held = edit.constant(name)
        if held is not None and held.size == 1 and held.ndim > 2:
            inputs = list(node.input)
            inputs[place] = edit.hold(held.reshape(1), f"{name}_number")
            return [helper.make_node(node.op_type, inputs, node.output, name=node.name)]
    return None
