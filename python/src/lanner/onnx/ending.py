"""Operators that end a network, and what they say of its scores.

What the client learns is the output policy's to decide, so a final softmax, sigmoid or arg-max is taken off: the policy
computes the label or the probability from the scores. The same goes for what scikit-learn's classifiers have behind
their scores (skl2onnx): ``ZipMap``, ``Normalizer``, which may be a ``Div`` by a sum, ``ArrayFeatureExtractor``,
``LabelEncoder``, and the two probabilities ``1 - p`` and ``p`` of a sigmoid.

Operators are taken off only where they follow one another as one end does. Of two softmaxes the first one is left in
the network, and so is whatever else does not fit, to be lowered or refused as any other operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.errors import spelled
from lanner.heads import Ending, Head, is_map
from lanner.onnx.builder import Wire
from lanner.onnx.classes import Constants, class_names
from lanner.onnx.comparison import TRUTHS
from lanner.onnx.contents import constant_nodes
from lanner.onnx.node import Node

#: Operators of the default domain that end a network; of these an arg-max stands nowhere else.
ENDINGS = ("Softmax", "LogSoftmax", "ArgMax")

#: Behind an ending these show the same numbers in another shape or type; the conversion of old opsets adds them.
_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast")

#: The domain of classical machine learning; its operators that hand a class or the classes' probabilities on.
ML = "ai.onnx.ml"
_LABELLING = ("ZipMap", "Normalizer", "ArrayFeatureExtractor", "LabelEncoder")

#: Transforms of trees' scores that no policy computes; a classifier of trees that is taken apart has them as operators.
TRANSFORMS = ("PROBIT", "SOFTMAX_ZERO")

#: Its classifiers, whose outputs are the label and the scores. What they make of these is an operator of its own.
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


#: Its operators that estimate quantities, where nothing is picked of what they give.
_REGRESSORS = ("LinearRegressor", "TreeEnsembleRegressor", "TreeEnsemble")


class _State(Enum):
    """What a tensor behind the scores holds."""

    SCORES = "scores"
    SOFTMAX = "probabilities"
    LOG_SOFTMAX = "logarithms"
    SIGMOID = "sigmoids"
    #: The two probabilities ``1 - p`` and ``p``.
    BOTH = "both"
    NORMALISED = "sigmoids divided by their sum"
    INDEX = "index"
    MAP = "map"
    TRANSFORMED = "transformed"


#: What an operator makes of a state; what is not here is no end.
_FOLLOWING: dict[tuple[str, _State], _State] = {
    ("Softmax", _State.SCORES): _State.SOFTMAX,
    ("LogSoftmax", _State.SCORES): _State.LOG_SOFTMAX,
    ("Sigmoid", _State.SCORES): _State.SIGMOID,
    ("Concat", _State.SIGMOID): _State.BOTH,
    **{("ArgMax", state): _State.INDEX for state in list(_State)[:6]},
    **{("ZipMap", state): _State.MAP for state in list(_State)[:6]},
    # Numbers that add up to one are their own quotients.
    ("Normalizer", _State.SOFTMAX): _State.SOFTMAX,
    ("Normalizer", _State.BOTH): _State.BOTH,
    ("Normalizer", _State.SIGMOID): _State.NORMALISED,
    # Converters write it of two operators where numbers are doubles.
    ("Div", _State.SOFTMAX): _State.SOFTMAX,
    ("Div", _State.BOTH): _State.BOTH,
    ("Div", _State.SIGMOID): _State.NORMALISED,
    **{(transform, _State.SCORES): _State.TRANSFORMED for transform in TRANSFORMS},
    ("ZipMap", _State.TRANSFORMED): _State.MAP,
    ("ArrayFeatureExtractor", _State.INDEX): _State.INDEX,
    ("LabelEncoder", _State.INDEX): _State.INDEX,
}
_SOFTMAXES = (_State.SOFTMAX, _State.LOG_SOFTMAX)

_INTEGERS = frozenset(number for name, number in onnx.TensorProto.DataType.items() if "INT" in name or name == "BOOL")


@dataclass(frozen=True, slots=True)
class Between:
    """An operator that other operators of an end follow, so that what it makes of the scores' shape matters.

    Attributes:
        node: The operator.
        argument: Its second input, where that is a constant.
        shape_of: The tensor whose shape the second input is, if any.
    """

    node: onnx.NodeProto
    argument: NDArray[np.generic] | None = None
    shape_of: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a network.

    Attributes:
        scores: The tensor whose elements the scores are.
        head: What the operators behind it say.
        operators: These operators, the first one first.
        between: The views between them, and the joining of ``1 - p`` and ``p``.
        rounding: A cast of scores or probabilities to whole numbers, which no output policy tells.
        beside: The ends of the file's other outputs, where what they say of the scores counts, too.
    """

    scores: str
    head: Head = field(default_factory=Head)
    operators: Sequence[onnx.NodeProto] = ()
    between: Sequence[Between] = ()
    rounding: onnx.NodeProto | None = None
    beside: Sequence[End] = ()


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
    if not operators and _is_of(walk.producer(walk.root_of(output)), _REGRESSORS, ML):
        ending = Ending.REGRESSION
    if ending is Ending.SIGMOID and _is_of(walk.producer(walk.root_of(scores)), ("LinearClassifier",), ML):
        # Of its classes one holds, whatever their logistic probabilities add up to.
        ending = Ending.ONE_AGAINST_REST
    shown = [node for node in behind if node.op_type != "Concat"]
    head = Head(ending, walk.names_of(scores), any(_is_of(node, ("ArgMax",)) for node in behind))
    return End(scores, head, shown, walk.between(behind), walk.rounding(output))


