"""Writes ends that converters write of many operators as the one operator that they are.

skl2onnx has a softmax as exponentials divided by their sum, a logistic as a quotient, and the label of an isolation
forest as a comparison of a power of two. As operators of their own these are ends, which output policies compute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.onnx.contents import constant_nodes
from lanner.onnx.node import Node
from lanner.onnx.words import ML

#: How much below its threshold, relative to it, an isolation forest's mean depth counts as being at it: forests are
#: often told such a share of outliers that a row of the training is at the threshold, which sums must not miss.
_AT_THRESHOLD = 2.0**-21


def plain_ends(proto: onnx.ModelProto) -> None:
    """Write softmaxes, logistics and isolation forests' labels behind trees as operators of their own, in place."""
    if not any(node.domain == ML and node.op_type.startswith("TreeEnsemble") for node in proto.graph.node):
        return
    for rewrite in (_alone, _logistic, _softmax, _joined_logistics, _divided, _isolation):
        pattern = _Pattern(proto.graph)
        nodes: list[onnx.NodeProto] = []
        for node in proto.graph.node:
            made = rewrite(node, pattern)
            nodes += [node] if made is None else made
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)


class _Pattern:
    """Looks back from nodes at what makes their inputs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self._held = {tensor.name: tensor for tensor in graph.initializer} | constant_nodes(graph)
        self._producers = {name: node for node in graph.node for name in node.output if name}

    def number(self, name: str) -> float | None:
        """The number that a constant of one element is."""
        tensor = self._held.get(name)
        if tensor is None:
            return None
        value = numpy_helper.to_array(tensor)
        return float(value.ravel()[0]) if value.size == 1 and value.dtype.kind in "fiu" else None

    def is_one(self, name: str) -> bool:
        """Whether a product with a constant is what it multiplies, of the same shape."""
        return self.number(name) == 1.0 and len(self._held[name].dims) <= 1

    def made_by(self, name: str, operator: str) -> onnx.NodeProto | None:
        """The node that makes a tensor, if it is one of such an operator."""
        node = self._producers.get(name)
        return node if node is not None and node.op_type == operator and node.domain in ("", "ai.onnx") else None

    def with_number(self, name: str, operator: str) -> tuple[str, float] | None:
        """The tensor and the number that an operator of two inputs, in whatever order, makes a tensor of."""
        node = self.made_by(name, operator)
        if node is None or len(node.input) != 2:
            return None
        for one, other in (tuple(node.input), tuple(node.input)[::-1]):
            number = self.number(other)
            if number is not None:
                return one, number
        return None

    def hold(self, name: str, value: NDArray[np.generic]) -> str:
        """A new constant."""
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name


def _is(node: onnx.NodeProto, *operators: str) -> bool:
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def _alone(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """A sum of one tensor, and a product with one, are the tensor."""
    by_one = _is(node, "Mul", "Div") and len(node.input) == 2 and pattern.is_one(node.input[1])
    if not by_one and not (_is(node, "Sum", "Mean") and len(node.input) == 1):
        return None
    return [helper.make_node("Identity", node.input[:1], node.output, name=node.name)]


def _logistic(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """1 / (1 + exp(x)) is the logistic of -x."""
    if not _is(node, "Div") or pattern.number(node.input[0]) != 1.0:
        return None
    below = pattern.with_number(node.input[1], "Add")
    power = pattern.made_by(below[0], "Exp") if below is not None and below[1] == 1.0 else None
    if power is None:
        return None
    negative = f"{node.output[0]}_negative"
    return [
        helper.make_node("Neg", power.input, [negative], name=negative),
        helper.make_node("Sigmoid", [negative], node.output, name=node.name or node.output[0]),
    ]


def _softmax(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """Exponentials divided by their sum over the classes are a softmax.

    skl2onnx adds 1 to a sum that is less than 1, against a division by 0. Where the scores add up to 0, as those of
    AdaBoost do, no such sum is less than the number of classes.
    """
    power = pattern.made_by(node.input[0], "Exp") if _is(node, "Div") else None
    if power is None:
        return None
    total = node.input[1]
    guarded = pattern.made_by(total, "Add")
    if guarded is not None:
        total = _guarded(guarded, pattern) or ""
    shaped = pattern.made_by(total, "Reshape")
    summed = pattern.made_by(shaped.input[0] if shaped is not None else total, "ReduceSum")
    if summed is None or summed.input[0] != power.output[0] or _axes(summed, pattern) != [1]:
        return None
    return [helper.make_node("Softmax", power.input, node.output, name=node.name or node.output[0], axis=1)]


def _guarded(node: onnx.NodeProto, pattern: _Pattern) -> str | None:
    """What a node adds 1 to where it is 0 as an integer; None where it does not."""
    for total, other in (tuple(node.input), tuple(node.input)[::-1]):
        cast = pattern.made_by(other, "Cast")
        compared = pattern.with_number(cast.input[0], "Equal") if cast is not None else None
        whole = pattern.made_by(compared[0], "Cast") if compared is not None and compared[1] == 0 else None
        if whole is not None and whole.input[0] == total:
            return str(total)
    return None


def _axes(node: onnx.NodeProto, pattern: _Pattern) -> list[int]:
    if len(node.input) < 2:
        return Node(node, []).attr("axes", list[int]())
    number = pattern.number(node.input[1])
    return [] if number is None else [int(number)]


def _joined_logistics(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """Logistics side by side are the logistic of what is side by side."""
    if not _is(node, "Concat") or len(node.input) < 2:
        return None
    parts = [pattern.made_by(name, "Sigmoid") for name in node.input]
    if None in parts:
        return None
    scores = f"{node.output[0]}_scores"
    beside = onnx.NodeProto()
    beside.CopyFrom(node)
    beside.input[:] = [part.input[0] for part in parts if part is not None]
    beside.output[:], beside.name = [scores], scores
    return [beside, helper.make_node("Sigmoid", [scores], node.output, name=node.name or node.output[0])]


def _divided(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """Logistics divided by their sum, to which skl2onnx adds what is 0 as logistics are positive."""
    if not _is(node, "Div"):
        return None
    above, below = pattern.made_by(node.input[0], "Add"), pattern.made_by(node.input[1], "Add")
    if above is None or below is None:
        return None
    for values, mask in (tuple(above.input), tuple(above.input)[::-1]):
        for total, scaled in (tuple(below.input), tuple(below.input)[::-1]):
            summed, times = pattern.made_by(total, "ReduceSum"), pattern.with_number(scaled, "Mul")
            is_sum = summed is not None and summed.input[0] == values and _axes(summed, pattern) == [1]
            of_logistics = pattern.made_by(values, "Sigmoid") is not None
            if is_sum and of_logistics and times is not None and times[0] == mask and _is_none(mask, total, pattern):
                return [helper.make_node("Div", [values, total], node.output, name=node.name or node.output[0])]
    return None


def _is_none(mask: str, total: str, pattern: _Pattern) -> bool:
    """Whether a tensor is 1 where another one is 0, and else 0."""
    cast = pattern.made_by(mask, "Cast")
    negated = pattern.made_by(cast.input[0], "Not") if cast is not None else None
    truth = pattern.made_by(negated.input[0], "Cast") if negated is not None else None
    return truth is not None and truth.input[0] == total


@dataclass(frozen=True, slots=True)
class _Isolation:
    """An isolation forest's mean depth, and the depth from which on a row is an inlier."""

    depth: str
    threshold: float


