"""Takes classifiers of trees apart: the sums of leaves, a softmax or logistic behind them, and the label."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from lanner.onnx.ending import TRANSFORMS

_DOMAIN = "ai.onnx.ml"


def split_trees(proto: onnx.ModelProto) -> None:
    """Give every classifier of trees, and every regressor with a transform, nodes for what follows the sums."""
    nodes: list[onnx.NodeProto] = []
    ones = {tensor.name for tensor in proto.graph.initializer if _is_one(tensor)}
    if not any(node.domain == _DOMAIN and node.op_type in _KINDS for node in proto.graph.node):
        return
    for node in proto.graph.node:
        made = None
        if node.op_type == "Mul" and len(node.input) == 2 and node.input[1] in ones:
            # Converters of LightGBM end in one.
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output, name=node.name))
        if node.domain == _DOMAIN and node.op_type == "TreeEnsembleClassifier":
            made = _split_classifier(node, proto.graph)
        elif node.domain == _DOMAIN and node.op_type == "TreeEnsembleRegressor":
            made = _split_regressor(node)
        nodes += [node] if made is None else made
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


_KINDS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")


def _is_one(tensor: onnx.TensorProto) -> bool:
    return list(tensor.dims) in ([], [1]) and bool((numpy_helper.to_array(tensor) == 1).all())


def _split_classifier(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto] | None:
    held = _attributes(node)
    numbers, words = held.get("classlabels_int64s", []), held.get("classlabels_strings", [])
    labels = words or numbers
    transform = _text(held.get("post_transform", "NONE"))
    weights = _floats(held, "class_weights")
    other = transform in TRANSFORMS
    if not labels or not (other or transform in ("NONE", "LOGISTIC", "SOFTMAX")) or len(weights) == 0:
        return None
    # Two classes may have one score, that of the second, or the probability of it.
    single = len(labels) == 2 and len(set(held.get("class_ids", []))) == 1
    name, label = node.name or node.output[0], node.output[0]
    probabilities = node.output[1] if len(node.output) > 1 and node.output[1] else f"{label}_probabilities"
    base = _floats(held, "base_values").tolist()
    ids, places = (
        list(held.get("class_ids", [])),
        [list(held.get(f"class_{part}", [])) for part in ("treeids", "nodeids")],
    )
    scores = f"{probabilities}_scores"
    following: list[onnx.NodeProto] = []
    if single and (other or transform == "NONE"):
        # Both are told: what adds up to 1 where all are positive, else the score and its negative.
        positive = bool((weights >= 0).all())
        count, begin = 2, (base[-1:] or [0.0])[0]
        base = [1.0 - begin if positive else -begin, begin]
        ids = [each for _ in ids for each in (0, 1)]
        places = [[each for each in part for _ in range(2)] for part in places]
        weights = np.stack([-weights, weights], axis=1).ravel()
        if other:
            following = [_transformed(transform, scores, probabilities, name)]
        else:
            scores = probabilities
    elif single:
        count, ids, base = 1, [0] * len(ids), base[-1:]
        one = f"{probabilities}_one"
        graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), one))
        likely, rest = f"{probabilities}_likely", f"{probabilities}_rest"
        following = [
            helper.make_node("Sigmoid", [scores], [likely], name=f"{name}_sigmoid"),
            helper.make_node("Sub", [one, likely], [rest], name=f"{name}_rest"),
            helper.make_node("Concat", [rest, likely], [probabilities], name=f"{name}_both", axis=1),
        ]
    else:
        count = len(labels)
        if transform == "NONE":
            scores = probabilities
        else:
            following = [_transformed(transform, scores, probabilities, name)]
    kept = {key: value for key, value in held.items() if key.startswith("nodes_")}
    summed = helper.make_node(
        "TreeEnsembleRegressor",
        [node.input[0]],
        [scores],
        name=name,
        domain=_DOMAIN,
        **kept,
        n_targets=count,
        target_ids=ids,
        target_treeids=places[0],
        target_nodeids=places[1],
        target_weights=[float(weight) for weight in weights],
        **({"base_values": base} if base else {}),
    )
    index, names = f"{label}_index", f"{label}_labels"
    picked_of = probabilities if single and not other and transform != "NONE" else scores
    array = np.array(words, object) if words else np.array(numbers, np.int64)
    graph.initializer.append(numpy_helper.from_array(array, names))
    return [
        summed,
        *following,
        helper.make_node("ArgMax", [picked_of], [index], name=f"{name}_index", axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", [names, index], [label], name=f"{name}_label", domain=_DOMAIN),
    ]


def _split_regressor(node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
    held = _attributes(node)
    transform = _text(held.get("post_transform", "NONE"))
    if transform not in ("LOGISTIC", "SOFTMAX"):
        return None
    output, scores = node.output[0], f"{node.output[0]}_scores"
    name = node.name or output
    summed = helper.make_node(
        node.op_type, node.input, [scores], name=name, domain=_DOMAIN, **{**held, "post_transform": "NONE"}
    )
    return [summed, _transformed(transform, scores, output, name)]


def _transformed(transform: str, scores: str, output: str, name: str) -> onnx.NodeProto:
    if transform in TRANSFORMS:
        return helper.make_node(transform, [scores], [output], name=f"{name}_transform", domain=_DOMAIN)
    if transform == "SOFTMAX":
        return helper.make_node("Softmax", [scores], [output], name=f"{name}_softmax", axis=1)
    return helper.make_node("Sigmoid", [scores], [output], name=f"{name}_sigmoid")


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _floats(held: dict[str, Any], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers, which may be a tensor of doubles under another name."""
    tensor = held.get(f"{name}_as_tensor")
    return np.array(held.get(name, []) if tensor is None else numpy_helper.to_array(tensor), np.float64).ravel()


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