def find_root(graph: onnx.GraphProto, scores: str, constants: Constants) -> str:
    """The tensor whose elements a tensor of scores shows, perhaps in another shape."""
    return _Walk(graph, constants).root_of(scores)


def find_source(graph: onnx.GraphProto, output: str, constants: Constants) -> str | None:
    """The two scores of a linear classifier of which an output is one, as skl2onnx writes it beside the label."""
    walk = _Walk(graph, constants)
    column = walk.producer(walk.root_of(output))
    if column is None or not _is_of(column, ("ArrayFeatureExtractor",), ML) or not walk.is_constant(column.input[1]):
        return None
    source = walk.root_of(column.input[0])
    classifier = walk.producer(source)
    return source if _is_of(classifier, ("LinearClassifier",), ML) else None


class _Walk:
    """Goes from outputs back to scores."""

    def __init__(self, graph: onnx.GraphProto, constants: Constants) -> None:
        self._nodes = graph.node
        held = {name: numpy_helper.to_array(tensor) for name, tensor in constant_nodes(graph).items()}
        self._constants: Constants = {**held, **constants}
        self._producers: Mapping[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}

    def producer(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a tensor; None of the graph's input."""
        return self._producers.get(name)

    def is_constant(self, name: str) -> bool:
        """Whether a tensor is known."""
        return name in self._constants

    def back_from(self, output: str) -> tuple[str, Ending, list[onnx.NodeProto]]:
        """The scores behind an output, what it ends in, and the operators in between, the first one first."""
        chain, label = self._chain(output)
        starts = [(label, _State.INDEX, chain)] if label else []
        starts += [(self._read(node), _State.SCORES, chain[place:]) for place, node in enumerate(chain)]
        for scores, state, nodes in starts:
            follows = state is _State.INDEX or not _is_of(nodes[0], _VIEWS)
            states = self._states(state, nodes) if follows else None
            if states is not None:
                classifier = [] if state is _State.SCORES else [self._producers[scores]]
                return scores, _ending_of(states), [*classifier, *nodes]
        return output, Ending.NONE, []

    def root_of(self, name: str) -> str:
        """The tensor whose elements a tensor shows."""
        while (node := self._producers.get(name)) is not None and _is_of(node, _VIEWS) and not _rounds(node):
            name = node.input[0]
        return name

    def between(self, operators: Sequence[onnx.NodeProto]) -> list[Between]:
        """The operators between others, up to the one that picks a label."""
        kinds = [not _is_of(node, (*_VIEWS, "Concat")) for node in operators]
        picks = [place for place, node in enumerate(operators) if node.op_type == "ArgMax"]
        last = picks[0] if picks else max((place for place, kind in enumerate(kinds) if kind), default=0)
        found = []
        for place, node in enumerate(operators):
            if node.op_type == "Concat":
                found.append(Between(node))
            elif place < last and not kinds[place]:
                second = node.input[1] if len(node.input) > 1 else ""
                shape = self._producers.get(second)
                shape_of = shape.input[0] if shape is not None and _is_of(shape, ("Shape",)) else None
                found.append(Between(node, self._constants.get(second), shape_of))
        return found

    def rounding(self, output: str) -> onnx.NodeProto | None:
        """The first cast to whole numbers behind scores or probabilities, if there is one."""
        chain, label = self._chain(output)
        if chain and not label and all(_is_of(node, _VIEWS) for node in chain) and self._is_asked(chain):
            return None
        for place, node in enumerate(chain):
            if _rounds(node) and not label and not any(_is_of(before, ("ArgMax",)) for before in chain[:place]):
                return node
        return None

    def _is_asked(self, views: Sequence[onnx.NodeProto]) -> bool:
        """Whether views, the first one first, show truth values, of which no cast changes any."""
        source = self._producers.get(views[0].input[0])
        first = next((node for node in views if _rounds(node)), views[0])
        return (source is not None and source.op_type in TRUTHS) or _casts_to_truth(first)

    def _chain(self, output: str) -> tuple[list[onnx.NodeProto], str | None]:
        """The operators that may belong to an end, the first one first; the scores where they start at a label."""
        name, chain = output, list[onnx.NodeProto]()
        while (node := self._producers.get(name)) is not None:
            if _is_of(node, _CLASSIFIERS, ML) and len(node.output) > 1:
                return chain[::-1], node.output[1] if name == node.output[0] else None
            taken = _is_of(node, (*_VIEWS, *ENDINGS, "Sigmoid")) or _is_of(node, (*_LABELLING, *TRANSFORMS), ML)
            if not taken and self._joined(node) is None and not self._is_divided_by_sum(node):
                break
            if _is_of(node, ("ArrayFeatureExtractor",), ML) and not self.is_constant(node.input[0]):
                break
            chain.append(node)
            name = self._read(node)
        return chain[::-1], None

    def _read(self, node: onnx.NodeProto) -> str:
        """What an operator of an end reads."""
        sigmoid = self._joined(node)
        if sigmoid is not None:
            return str(sigmoid.output[0])
        # What an extractor of classes reads is the index, its second input.
        return str(node.input[1] if node.op_type == "ArrayFeatureExtractor" else node.input[0])

    def _states(self, state: _State, nodes: Sequence[onnx.NodeProto]) -> list[_State] | None:
        """What the operators make of a state one after another; None where they are no end."""
        states = [state]
        normalised = False
        for place, node in enumerate(nodes):
            following = states[-1] if _is_of(node, _VIEWS) else _FOLLOWING.get((node.op_type, states[-1]))
            if following is None or (_rounds(node) and states[-1] is not _State.INDEX):
                return None
            if states[-1] is _State.MAP or (node.op_type == "Concat" and not _is_of(nodes[place - 1], ("Sigmoid",))):
                return None
            if node.op_type in ("Normalizer", "Div"):
                if normalised or not (node.op_type == "Div" or _adds(node)):
                    return None
                normalised = True
            states.append(following)
        return states

    def names_of(self, scores: str) -> tuple[str, ...] | None:
        """The names that any operator behind the scores gives the classes; words before numbers."""
        found = []
        for node in self._nodes:
            if _is_of(node, (*_LABELLING, *_CLASSIFIERS), ML):
                start, _, operators = self.back_from(node.output[0])
                names = class_names(operators, self._constants) if start == scores else None
                found += [] if names is None else [names]
        return max(found, key=lambda names: not all(name.isdecimal() for name in names), default=None)

    def _is_divided_by_sum(self, node: onnx.NodeProto) -> bool:
        """Whether a node divides probabilities by their sum over the classes, or by that of their magnitudes."""
        total = self._producers.get(node.input[1]) if _is_of(node, ("Div",)) else None
        if total is None or not _is_of(total, ("ReduceSum", "ReduceL1")):
            return False
        held = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in total.attribute}
        axes = self._constants.get(total.input[1]) if len(total.input) > 1 else held.get("axes")
        magnitudes = self._producers.get(total.input[0])
        summed = magnitudes.input[0] if magnitudes is not None and _is_of(magnitudes, ("Abs",)) else total.input[0]
        along = axes is not None and np.ravel(axes).tolist() in ([1], [-1])
        return along and held.get("keepdims", 1) == 1 and summed == node.input[0]

    def _joined(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """The sigmoid whose two probabilities ``1 - p`` and ``p`` a node joins."""
        if not _is_of(node, ("Concat",)) or len(node.input) != 2:
            return None
        rest, sigmoid = (self._producers.get(name) for name in node.input)
        if not _is_of(rest, ("Sub",)) or not _is_of(sigmoid, ("Sigmoid",)) or rest is None or sigmoid is None:
            return None
        one = self._constants.get(rest.input[0])
        complement = one is not None and np.array_equal(np.ravel(one), [1]) and rest.input[1] == sigmoid.output[0]
        return sigmoid if complement else None


def _ending_of(states: Sequence[_State]) -> Ending:
    if _State.TRANSFORMED in states:
        return Ending.TRANSFORMED
    if _State.BOTH in states:
        return Ending.SIGMOID
    if _State.SIGMOID in states:
        picked = _State.NORMALISED in states or _State.INDEX in states
        return Ending.ONE_AGAINST_REST if picked else Ending.SIGMOID
    return Ending.SOFTMAX if any(state in _SOFTMAXES for state in states) else Ending.NONE


def _rounds(node: onnx.NodeProto) -> bool:
    """Whether a node casts to whole numbers."""
    held = (onnx.helper.get_attribute_value(attribute) for attribute in node.attribute if attribute.name == "to")
    return _is_of(node, ("Cast",)) and any(kind in _INTEGERS for kind in held)


def _casts_to_truth(node: onnx.NodeProto) -> bool:
    return _is_of(node, ("Cast",)) and any(
        attribute.name == "to" and attribute.i == onnx.TensorProto.BOOL for attribute in node.attribute
    )


def _adds(node: onnx.NodeProto) -> bool:
    """Whether a ``Normalizer`` divides by the sum; its default is the maximum."""
    held = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return held.get("norm") == b"L1"


def _is_of(node: onnx.NodeProto | None, operators: Iterable[str], domain: str = "ai.onnx") -> bool:
    return node is not None and node.op_type in operators and (node.domain or "ai.onnx") == domain


def check_ending(node: Node, logits: Wire, wanted: str | None = None) -> None:
    """Check that a final operator picks among one sample's logits, or among those at each place of a map.

    Args:
        node: The operator.
        logits: What it picks from.
        wanted: The output policy that the owner chose, if any.

    Raises:
        UnsupportedOpError: If it works along another axis, or breaks ties otherwise than to the lowest index.
    """
    if node.operator not in ENDINGS:
        return
    axis = node.attr("axis", 0 if node.operator == "ArgMax" else -1)
    rank = len(logits.shape) + 1
    if axis % rank != 0 and is_map(logits.shape):
        if node.operator == "ArgMax" and wanted != "logits":
            node.require("select_last_index", 0)
        return
    # Trailing axes of one element, as after global pooling, do not change which axis holds the classes.
    if axis % rank == 0 or logits.shape[axis % rank - 1] != logits.size:
        fix = "" if node.operator == "ArgMax" else "choose output value, which is what the network gives"
        raise node.unsupported("axis", f"is {axis}; it must be the axis of the classes", fix)
    if node.operator == "ArgMax":
        node.require("select_last_index", 0)


def labels_places(end: End) -> bool:
    """Whether an end picks a label at each place of a map as a policy does: of equal scores the first."""
    picks = [Node(node, []) for node in end.operators if _is_of(node, ("ArgMax",))]
    return bool(picks) and not flattens(end) and not any(node.attr("select_last_index", 0) for node in picks)


def end_is_whole(proto: onnx.ModelProto, end: End) -> bool:
    """Whether the network itself computes an output of whole numbers or truth values, of which nothing is picked."""
    kinds = {entry.name: entry.type.tensor_type.elem_type for entry in proto.graph.output}
    return not end.operators and not end.head.picks and kinds.get(end.scores) in _INTEGERS


def flattens(end: End) -> bool:
    """Whether an end makes one row of its scores before it picks of them."""
    return any(between.node.op_type not in ("Identity", "Cast", "Concat") for between in end.between)


def class_axis(end: End, shape: Sequence[int], classes: int) -> int:
    """Which axis of a map of scores has the classes: that of its end, else the one that is as long as there are names.

    Where neither says it, it is the last of two axes, as of tokens, and the first of more, as of an image's channels.

    Args:
        end: The network's end.
        shape: That of its scores, without the batch axis.
        classes: How many classes have names; 0 where none has.

    Raises:
        UnsupportedOpError: If its operators work along different axes.
    """
    found: list[int] = []
    for proto in end.operators:
        if _is_of(proto, ENDINGS):
            node = Node(proto, [])
            axis = node.attr("axis", 0 if node.operator == "ArgMax" else -1) % (len(shape) + 1) - 1
            if axis < 0 or (found and found[-1] != axis):
                raise node.unsupported(
                    "axis", "must be the axis of the classes, as in front of it", "choose output value"
                )
            found.append(axis)
    sides = [axis for axis, side in enumerate(shape) if side > 1]
    if not found and [shape[axis] for axis in sides].count(classes) == 1:
        found = [axis for axis in sides if shape[axis] == classes]
    return found[-1] if found else sides[-1 if len(sides) == 2 else 0]


def check_flattened(end: End, logits: Wire) -> None:
    """Check that the largest element of all places of a map, if one row of it is picked from, is the largest score.

    Raises:
        UnsupportedOpError: If a softmax of each place stands between.
    """
    for proto in end.operators:
        if is_map(logits.shape) and flattens(end) and _is_of(proto, ("Softmax", "LogSoftmax")):
            what = "makes shares of each place, of which the largest of all places is picked"
            raise Node(proto, []).unsupported("axis", what, "choose output value, or logits")


def check_end(end: End, logits: Wire, values: Mapping[str, object]) -> None:
    """Check that what is between final operators leaves them the scores as columns, and that there are several.

    Args:
        end: The network's end.
        logits: Its scores.
        values: What is known of the tensors that these depend on.

    Raises:
        UnsupportedOpError: Naming the operator that changes the columns, or the choice among one.
    """
    for other in end.beside:
        _check_beside(other, values)
    shape, joined = logits.shape, False
    for between in end.between:
        node = Node(between.node, [])
        if node.operator == "Concat":
            joined = True
            if shape != (1,) or node.attr("axis", 1) not in (1, -1):
                raise node.unsupported(
                    "input 0", f"is 1 - p of {logits.size} scores, and it must be of one, joined as columns", _PLAIN
                )
        elif not _keeps_columns(node, between, shape, logits.size, values):
            raise node.unsupported(
                "the shape", f"is not a row of {logits.size} classes before a final operator", _PLAIN
            )
        else:
            shape = shape if node.operator in ("Identity", "Cast") else (logits.size,)
    for proto in end.operators:
        if _is_of(proto, ("ArgMax",)) and logits.size == 1 and not joined:
            raise Node(proto, []).unsupported("input 0", "is one score, of which the index is always 0", _PLAIN)


def _check_beside(end: End, values: Mapping[str, object]) -> None:
    """Check the end of an output that is not computed, but says what the scores are."""
    if not end.operators:
        return
    scores = values.get(end.scores)
    if not isinstance(scores, Wire):
        first = Node(end.operators[0], [])
        fix = spelled("choose one with ⟦output_name⟧")
        raise first.unsupported("input 0", "is not what the other outputs show", fix)
    for proto in end.operators:
        check_ending(Node(proto, []), scores)
    check_end(end, scores, values)


def _keeps_columns(
    node: Node, between: Between, shape: tuple[int, ...], classes: int, values: Mapping[str, object]
) -> bool:
    """Whether a view of scores of such a shape has one row of all classes."""
    argument = None if between.argument is None else [int(side) for side in np.ravel(between.argument)]
    if node.operator in ("Identity", "Cast"):
        return True
    if node.operator == "Flatten":
        return node.attr("axis", 1) in (1, -len(shape))
    if node.operator == "Squeeze" and argument is not None:
        gone = {axis % (len(shape) + 1) for axis in argument}
        return 0 not in gone and [side for axis, side in enumerate(shape, 1) if axis not in gone] == [classes]
    if node.operator != "Reshape":
        return False
    if argument is None:
        origin = values.get(between.shape_of or "")
        return isinstance(origin, Wire) and origin.shape == (classes,)
    if len(argument) != 2 or argument[0] not in (-1, 0, 1):
        return False
    return argument[1] == classes or (argument[0] != -1 and argument[1] == -1)


def check_rounding(end: End, output: str) -> None:
    """Check that an output's scores or probabilities are not cast to whole numbers.

    Raises:
        UnsupportedOpError: If they are.
    """
    if end.rounding is not None:
        raise Node(end.rounding, []).unsupported(
            "to", f"makes whole numbers of the scores or probabilities of output {output}", _PLAIN
        )


#: What to do about an end that is not one.
_PLAIN = "let the network end in its scores, or in one softmax, sigmoid or arg-max over (n, classes)"
