"""Walks an ONNX graph from its input to its output and lowers every node on the way; of those refused it names all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.errors import MisuseError, ModelError, Refusal, UnsupportedOpError, option_named, spelled
from lanner.heads import Form, Head, Policy, choose_policy, is_map
from lanner.named import TYPES, NamedInput, NamedOutput
from lanner.onnx.affine import Affine
from lanner.onnx.batch import free_batch, samples_first
from lanner.onnx.batch_place import lower_anywhere
from lanner.onnx.batch_size import BatchSize
from lanner.onnx.bodies import is_opened, names_read, opened, ways, with_bodies
from lanner.onnx.branches import open_branches
from lanner.onnx.builder import FloatGraph, GraphBuilder, Wire
from lanner.onnx.chosen import choose
from lanner.onnx.classical.rewrite import rewrite_estimators
from lanner.onnx.comparison import ORDERS, is_computed
from lanner.onnx.contents import constant_nodes
from lanner.onnx.counting import Counted
from lanner.onnx.ending import (
    ENDINGS,
    End,
    check_end,
    check_ending,
    check_flattened,
    class_axis,
    end_is_whole,
    find_end,
    find_root,
    flattens,
    labels_places,
)
from lanner.onnx.entries import Entry, check_columns, free_inputs, is_plain, place, read_entry
from lanner.onnx.folding import fold
from lanner.onnx.frame import Frame
from lanner.onnx.fused import take_apart
from lanner.onnx.hiding import hides
from lanner.onnx.infinite import Origins
from lanner.onnx.lookup import Bits, Indices, Lookup, follow, lacks_row, moved_pair, moves, truth
from lanner.onnx.node import Node, NotFiniteError
from lanner.onnx.opaque import InferredShapes, Opaque, follows_from_shapes
from lanner.onnx.outputs import find_ends
from lanner.onnx.published import publish
from lanner.onnx.quantized import holds_integers, lower_integers
from lanner.onnx.refusals import Refusals
from lanner.onnx.registry import Lowering, Value, find_lowering
from lanner.onnx.split import split_classifiers
from lanner.onnx.steps import Outcome, Share, Step, shape_of
from lanner.onnx.trees.joined import join_trees
from lanner.onnx.trees.lower import OPERATORS, check_split, lower_trees
from lanner.onnx.trees.split import split_trees
from lanner.onnx.trees.table import Table
from lanner.onnx.unknown import check_embedding, unknown
from lanner.onnx.whole import ARITHMETIC, OF_NUMBERS, cast_type, keeps_whole, leaves_integers, makes_truths
from lanner.onnx.words import filled_row, number_words, reads_words, split_row, word_inputs

#: What is known of a tensor.
Known: TypeAlias = "Value | Lookup | Table | Affine | Opaque | None"

#: How far below 0 a private mask is where nothing is known of the scores that it is added to.
_BOUND = 64.0


#: Operators whose last output holds places, which are integers.
_GIVE_PLACES = frozenset(("ArgMax", "ArgMin", "TopK"))


@dataclass(frozen=True, slots=True)
class Voted:
    """Votes of nearest neighbours, of which the network counts those that tie with the last one, too.

    Attributes:
        proto: The model as the file has it.
        votes: The tensors of the votes, class by class, in either model.
    """

    proto: onnx.ModelProto
    votes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """An ONNX model, lowered.

    Attributes:
        name: The name that the file gives its graph.
        entries: The file's inputs, of which the network's one is made.
        input_name: The name of the network's input.
        input_shape: The shape of one sample.
        graph: The float graph up to the logits, with the score 0 before them where the policy has two classes.
        logits: The names of the ONNX tensors that hold the logits: one, or of several outputs each one's.
        outputs: The file's outputs, where several are computed.
        masked: The tensors that a private mask is added to.
        policy: What a client learns of them.
        classes: The names that the file gives its classes, if any.
        operators: How often each ONNX operator is on the way from the input to the output.
        proto: The ONNX model itself.
        voted: Its votes of nearest neighbours, if it counts some.
    """

    name: str
    entries: tuple[Entry, ...]
    input_name: str
    input_shape: tuple[int, ...]
    graph: FloatGraph
    logits: tuple[str, ...]
    outputs: tuple[NamedOutput, ...]
    masked: tuple[str, ...]
    policy: Policy
    classes: tuple[str, ...] | None
    operators: Counter[str]
    proto: onnx.ModelProto
    voted: Voted | None = None

    @property
    def named(self) -> tuple[NamedInput, ...]:
        """The inputs by name; none where the network's own is the file's only one."""
        return () if is_plain(self.entries) else tuple(entry.named for entry in self.entries)

    @property
    def places(self) -> int:
        """Places of a map that have a label each; 1 of anything else."""
        axis = self.policy.class_axis
        return 1 if axis is None else math.prod(self.graph.output_shape[:-1])

    @property
    def batched(self) -> bool:
        """Whether the file's batch axis is symbolic, so that it takes several samples at once."""
        return all(entry.batched for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Survey:
    """What the importer finds in a file, whether it takes the model or not.

    Attributes:
        steps: The nodes between the input and the output, constants apart.
        reasons: Every reason why the model is refused.
        model: The model, where it is taken.
        error: Where it is not, one error that holds all reasons.
    """

    steps: list[Step]
    reasons: list[Refusal]
    model: ImportedModel | None
    error: ModelError | None

    @property
    def share(self) -> Share:
        """How much of the network runs."""
        return Share.of(self.steps)


def lower_model(proto: onnx.ModelProto, wanted: str | None = None, frame: Frame | None = None) -> ImportedModel:
    """Lower a checked model of a current opset.

    Args:
        proto: The model; where it ends in a linear classifier, that is changed to give its scores.
        wanted: The output policy that its owner chose, if any.
        frame: What the owner says of the file's sizes, inputs and outputs.

    Raises:
        ModelError: If it has several outputs of which none is named, or a shape is not fixed.
        MisuseError: If there is no such output, or the policy does not go with the network's end.
        UnsupportedOpError: Naming the first node, operator and attribute that no lowering takes.

    A `ModelError` and an `UnsupportedOpError` hold every reason.
    """
    survey = survey_model(proto, wanted, frame)
    if survey.model is None:
        raise survey.error or ModelError("the model is refused")
    return survey.model


def survey_model(proto: onnx.ModelProto, wanted: str | None = None, frame: Frame | None = None) -> Survey:
    """Lower a checked model of a current opset, going on behind whatever is refused.

    Args:
        proto: As of `lower_model`.
        wanted: As of `lower_model`.
        frame: As of `lower_model`.

    Raises:
        MisuseError: As `lower_model`, or if the frame does not fit the file.
    """
    frame = frame or Frame()
    frame.apply(proto)
    refusals = Refusals()
    frame = refusals.attempt(partial(_by_columns, proto.graph, frame)) or frame
    # Why words are refused is said once.
    worded = set(word_inputs(proto.graph))
    open_branches(proto)
    take_apart(proto)
    samples_first(proto)
    free_batch(proto)
    split_trees(proto)
    split_classifiers(proto)
    graph = proto.graph
    before = _copied(proto) if any(node.op_type == "TopK" for node in graph.node) else None
    votes = refusals.attempt(lambda: rewrite_estimators(proto, wanted, frame.outputs)) or ()
    voted = None if before is None or not votes else Voted(before, tuple(votes))
    refusals.attempt(lambda: join_trees(proto, frame.outputs))
    constants = {tensor.name: _constant(tensor) for tensor in graph.initializer}
    ends = refusals.attempt(lambda: find_ends(graph, constants, wanted, frame.outputs)) or []
    sinks = ends or [find_end(graph, name, constants) for name in _float_outputs(graph)]
    scores = [end.scores for end in sinks]
    needed = _ancestors(graph.node, *scores)
    names = free_inputs(graph, constants, needed, scores)
    entries = []
    values: dict[str, Value | Lookup | Table | Affine | Opaque] = dict(constants)
    for info in graph.input:
        if info.name in names:
            entry = None
            if info.name not in worded:
                entry = refusals.attempt(partial(read_entry, info, proto, frame, alone=len(names) == 1))
            entries += [] if entry is None else [entry]
            values[info.name] = Opaque()
    if not names and scores:
        refusals.note(_independent(scores[0]))
    builder = GraphBuilder("", ())
    if names and len(entries) == len(names):
        check_columns(entries, frame)
        entries = refusals.attempt(lambda: publish(entries, graph, needed, frame.published)) or entries
        builder, placed = place(entries, proto)
        values |= placed
    if ends and entries and wanted is None and len(ends) == 1 and _shows_values(proto, entries, ends[0]):
        # Labels of places that no policy tells are values that have no scores any more.
        told = "value" if ends[0].head.picks else None
        ends = refusals.attempt(lambda: find_ends(graph, constants, "value", frame.outputs)) or []
        wanted = told
    walk = _Walk(proto, builder, values, refusals, frame)
    walk.note_integers(entry.named for entry in entries)
    for taken in ends or sinks:
        walk.lower_to(taken, wanted)
    model = None
    if entries and ends and not refusals:
        model = refusals.attempt(partial(_finish, walk, entries, ends, wanted, frame))
    model = model if model is None else replace(model, voted=voted)
    return Survey(walk.steps, refusals.reasons, model, refusals.error())


def _copied(proto: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    return copy


def _by_columns(graph: onnx.GraphProto, frame: Frame) -> Frame:
    """Let a file read a row column by column, if it has words, or fills in numbers that may be missing.

    Raises:
        MisuseError: As `_with_words`.
        UnsupportedOpError: As `_with_words`.
    """
    if reads_words(graph):
        return _with_words(graph, frame)
    if not frame.may_lack_numbers or (row := filled_row(graph)) is None:
        return frame
    words = split_row(graph, row, frame.columns)
    return replace(frame, columns=words.columns, row=words.row, needs_table=False)


def _with_words(graph: onnx.GraphProto, frame: Frame) -> Frame:
    """Number a file's words, and what its owner says of it with their columns.

    Raises:
        MisuseError: If the owner does not publish them, or names columns otherwise.
        UnsupportedOpError: If something else than encoders reads words.
    """
    words = number_words(graph)
    if not frame.publishes_words:
        shown = ", ".join(column.name for column in words.worded)
        raise MisuseError(
            f"clients must know which words the model knows in columns {shown}",
            where="the model's input",
            fix=spelled("pass ⟦public_preprocessing⟧ to publish the words; what the model makes of each stays secret"),
        )
    if frame.needs_table:
        raise MisuseError("the file itself names its columns", where=option_named("columns"), fix="leave it out")
    return replace(frame, columns=words.columns, row=words.row)


def _finish(
    walk: _Walk, entries: Sequence[Entry], ends: Sequence[End], wanted: str | None, frame: Frame
) -> ImportedModel:
    """The model, once nothing is refused."""
    wires = [walk.wire(end.scores) for end in ends]
    for end, wire in zip(ends, wires, strict=True):
        if wire == walk.builder.input:
            raise ModelError("the network does nothing with its input", where=end.scores, fix="check the model")
        check_end(end, wire, walk.values)
    outputs: tuple[NamedOutput, ...] = ()
    head = ends[0].head
    if len(ends) == 1:
        wire = wires[0]
        shape = (wire.size,) if flattens(ends[0]) else wire.shape
        if end_is_whole(walk.proto, ends[0]):
            wanted = _of_whole(wanted, ends[0])
        policy = choose_policy(head, wire.size, wanted, Form.of(shape, walk.builder.input.shape))
        if policy.output not in ("logits", "value"):
            check_flattened(ends[0], wire)
        if policy.two_classes:
            wire = walk.builder.zero_before(wire)
        if policy.output == "label-map":
            axis = class_axis(ends[0], wire.shape, frame.classes or len(head.classes or ()))
            _check_axes(ends[0], wire.shape, axis)
            policy = replace(policy, class_axis=axis, notes=(_LABELS_OF.format(axis, wire.shape),))
            others = (each for each in range(len(wire.shape)) if each != axis)
            walk.builder.enter("classes last")
            wire = walk.builder.transpose(wire, (*others, axis))
    else:
        outputs, wire = _joined(walk.builder, frame, wires)
        policy = choose_policy(Head(), wire.size, "value")
    lowered = walk.builder.finish(wire)
    return ImportedModel(
        name=walk.proto.graph.name,
        entries=tuple(entries),
        input_name=walk.builder.input.name,
        input_shape=walk.builder.input.shape,
        graph=lowered,
        logits=tuple(end.scores for end in ends),
        outputs=outputs,
        masked=tuple(walk.masked),
        policy=policy,
        classes=head.classes if len(ends) == 1 else None,
        operators=walk.operators,
        proto=walk.proto,
    )


def _of_whole(wanted: str | None, end: End) -> str:
    """The policy of whole numbers or truth values that the network computes: what they are.

    Raises:
        MisuseError: If another one is wanted.
    """
    if wanted in (None, "value", "logits"):
        return wanted or "value"
    raise MisuseError(
        f"output {wanted} is picked from scores, and tensor {end.scores} has whole numbers or truth values",
        where=f"output {wanted}",
        fix="choose value, which is what the network gives",
    )


def _check_axes(end: End, shape: Sequence[int], axis: int) -> None:
    """Check that other outputs of the same scores have their classes along the same axis.

    Raises:
        UnsupportedOpError: If one has not.
    """
    for other in end.beside:
        picks = [node for node in other.operators if node.op_type in ENDINGS]
        if picks and class_axis(other, shape, 0) != axis:
            raise Node(picks[-1], []).unsupported(
                "axis",
                "is another one than that of the file's other output",
                spelled("name one output with ⟦output_name⟧"),
            )


#: What the owner is told of a label at each place.
_LABELS_OF = "the classes are axis {} of scores of shape {}, and clients learn the label at each place"


def _joined(builder: GraphBuilder, frame: Frame, wires: Sequence[Wire]) -> tuple[tuple[NamedOutput, ...], Wire]:
    """Several outputs one after another in one vector, each times its factor."""
    outputs = tuple(
        NamedOutput(name, wire.shape, frame.gains.get(name, 1.0))
        for name, wire in zip(frame.outputs, wires, strict=True)
    )
    parts = []
    for output, wire in zip(outputs, wires, strict=True):
        builder.enter(output.name)
        parts.append(builder.reshape(builder.scale(wire, output.factor), (wire.size,)))
    builder.enter("outputs")
    return outputs, builder.concat(tuple(parts), 0)


def _shows_values(proto: onnx.ModelProto, entries: Sequence[Entry], end: End) -> bool:
    """Whether what stands behind the scores is a part of the network: it makes values of a map, and no one label."""
    if not end.operators:
        return False
    shapes = InferredShapes(proto).shapes
    scores = shapes.get(end.scores)
    given = tuple(side for entry in entries for side in entry.named.shape) if len(entries) == 1 else ()
    if scores is None:
        return False
    form = Form.of(scores[1:], given)
    if end.head.picks:
        return form is Form.MAP and not labels_places(end)
    # Old files flatten a map for its softmax, and give it its shape again.
    returns = end.operators[-1].op_type == "Reshape"
    told = shapes.get(find_root(proto.graph, end.scores, {}), ()) if returns else ()
    return end.head.gives_values(Form.MAP if is_map(told[1:]) else form)


def _float_outputs(graph: onnx.GraphProto) -> list[str]:
    """Of a model with too many outputs, those that may be scores."""
    return [entry.name for entry in graph.output if entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]


class _Walk:
    """The state of a walk: what is known of each tensor so far."""

    def __init__(
        self,
        proto: onnx.ModelProto,
        builder: GraphBuilder,
        values: dict[str, Value | Lookup | Table | Affine | Opaque],
        refusals: Refusals,
        frame: Frame,
    ) -> None:
        self.proto = proto
        self.builder = builder
        self.values = values
        self.operators: Counter[str] = Counter()
        self.steps: list[Step] = []
        self._refusals = refusals
        self._made: dict[tuple[str, float | None], Wire | Opaque] = {}
        self.masked: list[str] = []
        #: Tensors of integers that depend on the input, and their types.
        self._whole: dict[str, np.dtype[Any]] = {}
        self._frame = frame
        self._shapes = InferredShapes(proto)
        self._shown: set[str] = set()
        #: Tensors of whole numbers of which each is off by a rounding.
        self._rounded: set[str] = set()
        #: Nodes of bodies that took the place of a branch or a loop.
        self._opened: list[onnx.NodeProto] = []
        self._origins = Origins()
        self._batch_size = BatchSize(proto.opset_import, free=not _has_one_sample(proto.graph, values))

    def lower_to(self, end: End, wanted: str | None) -> None:
        """Lower what the scores depend on, and check what is behind them, of which the owner wants such an output."""
        if len(self._frame.outputs) > 1 or self._tells_numbers(end, wanted):
            self._shown.add(end.scores)
        for proto in _ancestors(self.proto.graph.node, end.scores):
            # Outputs share nodes.
            if not all(name in self.values for name in filter(None, proto.output)):
                self._lower(proto)
        for proto in end.operators:
            # A classifier's scores are an output of the end itself.
            if end.scores not in proto.output:
                self._end(Node(proto, []), end.scores, wanted)

    def _tells_numbers(self, end: End, wanted: str | None) -> bool:
        """Whether the client learns the scores themselves, as of a regression or a map where nothing is chosen."""
        shape = self._shapes.shapes.get(end.scores, ())
        return wanted in ("value", "logits") or (wanted is None and (len(shape) != 2 or shape[1] == 1))

    def wire(self, name: str) -> Wire:
        """The value of a tensor that depends on the input.

        Raises:
            ModelError: If it does not.
        """
        value = self._materialised(name, self.values.get(name))
        if not isinstance(value, Wire):
            raise _independent(name)
        if holds_integers(value):
            fix = "export the model with a DequantizeLinear at its end"
            raise UnsupportedOpError("the scores are quantised integers", where=name, fix=fix)
        if any(value.merged) and not value.is_column:
            what = f"the scores are of shape {value.batch_shape}, and samples must come first"
            fix = "end the model in a Reshape or Transpose that gives samples an axis of their own, the first"
            raise UnsupportedOpError(what, where=name, fix=fix)
        # Where the batch is says nothing of one sample.
        return value.plain()

    def _end(self, node: Node, logits: str, wanted: str | None) -> None:
        """Check a final operator."""
        blind = isinstance(self._materialised(logits, self.values.get(logits)), Opaque)
        outcome = self._refusals.attempt(
            lambda: Outcome.UNCHECKED if blind else self._ended(node, logits, wanted), node
        )
        self.operators[node.operator] += 1
        shape = shape_of(self._materialised(logits, self.values.get(logits)))
        self.steps.append(Step(node, outcome or Outcome.REFUSED, [shape], []))

    def _ended(self, node: Node, logits: str, wanted: str | None) -> Outcome:
        check_ending(node, self.wire(logits), wanted)
        return Outcome.RUNS

    def _lower(self, proto: onnx.NodeProto) -> None:
        """Lower a node, or note why it is refused: stand-ins for its outputs let what is behind it be looked at."""
        if is_opened(proto):
            self._open(proto)
            return
        given = [self._value(name, proto) for name in proto.input]
        if any(isinstance(value, Table) for value in given):
            self._read_table(proto, given)
            return
        if any(isinstance(value, Affine) for value in given) and self._adds_up(proto, given):
            return
        if any(isinstance(value, Indices | Bits) for value in given) and self._looks_up(proto, given):
            return
        self._follow_rounded(proto, given)
        bound, kinds = self._bound(proto, given), self._kinds(proto, given)
        if proto.op_type in ("Shape", "Size"):
            # Rows of a public table have no integers, but those that are asked for here are not read.
            given = [value.stand_in if isinstance(value, Indices) else value for value in given]
        inputs = [self._materialised(name, value, bound) for name, value in zip(proto.input, given, strict=True)]
        node = Node(proto, [None if isinstance(value, Opaque) else value for value in inputs])
        blind = any(isinstance(value, Opaque) for value in inputs)
        if blind and follows_from_shapes(node.operator, inputs):
            self.values.update({name: Opaque(of_shapes=True) for name in proto.output if name})
            return
        compute = _unseen if blind else self._computed if keeps_whole(proto, kinds) else _rounded
        outcome, values = self._refusals.attempt(partial(compute, node), node) or (Outcome.REFUSED, {})
        if outcome in (Outcome.REFUSED, Outcome.UNCHECKED):
            values = {name: self._shapes.stand_in(name) for name in proto.output if name}
        elif outcome is Outcome.RUNS:
            values = self._typed(proto, values, kinds)
        self.values.update(values)
        if outcome is not Outcome.CONSTANT:
            outputs = [shape_of(self.values.get(name)) for name in proto.output]
            self.steps.append(Step(node, outcome, [shape_of(value) for value in inputs], outputs))

    def _follow_rounded(self, proto: onnx.NodeProto, given: Sequence[Known]) -> None:
        """Note what is made of whole numbers that a product looks up, each off by a rounding; none is compared."""
        if proto.op_type in ORDERS and self._rounded.intersection(proto.input):
            self._refusals.note(_rounded_and_compared(proto), Node(proto, []))
        looked_up = any(isinstance(value, Indices) and value.is_whole for value in given)
        rounds = proto.op_type in (OF_NUMBERS | ARITHMETIC) - _GIVE_PLACES
        if (looked_up or self._rounded.intersection(proto.input)) and rounds:
            self._rounded.update(filter(None, proto.output))

    def _typed(self, proto: onnx.NodeProto, values: dict[str, Any], kinds: Sequence[np.dtype[Any]]) -> dict[str, Any]:
        """A node's outputs, those of truth values and integers as such; `kinds` are the types of its integers."""
        if makes_truths(proto):
            return {name: _as_truth(value) for name, value in values.items()}
        if proto.op_type in _GIVE_PLACES:
            self._whole[proto.output[-1]] = np.dtype(np.int64)
            return values
        kind = cast_type(proto) or max(kinds, key=lambda kind: kind.itemsize, default=None)
        if kind is not None and not leaves_integers(proto):
            self._whole.update(dict.fromkeys(values, kind))
        return values

    def note_integers(self, inputs: Iterable[NamedInput]) -> None:
        """Note which inputs are numbers of a type of integers."""
        for entry in inputs:
            if entry.choices is None and np.dtype(TYPES[entry.datatype]).kind in "iu":
                self._whole[entry.name] = np.dtype(TYPES[entry.datatype])

    def _kinds(self, proto: onnx.NodeProto, given: Sequence[object]) -> list[np.dtype[Any]]:
        """The types of a node's inputs that depend on the network's and are of integers in the file."""
        kinds = []
        for name, value in zip(proto.input, given, strict=True):
            held = value.table if isinstance(value, Indices) else value.pair if isinstance(value, Bits) else None
            kind = self._whole.get(name) if held is None else held.dtype
            kinds += [] if kind is None or kind.kind not in "iu" else [kind]
        return kinds

    def _open(self, proto: onnx.NodeProto) -> None:
        """Lower the body of a branch or a loop in its place."""
        node, outcome = Node(proto, []), Outcome.REFUSED
        if any(isinstance(self.values.get(name), Opaque) for name in ways(proto)):
            outcome = Outcome.UNCHECKED
        else:
            inner = opened(proto, self.values, self._batch_size.changing, self._shape, self._opened.extend)
            while (following := self._refusals.attempt(lambda: next(inner, None), node)) is not None:
                self._lower(following)
        missing = [name for name in proto.output if name and name not in self.values]
        if missing:
            self.values.update({name: self._shapes.stand_in(name) for name in missing})
            outputs = [shape_of(self.values.get(name)) for name in proto.output]
            self.steps.append(Step(node, outcome, [], outputs))

    def _shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a tensor that was computed, with a batch of one; None where it is not known."""
        value = self.values.get(name)
        return shape_of(value.stand_in if isinstance(value, Indices | Bits | Affine | Table) else value)

    def _computed(self, node: Node) -> tuple[Outcome, dict[str, Any]]:
        """A node's outputs by name, and whether they are constants or lowered.

        Raises:
            ModelError: If the node is refused.
        """
        folded = fold(node, self.proto.opset_import)
        if folded is not None:
            self._batch_size.follow(node, folded)
            self._origins.follow(node, folded)
            return Outcome.CONSTANT, dict(folded)
        lowering = _lowering_of(node)
        node = replace(node, for_two=self._batch_size.for_two(node))
        self._batch_size.check(node)
        self.operators[node.operator] += 1
        self.builder.enter(node.name)
        if any(map(holds_integers, node.inputs)):
            lowering = partial(lower_integers, lowering=lowering)
        try:
            lowered = lower_anywhere(node, self.builder, lowering)
        except NotFiniteError as error:
            raise self._origins.named(error, node) from None
        values = lowered if isinstance(lowered, tuple) else (lowered,)
        return Outcome.RUNS, {
            name: value for name, value in zip(node.proto.output, values, strict=False) if name and value is not None
        }

    def _read_table(self, proto: onnx.NodeProto, given: Sequence[Known]) -> None:
        """Make a table of a table, or lower the trees that read it."""
        table = next(value for value in given if isinstance(value, Table))
        node = Node(proto, [value.stand_in if isinstance(value, Table) else None for value in given])
        self.builder.enter(node.name)

        def make() -> Table | Wire:
            if node.qualified_operator in OPERATORS:
                return lower_trees(node, self.builder, table)
            check_split(node)
            followed = table.follow(node, given)
            if followed is None:
                raise node.unsupported(
                    "input 0",
                    "is a table that trees read; lanner can change its columns only one at a time",
                    "compute this before the model and train the trees on the result",
                )
            return followed

        made = self._refusals.attempt(make, node)
        name = next(filter(None, proto.output))
        outcome = Outcome.REFUSED if made is None else Outcome.RUNS
        self.values[name] = self._shapes.stand_in(name) if made is None else made
        self.operators[node.operator] += 1
        shape = shape_of(made.stand_in if isinstance(made, Table) else made)
        self.steps.append(Step(node, outcome, [shape_of(table.stand_in)], [shape]))

    def _adds_up(self, proto: onnx.NodeProto, given: Sequence[Known]) -> bool:
        """Whether a node's output is a sum of a row's numbers again, and noted."""
        node = Node(proto, [value.stand_in if isinstance(value, Affine) else None for value in given])
        first = next(value for value in given if isinstance(value, Affine))
        found = first.follow(node, given)
        if found is None:
            return False
        self.values[next(filter(None, proto.output))] = found
        self.operators[node.operator] += 1
        self.steps.append(Step(node, Outcome.RUNS, [shape_of(value) for value in node.inputs], [found.shape]))
        return True

    def _looks_up(self, proto: onnx.NodeProto, given: Sequence[Known]) -> bool:
        """Whether a node's output is what is looked up of an index again, and noted."""
        node = Node(proto, [value.stand_in if isinstance(value, Indices | Bits) else None for value in given])
        if proto.op_type in ("Shape", "Size"):
            return False
        self.builder.enter(node.name)
        bits = moves(node, given)
        try:
            found = follow(node, given, self.proto.opset_import, self.builder)
            if found is None and proto.op_type == "CumSum":
                found = Counted.of(node, given, self.builder)
            if found is None and bits is not None:
                found = self._moved(proto, given, bits)
        except ModelError:
            # What cannot be computed for every choice may be for the values themselves.
            found = None
        if found is None and proto.op_type == "Where":
            return self._chooses(node, given)
        if found is None and proto.op_type in ORDERS and any(isinstance(value, Indices) for value in given):
            # A product with a table is off by a rounding, and an index is often what it is compared with.
            self._refusals.note(_looked_up_and_compared(proto), node)
        if found is None and (told := lacks_row(node, given)) is not None:
            name = next(filter(None, proto.output))
            self._refusals.note(node.unsupported("input 1", *told), node)
            self.values[name] = self._shapes.stand_in(name)
            shapes = [shape_of(self.values[name])]
            self.steps.append(Step(node, Outcome.REFUSED, [shape_of(value) for value in node.inputs], shapes))
            return True
        if found is None:
            return False
        self.values[next(filter(None, proto.output))] = found
        self.operators[node.operator] += 1
        shapes = [shape_of(found.stand_in)]
        self.steps.append(Step(node, Outcome.RUNS, [shape_of(value) for value in node.inputs], shapes))
        return True

    def _chooses(self, node: Node, given: Sequence[Known]) -> bool:
        """Whether a node chooses between values by a bit, and its result, noted."""
        condition, *names = node.proto.input
        both = [self._materialised(name, value) for name, value in zip(names, given[1:], strict=True)]
        if any(map(holds_integers, both)):
            # Quantised values are chosen as such, or refused.
            return False
        scores = next((name for name, value in zip(names, both, strict=True) if isinstance(value, Wire)), condition)

        def bound(least: float) -> float | None:
            factor = self._hides(node.proto.output[0], least, given[0])
            if factor is None:
                return None
            self.masked.append(scores)
            return self._frame.bounds.get(scores, _BOUND) / factor

        chosen = choose(self.builder, [given[0], *both], bound)
        if chosen is None:
            return False
        self.values[node.proto.output[0]] = chosen
        kinds = self._kinds(node.proto, given)
        if kinds:
            self._whole[node.proto.output[0]] = max(kinds, key=lambda kind: kind.itemsize)
        self.operators[node.operator] += 1
        self.steps.append(Step(node, Outcome.RUNS, [shape_of(value) for value in both], [shape_of(chosen)]))
        return True

    def _moved(self, proto: onnx.NodeProto, given: Sequence[Known], bits: Bits) -> Lookup | None:
        """Bits in other places; None where they share the batch's axis there."""
        node = Node(proto, [bits.source, *given[1:]])  # type: ignore[list-item]
        node = replace(node, for_two=self._batch_size.for_two(node))
        moved = lower_anywhere(node, self.builder, _lowering_of(node))
        if not isinstance(moved, Wire) or any(moved.merged):
            return None
        pair = moved_pair(node, bits, given[1:], self.proto.opset_import, moved)
        return None if pair is None else Bits(moved, pair)

    def _bound(self, proto: onnx.NodeProto, given: Sequence[Known]) -> float | None:
        """How far below 0 a private mask must be that a node adds to scores; None where it adds none."""
        masks = [value for value in given if isinstance(value, Bits) and value.masks]
        if proto.op_type != "Add" or not masks:
            return None
        largest = max(mask.largest_of_mask for mask in masks)
        factors = [self._hides(proto.output[0], largest, mask) for mask in masks]
        if None in factors:
            return None
        scores = next((name for name, value in zip(proto.input, given, strict=True) if isinstance(value, Wire)), None)
        if scores is None:
            return None
        self.masked.append(scores)
        return self._frame.bounds.get(scores, _BOUND) / min(factor for factor in factors if factor is not None)

    def _hides(self, name: str, least: float, mask: object) -> float | None:
        """Whether a number in a tensor takes elements of scores away, as a private mask says; as `hides`.

        What the network compares may hide any of them, so that the client's numbers are looked at closely.
        """
        computed = isinstance(mask, Bits) and is_computed(self.builder, mask.source)
        nodes = with_bodies([*self.proto.graph.node, *self._opened])
        return hides(nodes, name, least, self._shown, {**self._written, **self.values}, closely=computed)

    @cached_property
    def _written(self) -> dict[str, NDArray[np.generic]]:
        """What the file's ``Constant`` nodes hold, those that the walk has not come to included."""
        return {name: _constant(tensor) for name, tensor in constant_nodes(self.proto.graph).items()}

    def _materialised(self, name: str, value: Known, bound: float | None = None) -> Value | Opaque | None:
        """What is looked up as a value of the network, made once for all who read it; a table's shape alone."""
        if isinstance(value, Table):
            return Opaque(value.stand_in.with_batch(1))
        if not isinstance(value, Indices | Bits | Affine):
            return value
        key = (name, bound)
        if key not in self._made:
            self.builder.enter(name)
            make = partial(value.materialised, bound=bound) if isinstance(value, Bits) else value.materialised
            made = self._refusals.attempt(lambda: make(self.builder))
            self._made[key] = made if made is not None else Opaque(value.stand_in.with_batch(1))
        return self._made[key]

    def _value(self, name: str, proto: onnx.NodeProto) -> Known:
        if not name:
            return None
        if name not in self.values:
            where = f"node {proto.name or proto.op_type}"
            error = ModelError(f"input {name} is computed nowhere", where=where, fix="export the model again")
            self._refusals.note(error, Node(proto, []))
            return Opaque()
        return self.values[name]


def _lowering_of(node: Node) -> Lowering:
    """The lowering of a node's operator.

    Raises:
        UnsupportedOpError: If it has none, or looks an embedding up.
    """
    check_embedding(node)
    lowering = find_lowering(node.qualified_operator)
    if lowering is None:
        raise unknown(node)
    return lowering


def _looked_up_and_compared(proto: onnx.NodeProto) -> UnsupportedOpError:
    return Node(proto, []).unsupported(
        "an input",
        "holds looked-up values that are compared with different constants",
        "compare it with one constant, or let the input be of floats",
    )


def _rounded_and_compared(proto: onnx.NodeProto) -> UnsupportedOpError:
    return Node(proto, []).unsupported(
        "an input",
        "holds looked-up values that were moved or added before the comparison, where rounding could decide",
        "compare each before it is moved, or let the input be of floats",
    )


def _as_truth(value: object) -> object:
    """Truth values of the network, of which what follows from them alone is computed for both when compiling."""
    return truth(value) if isinstance(value, Wire) and not any(value.merged) else value


def _rounded(node: Node) -> tuple[Outcome, dict[str, Any]]:
    """Refuse what does not compute with integers as with the same numbers as floats."""
    _lowering_of(node)
    what = "is of integers that depend on the input, which it may round, or wrap where their type is narrow"
    raise node.unsupported("an input", what, "cast them to floats before")


def _unseen(node: Node) -> tuple[Outcome, dict[str, Any]]:
    """Of a node that reads what nothing is known of, its operator alone is looked at."""
    _lowering_of(node)
    return Outcome.UNCHECKED, {}


def _independent(name: str) -> ModelError:
    return ModelError("the output does not depend on the input", where=name, fix="check the model")


def _ancestors(nodes: Iterable[onnx.NodeProto], *outputs: str) -> list[onnx.NodeProto]:
    """The nodes that tensors depend on, in the file's order, which is topological, with the outputs in use alone."""
    needed, chosen = set(outputs), []
    for node in reversed(list(nodes)):
        if needed.intersection(node.output):
            needed.update(names_read(node))
            chosen.append(_with_used_outputs(node, needed))
    return chosen[::-1]


def _with_used_outputs(node: onnx.NodeProto, used: set[str]) -> onnx.NodeProto:
    """The node, other outputs left unnamed: a file may list the mask of a Dropout that nothing reads."""
    if used.issuperset(node.output):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.output[:] = [name if name in used else "" for name in node.output]
    return copy


def _has_one_sample(graph: onnx.GraphProto, values: Mapping[str, Known]) -> bool:
    """Whether every input fixes a batch of one."""
    inputs = [entry for entry in graph.input if not isinstance(values.get(entry.name), np.ndarray)]
    return all(
        entry.type.tensor_type.shape.dim and entry.type.tensor_type.shape.dim[0].dim_value == 1 for entry in inputs
    )


def _constant(tensor: onnx.TensorProto) -> NDArray[np.generic]:
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OSError) as error:
        raise ModelError(
            f"the tensor cannot be read ({error})",
            where=f"initializer {tensor.name}",
            fix="export or copy again",
        ) from None
