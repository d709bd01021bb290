"""Probabilities that converters write in parts: logistic functions, and softmaxes by logarithms or exponentials."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import helper

from lanner.onnx.classical.edit import ML, Edit, attributes, axes_of, is_of


def join_probabilities(edit: Edit) -> None:
    """Put a ``Sigmoid``, a ``Softmax`` or a ``LogSoftmax`` in the place of what computes one."""
    edit.each(_log_softmax)
    edit.each(_softmax)
    edit.each(_sigmoid)
    edit.each(_without_guard)


def _log_softmax(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """``x - logsumexp(x)`` along the classes."""
    if not is_of(node, ("Sub",)):
        return None
    total = edit.maker(edit.behind_views(node.input[1]), "ReduceLogSumExp")
    if total is None or total.input[0] != node.input[0]:
        return None
    axes = axes_of(edit, total)
    if axes is None or axes not in ([1], [-1]):
        return None
    return [helper.make_node("LogSoftmax", [node.input[0]], node.output, name=node.name, axis=axes[0])]


def _softmax(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """``exp(logsoftmax(x))``, and ``exp(x - max(x))`` over its sum."""
    if is_of(node, ("Exp",)):
        inner = edit.maker(node.input[0], "LogSoftmax")
        if inner is None:
            return None
        axis = attributes(inner).get("axis", -1)
        return [helper.make_node("Softmax", [inner.input[0]], node.output, name=node.name, axis=axis)]
    if not is_of(node, ("Div",)):
        return None
    powers, total = edit.maker(node.input[0], "Exp"), edit.maker(node.input[1], "ReduceSum")
    if powers is None or total is None or total.input[0] != node.input[0] or not _along_classes(edit, total):
        return None
    less = edit.maker(powers.input[0], "Sub")
    largest = None if less is None else edit.maker(less.input[1], "ReduceMax")
    if less is None or largest is None or largest.input[0] != less.input[0]:
        return None
    axes = axes_of(edit, total)
    if axes is None or not _along_classes(edit, largest) or axes_of(edit, largest) != axes:
        return None
    return [helper.make_node("Softmax", [less.input[0]], node.output, name=node.name, axis=axes[0])]


def _sigmoid(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """``1 / (1 + exp(z))``, which is the sigmoid of ``-z``."""
    if is_of(node, ("Reciprocal",)):
        below = node.input[0]
    elif is_of(node, ("Div",)) and edit.number(node.input[0]) == 1.0:
        below = node.input[1]
    else:
        return None
    added = edit.maker(below, "Add")
    if added is None:
        return None
    one, other = (edit.number(name) for name in added.input)
    power = edit.maker(added.input[1 if one == 1.0 else 0], "Exp") if 1.0 in (one, other) else None
    if power is None:
        return None
    negated = edit.fresh(f"{node.output[0]}_logit")
    return [
        helper.make_node("Neg", [power.input[0]], [negated], name=f"{node.name}_logit"),
        helper.make_node("Sigmoid", [negated], node.output, name=node.name),
    ]


def _without_guard(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """Sigmoids and their sum where the converter adds 1 if the sum is 0, which that of sigmoids is not."""
    if not is_of(node, ("Add",)):
        return None
    for kept, guard in (tuple(node.input), tuple(node.input)[::-1]):
        total = _guarded(edit, guard)
        if total is not None and edit.maker(edit.behind_views(total.input[0]), "Sigmoid") is not None:
            return [helper.make_node("Identity", [kept], node.output, name=node.name)]
    return None


def join_shares(edit: Edit) -> None:
    """Put a ``Softmax`` of the sigmoids' logarithms in the place of sigmoids over their sum, which may be near 0."""
    edit.each(_shares)


def _shares(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    sigmoid = edit.maker(node.input[0], "Sigmoid") if node.input else None
    if sigmoid is None:
        return None
    if is_of(node, ("Div",)):
        total = edit.maker(node.input[1], "ReduceSum")
        if total is None or total.input[0] != node.input[0] or not _along_classes(edit, total):
            return None
    elif not is_of(node, ("Normalizer",), ML) or attributes(node).get("norm") != b"L1":
        return None
    negated, lines, logarithms = (edit.fresh(f"{node.output[0]}_{name}") for name in ("negated", "line", "logarithm"))
    return [
        helper.make_node("Neg", [sigmoid.input[0]], [negated], name=negated),
        helper.make_node("Softplus", [negated], [lines], name=lines),
        helper.make_node("Neg", [lines], [logarithms], name=logarithms),
        helper.make_node("Softmax", [logarithms], node.output, name=node.name, axis=1),
    ]


def _guarded(edit: Edit, name: str) -> onnx.NodeProto | None:
    """The sum of which a tensor is 1, or a constant, where it is 0."""
    scaled = edit.maker(name, "Mul")
    if scaled is not None:
        name = next((each for each in scaled.input if edit.number(each) is None), name)
    for operators in (("Cast",), ("Not",), ("Cast",)):
        node = edit.maker(name, *operators)
        if node is None:
            return None
        name = node.input[0]
    total = edit.maker(name, "ReduceSum")
    return total if total is not None and _along_classes(edit, total) else None


def _along_classes(edit: Edit, node: onnx.NodeProto) -> bool:
    """Whether a reduction is along the last axis, or the second of a table's, which it keeps."""
    return axes_of(edit, node) in ([1], [-1]) and bool(attributes(node).get("keepdims", 1))
