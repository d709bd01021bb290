"""Operators that may only end a network, and what they say of its scores.

What the client learns is the output policy's to decide, so a final softmax, sigmoid or arg-max is taken off: the policy
computes the label or the probability from the scores. The same goes for what scikit-learn's classifiers have behind
their scores (skl2onnx): ``ZipMap``, ``Normalizer``, ``ArrayFeatureExtractor``, ``LabelEncoder``, and the two
probabilities ``1 - p`` and ``p`` of a sigmoid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from lanner.heads import Ending, Head
from lanner.onnx.builder import Wire
from lanner.onnx.classes import Constants, class_names
from lanner.onnx.node import Node

#: Operators of the default domain that only a network's end may have.
ENDINGS = ("Softmax", "LogSoftmax", "ArgMax")

#: Behind an ending these show the same numbers in another shape or type; the conversion of old opsets adds them.
_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast")

#: The domain of classical machine learning; its operators that hand a class or the classes' probabilities on.
ML = "ai.onnx.ml"
_LABELLING = ("ZipMap", "Normalizer", "ArrayFeatureExtractor", "LabelEncoder")

#: Its classifiers, whose outputs are the label and the scores. What they make of these is an operator of its own.
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


@dataclass(frozen=True, slots=True)
class End:
    """The end of a network.

    Attributes:
        scores: The tensor whose elements the scores are.
        head: What the operators behind it say.
        operators: These operators, the first one first.
    """

    scores: str
    head: Head = field(default_factory=Head)
    operators: Sequence[onnx.NodeProto] = ()


def find_end(graph: onnx.GraphProto, output: str, constants: Constants) -> End:
    """The end that leads to an output; the output itself is the scores where nothing is taken off.

    Args:
        graph: The file's graph.
        output: The name of one of its tensors.
        constants: Its initializers.
    """
    walk = _Walk(graph, constants)
    scores, ending, operators = walk.back_from(output)
    # A classifier makes the scores and is no operator behind them.
    behind = [node for node in operators if scores not in node.output]
    return End(scores, Head(ending, walk.names_of(scores)), behind)


class _Walk:
    """Goes from outputs back to scores."""

    def __init__(self, graph: onnx.GraphProto, constants: Constants) -> None:
        self._nodes = graph.node
        self._constants = constants
        self._producers: Mapping[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}

    def back_from(self, output: str) -> tuple[str, Ending, list[onnx.NodeProto]]:
        """The scores behind an output, what it ends in, and the operators in between, the first one first."""
        name, ending = output, Ending.NONE
        taken: list[onnx.NodeProto] = []
        end = (output, ending, 0)
        while (node := self._producers.get(name)) is not None:
            sigmoid = self._sigmoid(node)
            if sigmoid is not None and ending is Ending.NONE:
                picks = sigmoid is node and any(behind.op_type in ("ArgMax", "Normalizer") for behind in taken)
                ending = Ending.ONE_AGAINST_REST if picks else Ending.SIGMOID
                return sigmoid.input[0], ending, [sigmoid, *taken[::-1]]
            if _is_of(node, _CLASSIFIERS, ML) and len(node.output) > 1:
                return node.output[1], ending, [node, *taken[::-1]]
            if _is_of(node, ("Softmax", "LogSoftmax")):
                ending = Ending.SOFTMAX
            elif not _is_of(node, (*_VIEWS, "ArgMax")) and not _is_of(node, _LABELLING, ML):
                break
            # What an extractor of classes reads is the index, its second input.
            name = node.input[1] if node.op_type == "ArrayFeatureExtractor" else node.input[0]
            taken.append(node)
            if not _is_of(node, _VIEWS):
                end = (name, ending, len(taken))
        scores, ending, count = end
        return scores, ending, taken[:count][::-1]

    def names_of(self, scores: str) -> tuple[str, ...] | None:
        """The names that any operator behind the scores gives the classes; words before numbers."""
        found = []
        for node in self._nodes:
            if _is_of(node, (*_LABELLING, *_CLASSIFIERS), ML):
                start, _, operators = self.back_from(node.output[0])
                names = class_names(operators, self._constants) if start == scores else None
                found += [] if names is None else [names]
        return max(found, key=lambda names: not all(name.isdecimal() for name in names), default=None)

    def _sigmoid(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """The sigmoid that a node is, or whose two probabilities ``1 - p`` and ``p`` it joins."""
        if _is_of(node, ("Sigmoid",)):
            return node
        if not _is_of(node, ("Concat",)) or len(node.input) != 2:
            return None
        rest, sigmoid = (self._producers.get(name) for name in node.input)
        if not _is_of(rest, ("Sub",)) or not _is_of(sigmoid, ("Sigmoid",)) or rest is None or sigmoid is None:
            return None
        one = self._constants.get(rest.input[0])
        complement = one is not None and np.array_equal(np.ravel(one), [1]) and rest.input[1] == sigmoid.output[0]
        return sigmoid if complement else None


def _is_of(node: onnx.NodeProto | None, operators: Iterable[str], domain: str = "ai.onnx") -> bool:
    return node is not None and node.op_type in operators and (node.domain or "ai.onnx") == domain


def check_ending(node: Node, logits: Wire) -> None:
    """Check that a final operator picks among one sample's logits.

    Raises:
        UnsupportedOpError: If it works along another axis, or breaks ties otherwise than to the lowest index.
    """
    if node.operator not in ENDINGS:
        return
    axis = node.attr("axis", 0 if node.operator == "ArgMax" else -1)
    rank = len(logits.shape) + 1
    # Trailing axes of one element, as after global pooling, do not change which axis holds the classes.
    if axis % rank == 0 or logits.shape[axis % rank - 1] != logits.size:
        raise node.unsupported("axis", f"is {axis}; it must be the axis of the classes")
    if node.operator == "ArgMax":
        node.require("select_last_index", 0)
