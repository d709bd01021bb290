"""Takes linear classifiers apart, so that a softmax and a label are operators of their own, as a network's are.

The output policy decides what of the scores the client learns, and a network's end is left out (`lanner.onnx.ending`).
ONNX's ``LinearClassifier`` holds a softmax and the choice of the label inside, and scikit-learn's converter puts a
``Normalizer`` behind, which does nothing to numbers that add up to one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_DOMAIN = "ai.onnx.ml"


def split_classifiers(proto: onnx.ModelProto) -> None:
    """Give every linear classifier nodes for its softmax or sigmoid and for its label, in place.

    Two classes whose scores are each other's negatives have a softmax too: ``sigmoid(s)`` is the softmax of ``-s / 2``
    and ``s / 2``.
    """
    nodes: list[onnx.NodeProto] = []
    ends: dict[str, str] = {}
    for node in proto.graph.node:
        nodes.append(node)
        if (node.domain, node.op_type) == (_DOMAIN, "LinearClassifier") and len(node.output) > 1:
            end = _split(node) if node.output[1] else None
            nodes += [end] if end is not None else []
            ends |= {end.output[0]: end.op_type} if end is not None else {}
            if node.output[0]:
                nodes += _choose_label(node, proto.graph)
        elif _adds_up(node) and ends.get(node.input[0]) == "Softmax":
            node.CopyFrom(helper.make_node("Identity", node.input, node.output, name=node.name))
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    if not any(entry.domain in ("", "ai.onnx") for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid("", 13))


def _choose_label(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """What chooses the label of the largest score, which the node does not do then; its labels become a constant."""
    members = _attributes(node)
    numbers, words = members.get("classlabels_ints", []), members.get("classlabels_strings", [])
    label, name = node.output[0], node.name or node.output[0]
    index, labels = f"{label}_index", f"{label}_labels"
    held = np.array(words, object) if words else np.array(numbers, np.int64)
    graph.initializer.append(numpy_helper.from_array(held, labels))
    node.output[0], scores = "", node.output[1] or f"{label}_scores"
    node.output[1] = scores
    return [
        helper.make_node("ArgMax", [scores], [index], name=f"{name}_index", axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", [labels, index], [label], name=f"{name}_label", domain=_DOMAIN),
    ]


def _adds_up(node: onnx.NodeProto) -> bool:
    """Whether a node divides by the sum."""
    return (node.domain, node.op_type) == (_DOMAIN, "Normalizer") and _attributes(node).get("norm", b"MAX") == b"L1"


def _split(node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Leave a classifier its scores; returns what is to follow, or None where nothing is or can be."""
    members = _attributes(node)
    transform = members.get("post_transform", b"NONE")
    rows = len(members.get("intercepts", [])) or 1
    labels = len(members.get("classlabels_ints") or members.get("classlabels_strings") or [])
    halved = transform == b"LOGISTIC" and _halved(members, rows, labels)
    if not halved and (rows != labels or transform not in (b"SOFTMAX", b"LOGISTIC")):
        return None
    kept = {**members, **(halved or {}), "post_transform": "NONE"}
    output, scores = node.output[1], f"{node.output[1]}_scores"
    name = node.name or output
    node.CopyFrom(
        helper.make_node(node.op_type, node.input, [node.output[0], scores], name=name, domain=_DOMAIN, **kept)
    )
    if transform == b"LOGISTIC" and not halved:
        return helper.make_node("Sigmoid", [scores], [output], name=f"{name}_sigmoid")
    return helper.make_node("Softmax", [scores], [output], name=f"{name}_softmax", axis=1)


def _halved(members: dict[str, Any], rows: int, labels: int) -> dict[str, list[float]] | None:
    """The scores whose softmax two logistic classes are: of one row, or of two that are each other's negatives."""
    weights = np.array(members.get("coefficients", []), np.float32).reshape(rows, -1)
    terms = np.array(members.get("intercepts") or [0.0], np.float32)
    opposite = rows == 2 and np.array_equal(weights[0], -weights[1]) and terms[0] == -terms[1]
    if labels != 2 or not (rows == 1 or opposite):
        return None
    half, term = weights[-1] / 2, float(terms[-1]) / 2
    return {"coefficients": np.concatenate([-half, half]).tolist(), "intercepts": [-term, term]}


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