def _isolation(node: onnx.NodeProto, pattern: _Pattern) -> list[onnx.NodeProto] | None:
    """An isolation forest's label: 1 where c - 2^-depth is at least 0, that is where depth is at least -log2(c)."""
    found = _inlier(node, pattern)
    if found is None:
        return None
    output = node.output[0]
    names = {part: f"{output}_{part}" for part in ("threshold", "over", "under", "both", "index", "labels")}
    threshold = found.threshold - abs(found.threshold) * _AT_THRESHOLD
    pattern.hold(names["threshold"], np.array([[threshold]], np.float64).astype(np.float32))
    # At 0 both scores are the same, and the label is the first one.
    pattern.hold(names["labels"], np.array([1, -1], np.int64))
    return [
        helper.make_node("Sub", [found.depth, names["threshold"]], [names["over"]], name=names["over"]),
        helper.make_node("Neg", [names["over"]], [names["under"]], name=names["under"]),
        helper.make_node("Concat", [names["over"], names["under"]], [names["both"]], name=names["both"], axis=1),
        helper.make_node("ArgMax", [names["both"]], [names["index"]], name=names["index"], axis=1, keepdims=0),
        helper.make_node(
            "ArrayFeatureExtractor", [names["labels"], names["index"]], [output], name=node.name or output, domain=ML
        ),
    ]


def _inlier(node: onnx.NodeProto, pattern: _Pattern) -> _Isolation | None:
    """What a label of 1 and -1 is of, where it is an isolation forest's: ``(c - 2^-depth < 0) * -2 + 1``."""
    times = pattern.with_number(node.output[0], "Add") if _is(node, "Add") else None
    truth = pattern.with_number(times[0], "Mul") if times is not None and times[1] == 1 else None
    cast = pattern.made_by(truth[0], "Cast") if truth is not None and truth[1] == -2 else None
    below = pattern.made_by(cast.input[0], "Less") if cast is not None else None
    if below is None or pattern.number(below.input[1]) != 0.0:
        return None
    scores = pattern.with_number(below.input[0], "Add")
    negative = pattern.made_by(scores[0], "Neg") if scores is not None else None
    power = pattern.made_by(negative.input[0], "Pow") if negative is not None else None
    depth = pattern.made_by(power.input[1], "Neg") if power is not None else None
    if scores is None or power is None or depth is None or pattern.number(power.input[0]) != 2.0 or scores[1] <= 0:
        return None
    return _Isolation(depth.input[0], float(-np.log2(scores[1])))
