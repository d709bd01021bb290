"""The choice of a label: the largest of scores alone, without what all classes share and what leaves their order.

The nearest centre is that of the least distance. Squares of distances are ``|x|^2 - 2 c x + |c|^2``, of which the first
term is the same for all centres, and roots have the order of what they are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import ML, VIEWS, Edit, attributes, is_of
from lanner.onnx.opaque import InferredShapes

#: Operators that hand a label on.
_OF_LABELS = ("ArrayFeatureExtractor", "LabelEncoder")

#: Operators that never change the order of what they are of. A network's end may have a sigmoid, which says more.
_RISING = ("Sqrt", "Exp", "Log", "Tanh")
_EACH_RISING = (*_RISING, "Sigmoid")

#: Operators that never give less than 0, and those that give truth values.
_NEVER_NEGATIVE = ("Sigmoid", "Softmax", "Exp", "Relu", "Abs", "Sqrt", "ReduceSumSquare", "ReduceL1", "ReduceL2")
_TRUTHS = ("Not", "And", "Or", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")


def choose_largest(edit: Edit) -> None:
    """Let every label be the arg-max of scores that are as simple as may be."""
    edit.each(_of_scores)
    labels = {node.output[0] for node in edit.proto.graph.node if _picks(node) and _is_label(edit, node.output[0])}
    if not labels:
        return
    shapes = InferredShapes(edit.proto).shapes

    def chosen(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
        if node.output[0] not in labels:
            return None
        scores = Scores(edit, shapes)
        name = scores.plain(node.input[0])
        if node.op_type == "ArgMin":
            name = scores.negated(name)
        if name == node.input[0]:
            return None
        kept = {key: value for key, value in attributes(node).items() if key != "select_last_index"}
        return [*scores.nodes, helper.make_node("ArgMax", [name], node.output, name=node.name, **kept)]

    edit.each(chosen)


def _of_scores(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """The largest of probabilities along an axis, at any place, as that of the scores that they are of."""
    if not is_of(node, ("ArgMax",)):
        return None
    probabilities = edit.maker(node.input[0], "Softmax", "LogSoftmax")
    if probabilities is None:
        return None
    of, along = attributes(node), attributes(probabilities).get("axis", -1)
    if of.get("axis", 0) != along:
        return None
    return [helper.make_node("ArgMax", probabilities.input, node.output, name=node.name, **of)]


def _picks(node: onnx.NodeProto) -> bool:
    held = attributes(node)
    along = held.get("axis", 0) in (1, -1) and held.get("select_last_index", 0) == 0
    return is_of(node, ("ArgMin", "ArgMax")) and along


def _is_label(edit: Edit, name: str) -> bool:
    """Whether nothing but a label is made of an index."""
    outputs = {output.name for output in edit.proto.graph.output}
    pending, told = [name], False
    while pending:
        each = pending.pop()
        told |= each in outputs
        for node in edit.proto.graph.node:
            if each not in node.input:
                continue
            if not is_of(node, VIEWS) and not is_of(node, _OF_LABELS, ML):
                return False
            pending += node.output
    return told


class Scores:
    """Makes of scores others that have the same order in each sample."""

    def __init__(self, edit: Edit, shapes: dict[str, tuple[int, ...]]) -> None:
        self._edit = edit
        self._shapes = shapes
        self.nodes: list[onnx.NodeProto] = []

    def plain(self, name: str) -> str:
        """Scores of the same order, without a rising function of each, a common divisor and common terms."""
        while True:
            rising = self._edit.maker(name, *_RISING)
            if rising is not None:
                name = rising.input[0]
                continue
            shared = self._edit.maker(name, "Div")
            if shared is not None and self._divides(shared.input[1]):
                name = shared.input[0]
                continue
            joined = self._edit.maker(name, "Concat")
            inner = [] if joined is None else [self._edit.maker(each, *_EACH_RISING) for each in joined.input]
            kinds = {None if node is None else node.op_type for node in inner}
            if joined is not None and None not in kinds and len(kinds) == 1:
                name = self._made("Concat", [node.input[0] for node in inner if node is not None], name, axis=1)
                continue
            apart = self._apart(name)
            if apart == name:
                return name
            name = apart

    def negated(self, name: str) -> str:
        """Scores of the opposite order."""
        return self._made("Neg", [name], name)

    def _apart(self, name: str) -> str:
        """Scores without what is added to all of a sample's."""
        node = self._edit.maker(name, "Add", "Sub", "Gemm", "Neg", "Mul")
        if node is None:
            return name
        if node.op_type == "Gemm":
            return self._gemm(name, node)
        if node.op_type == "Neg":
            inner = self._apart(node.input[0])
            return name if inner == node.input[0] else self.negated(inner)
        first, second = node.input
        if node.op_type == "Mul":
            return self._scaled(name, first, second)
        if self._is_common(second):
            return self._apart(first)
        if self._is_common(first):
            inner = self._apart(second)
            return self.negated(inner) if node.op_type == "Sub" else inner
        parts = [self._apart(first), self._apart(second)]
        return name if parts == [first, second] else self._made(node.op_type, parts, name)

    def _scaled(self, name: str, first: str, second: str) -> str:
        for factor, other in ((first, second), (second, first)):
            if self._edit.number(factor) is not None:
                inner = self._apart(other)
                return name if inner == other else self._made("Mul", [factor, inner], name)
        return name

    def _gemm(self, name: str, node: onnx.NodeProto) -> str:
        if len(node.input) < 3 or not self._is_common(node.input[2]):
            return name
        return self._made("Gemm", list(node.input[:2]), name, **attributes(node))

    def _is_common(self, name: str) -> bool:
        """Whether a tensor depends on the sample, and is one number for all of its classes."""
        return self._shapes.get(name) == (1, 1) and self._edit.constant(name) is None

    def _divides(self, name: str) -> bool:
        return self._is_common(name) and is_never_negative(self._edit, name)

    def _made(self, operator: str, inputs: list[str], like: str, **held: Any) -> str:  # noqa: ANN401 - attributes are of many types
        output = self._edit.fresh(f"{like}_order")
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **held))
        return output


def is_never_negative(edit: Edit, name: str) -> bool:
    """Whether a tensor is 0 or above, whatever the sample."""
    held = edit.constant(name)
    if held is not None:
        return held.dtype.kind in "fiub" and bool((held.astype(np.float64) >= 0).all())
    node = edit.maker(name)
    if node is None:
        return False
    if is_of(node, _NEVER_NEGATIVE):
        return True
    if is_of(node, ("Cast",)):
        return edit.maker(node.input[0], *_TRUTHS) is not None or is_never_negative(edit, node.input[0])
    if is_of(node, ("ReduceSum", "ReduceMean", "ReduceMax")):
        return is_never_negative(edit, node.input[0])
    if is_of(node, ("Clip",)):
        low = edit.number(node.input[1]) if len(node.input) > 1 else None
        return low is not None and low >= 0
    if is_of(node, ("Add",)) and _lifted(edit, node):
        return True
    return is_of(node, ("Add", "Sum", "Mul", "Div", "Concat", "Max")) and all(
        is_never_negative(edit, each) for each in node.input
    )


def _lifted(edit: Edit, node: onnx.NodeProto) -> bool:
    """Whether a sum is a clipped value plus at least what the lower bound lacks of 0."""
    for clipped, term in (tuple(node.input), tuple(node.input)[::-1]):
        clip, added = edit.maker(clipped, "Clip"), edit.number(term)
        low = edit.number(clip.input[1]) if clip is not None and len(clip.input) > 1 else None
        if low is not None and added is not None and low + added >= 0:
            return True
    return False
