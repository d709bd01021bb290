"""Support vector machines: the decisions between pairs of classes, and what converters make of them.

ONNX's ``SVMClassifier`` holds the vote of the pairs' winners inside. It keeps the decisions alone here, and a sum of
comparisons with 0 counts the votes behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import ML, Edit, attributes, is_of


def split_machines(edit: Edit) -> None:
    """Give every classifier of support vectors nodes for its votes and its label."""
    edit.each(_split)


def _split(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    if not is_of(node, ("SVMClassifier",), ML) or not node.output[0]:
        return None
    held = attributes(node)
    numbers, words = held.get("classlabels_ints", []), held.get("classlabels_strings", [])
    classes = len(words or numbers)
    if classes < 2 or held.get("post_transform", b"NONE") != b"NONE" or not held.get("support_vectors"):
        return None
    label, name = node.output[0], node.name or node.output[0]
    told = node.output[1] if len(node.output) > 1 else ""
    likely = bool(held.get("prob_a"))
    decisions = told if told and not likely else edit.fresh(f"{label}_decisions")
    kept = {key: value for key, value in held.items() if key not in ("prob_a", "prob_b")}
    # onnxruntime writes the label whether anybody reads it or not.
    made = [
        helper.make_node(node.op_type, node.input, [edit.fresh(f"{label}_unread"), decisions], name, domain=ML, **kept)
    ]
    if told and likely and classes == 2:
        made += _likely(edit, decisions, told, held)
    elif told and likely:
        node_of = helper.make_node(node.op_type, node.input, [edit.fresh(f"{label}_unread"), told], domain=ML, **held)
        node_of.name = f"{name}_probabilities"
        made.append(node_of)
    index, labels = edit.fresh(f"{label}_index"), edit.hold(_labels(words, numbers), f"{label}_labels")
    votes, counting = _votes(edit, decisions, label, classes)
    return [
        *made,
        *counting,
        helper.make_node("ArgMax", [votes], [index], name=f"{name}_index", axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", [labels, index], [label], name=f"{name}_label", domain=ML),
    ]


def _likely(edit: Edit, decisions: str, told: str, held: dict[str, Any]) -> list[onnx.NodeProto]:
    """The probabilities of two classes: a logistic function of the decision for the first one."""
    slope, term = held["prob_a"][0], held["prob_b"][0]
    weight = edit.hold(np.array([[0.0], [slope]], np.float32), f"{told}_slope")
    bias, one = (edit.hold(np.full(1, value, np.float32), f"{told}_bias") for value in (term, 1.0))
    scores, second, first = (edit.fresh(f"{told}_{name}") for name in ("scores", "second", "first"))
    return [
        helper.make_node("Gemm", [decisions, weight, bias], [scores], name=scores),
        helper.make_node("Sigmoid", [scores], [second], name=second),
        helper.make_node("Sub", [one, second], [first], name=first),
        helper.make_node("Concat", [first, second], [told], name=f"{told}_both", axis=1),
    ]


def _votes(edit: Edit, decisions: str, label: str, classes: int) -> tuple[str, list[onnx.NodeProto]]:
    """The scores whose largest is the label's, and the nodes that make them."""
    votes = edit.fresh(f"{label}_votes")
    if classes == 2:
        # The first of two columns is above 0 where the second class is chosen.
        return votes, [helper.make_node("Neg", [decisions], [votes], name=votes)]
    pairs = list(combinations(range(classes), 2))
    # Who does not win a pair loses it, and the other one has its vote. Sums of truth values are exact, ties too.
    of_class = [
        [row + (other == index) * len(pairs) for row, (one, other) in enumerate(pairs) if index in (one, other)]
        for index in range(classes)
    ]
    above, won, lost, both = (edit.fresh(f"{label}_{name}") for name in ("above", "won", "lost", "both"))
    each, apart = edit.fresh(f"{label}_each"), edit.fresh(f"{label}_apart")
    zero, one = (edit.hold(np.full(1, value, np.float32), f"{label}_bound") for value in (0.0, 1.0))
    columns = edit.hold(np.array(of_class, np.int64).ravel(), f"{label}_pairs")
    shape = edit.hold(np.array([-1, classes, classes - 1], np.int64), f"{label}_shape")
    return votes, [
        helper.make_node("Greater", [decisions, zero], [above], name=above),
        helper.make_node("Cast", [above], [won], name=won, to=onnx.TensorProto.FLOAT),
        helper.make_node("Sub", [one, won], [lost], name=lost),
        helper.make_node("Concat", [won, lost], [both], name=both, axis=1),
        helper.make_node("ArrayFeatureExtractor", [both, columns], [each], name=each, domain=ML),
        helper.make_node("Reshape", [each, shape], [apart], name=apart),
        edit.sum_along(apart, votes, 2),
    ]


def _labels(words: Sequence[bytes], numbers: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.array(words, object) if words else np.array(numbers, np.int64)
