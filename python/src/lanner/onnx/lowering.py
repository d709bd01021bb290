"""Walks an ONNX graph from its input to its output and lowers every node on the way; of those refused it names all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.errors import ModelError, Refusal, UnsupportedOpError
from lanner.heads import Form, Policy, choose_policy
from lanner.onnx.batch import free_batch, samples_first
from lanner.onnx.batch_place import lower_anywhere
from lanner.onnx.batch_size import BatchSize
from lanner.onnx.bodies import is_opened, names_read, opened, ways
from lanner.onnx.builder import FloatGraph, GraphBuilder, Wire
from lanner.onnx.ending import End, check_end, check_ending, find_end
from lanner.onnx.folding import fold
from lanner.onnx.infinite import Origins
from lanner.onnx.node import Node, NotFiniteError
from lanner.onnx.opaque import InferredShapes, Opaque, follows_from_shapes
from lanner.onnx.outputs import find_scores
from lanner.onnx.quantized import holds_integers, lower_integers
from lanner.onnx.refusals import Refusals
from lanner.onnx.registry import Lowering, Value, find_lowering
from lanner.onnx.split import split_classifiers
from lanner.onnx.steps import Outcome, Share, Step, shape_of
from lanner.onnx.unknown import check_embedding, unknown


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """An ONNX model, lowered.

    Attributes:
        name: The name that the file gives its graph.
        input_name: The input's name.
        input_shape: The shape of one sample.
        batched: Whether the file's batch axis is symbolic, so that it takes several samples at once.
        graph: The float graph up to the logits, with the score 0 before them where the policy has two classes.
        logits: The name of the ONNX tensor that holds the logits.
        policy: What a client learns of them.
        classes: The names that the file gives its classes, if any.
        operators: How often each ONNX operator is on the way from the input to the output.
        proto: The ONNX model itself.
    """

    name: str
    input_name: str
    input_shape: tuple[int, ...]
    batched: bool
    graph: FloatGraph
    logits: str
    policy: Policy
    classes: tuple[str, ...] | None
    operators: Counter[str]
    proto: onnx.ModelProto


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


def lower_model(proto: onnx.ModelProto, wanted: str | None = None, output_name: str | None = None) -> ImportedModel:
    """Lower a checked model of a current opset.

    Args:
        proto: The model; where it ends in a linear classifier, that is changed to give its scores.
        wanted: The output policy that its owner chose, if any.
        output_name: The output to compute; None for the only one, or that of a classifier's scores.

    Raises:
        ModelError: If it has not exactly one input, or several outputs of which none is named, or a shape is not fixed.
        MisuseError: If there is no such output, or the policy does not go with the network's end.
        UnsupportedOpError: Naming the first node, operator and attribute that no lowering takes.

    A `ModelError` and an `UnsupportedOpError` hold every reason.
    """
    survey = survey_model(proto, wanted, output_name)
    if survey.model is None:
        raise survey.error or ModelError("the model is refused")
    return survey.model


def survey_model(proto: onnx.ModelProto, wanted: str | None = None, output_name: str | None = None) -> Survey:
    """Lower a checked model of a current opset, going on behind whatever is refused.

    Args:
        proto: As of `lower_model`.
        wanted: As of `lower_model`.
        output_name: As of `lower_model`.

    Raises:
        MisuseError: As `lower_model`.
    """
    samples_first(proto)
    free_batch(proto)
    split_classifiers(proto)
    graph, refusals = proto.graph, Refusals()
    constants = {tensor.name: _constant(tensor) for tensor in graph.initializer}
    entry = refusals.attempt(lambda: _only(graph.input, "input", constants))
    end = refusals.attempt(lambda: find_scores(graph, constants, wanted, output_name))
    if entry is not None and end is not None and wanted is None and _shows_values(proto, entry.name, end):
        end = refusals.attempt(lambda: find_scores(graph, constants, "value", output_name))
    values: dict[str, Value | Opaque] = dict(constants)
    for free in graph.input:
        if free.name not in constants:
            refusals.attempt(partial(_check_type, free, graph))
            sample = refusals.attempt(partial(_sample_shape, free))
            values[free.name] = Wire(free.name, sample[0]) if sample else Opaque()
    builder = GraphBuilder("", ())
    if entry is not None and isinstance(given := values[entry.name], Wire):
        builder = GraphBuilder(entry.name, given.shape)
        values[entry.name] = builder.input
    walk = _Walk(proto, builder, values, refusals)
    for taken in [end] if end else [find_end(graph, name, constants) for name in _float_outputs(graph)]:
        walk.lower_to(taken, wanted)
    model = None
    if entry is not None and end is not None and not refusals:
        model = refusals.attempt(partial(_finish, walk, entry, end, wanted))
    return Survey(walk.steps, refusals.reasons, model, refusals.error())


def _finish(walk: _Walk, entry: onnx.ValueInfoProto, end: End, wanted: str | None) -> ImportedModel:
    """The model, once nothing is refused."""
    wire = walk.wire(end.scores)
    if wire == walk.builder.input:
        raise ModelError("the network does nothing with its input", where=end.scores, fix="check the model")
    check_end(end, wire, walk.values)
    policy = choose_policy(end.head, wire.size, wanted, Form.of(wire.shape, walk.builder.input.shape))
    if policy.two_classes:
        wire = walk.builder.zero_before(wire)
    lowered = walk.builder.finish(wire)
    shape, batched = _sample_shape(entry)
    name, classes = walk.proto.graph.name, end.head.classes
    return ImportedModel(
        name, entry.name, shape, batched, lowered, end.scores, policy, classes, walk.operators, walk.proto
    )


def _shows_values(proto: onnx.ModelProto, entry: str, end: End) -> bool:
    """Whether what stands behind the scores is a part of the network: it makes values of a map, and no label."""
    if not end.operators or any(node.op_type == "ArgMax" for node in end.operators):
        return False
    shapes = InferredShapes(proto).shapes
    scores, given = shapes.get(end.scores), shapes.get(entry)
    return scores is not None and given is not None and end.head.gives_values(Form.of(scores[1:], given[1:]))


def _float_outputs(graph: onnx.GraphProto) -> list[str]:
    """Of a model with too many outputs, those that may be scores."""
    return [entry.name for entry in graph.output if entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]


class _Walk:
    """The state of a walk: what is known of each tensor so far."""

    def __init__(
        self, proto: onnx.ModelProto, builder: GraphBuilder, values: dict[str, Value | Opaque], refusals: Refusals
    ) -> None:
        self.proto = proto
        self.builder = builder
        self.values = values
        self.operators: Counter[str] = Counter()
        self.steps: list[Step] = []
        self._refusals = refusals
        self._shapes = InferredShapes(proto)
        self._origins = Origins()
        self._batch_size = BatchSize(proto.opset_import, free=not _has_one_sample(proto.graph, values))

    def lower_to(self, end: End, wanted: str | None) -> None:
        """Lower what the scores depend on, and check what is behind them, of which the owner wants such an output."""
        for proto in _ancestors(self.proto.graph.node, end.scores):
            # Outputs share nodes.
            if not all(name in self.values for name in filter(None, proto.output)):
                self._lower(proto)
        for proto in end.operators:
            # A classifier's scores are an output of the end itself.
            if end.scores not in proto.output:
                self._end(Node(proto, []), end.scores, wanted)

    def wire(self, name: str) -> Wire:
        """The value of a tensor that depends on the input.

        Raises:
            ModelError: If it does not.
        """
        value = self.values.get(name)
        if not isinstance(value, Wire):
            raise _independent(name)
        if holds_integers(value):
            fix = "export the model with a DequantizeLinear at its end"
            raise UnsupportedOpError("the scores are quantised integers", where=name, fix=fix)
        if value.is_column:
            return value.plain()
        if value.axis or any(value.merged):
            what = f"the scores are of shape {value.batch_shape}, and samples must come first"
            raise UnsupportedOpError(what, where=name, fix="let a Transpose of the samples to the front end the model")
        return value

    def _end(self, node: Node, logits: str, wanted: str | None) -> None:
        """Check a final operator."""
        blind = isinstance(self.values.get(logits), Opaque)
        outcome = self._refusals.attempt(
            lambda: Outcome.UNCHECKED if blind else self._ended(node, logits, wanted), node
        )
        self.operators[node.operator] += 1
        shape = shape_of(self.values.get(logits))
        self.steps.append(Step(node, outcome or Outcome.REFUSED, [shape], []))

    def _ended(self, node: Node, logits: str, wanted: str | None) -> Outcome:
        check_ending(node, self.wire(logits), wanted)
        return Outcome.RUNS

    def _lower(self, proto: onnx.NodeProto) -> None:
        """Lower a node, or note why it is refused: stand-ins for its outputs let what is behind it be looked at."""
        if is_opened(proto):
            self._open(proto)
            return
        inputs = [self._value(name, proto) for name in proto.input]
        node = Node(proto, [None if isinstance(value, Opaque) else value for value in inputs])
        blind = any(isinstance(value, Opaque) for value in inputs)
        if blind and follows_from_shapes(node.operator, inputs):
            self.values.update({name: Opaque(of_shapes=True) for name in proto.output if name})
            return
        compute = _unseen if blind else self._computed
        outcome, values = self._refusals.attempt(partial(compute, node), node) or (Outcome.REFUSED, {})
        if outcome in (Outcome.REFUSED, Outcome.UNCHECKED):
            values = {name: self._shapes.stand_in(name) for name in proto.output if name}
        self.values.update(values)
        if outcome is not Outcome.CONSTANT:
            outputs = [shape_of(self.values.get(name)) for name in proto.output]
            self.steps.append(Step(node, outcome, [shape_of(value) for value in inputs], outputs))

    def _open(self, proto: onnx.NodeProto) -> None:
        """Lower the body of a branch or a loop in its place."""
        node, outcome = Node(proto, []), Outcome.REFUSED
        if any(isinstance(self.values.get(name), Opaque) for name in ways(proto)):
            outcome = Outcome.UNCHECKED
        else:
            inner = opened(proto, self.values, self._batch_size.changing)
            while (following := self._refusals.attempt(lambda: next(inner, None), node)) is not None:
                self._lower(following)
        missing = [name for name in proto.output if name and name not in self.values]
        if missing:
            self.values.update({name: self._shapes.stand_in(name) for name in missing})
            outputs = [shape_of(self.values.get(name)) for name in proto.output]
            self.steps.append(Step(node, outcome, [], outputs))

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
        self._batch_size.check(node)
        node = replace(node, for_two=self._batch_size.for_two(node))
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

    def _value(self, name: str, proto: onnx.NodeProto) -> Value | Opaque | None:
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


def _unseen(node: Node) -> tuple[Outcome, dict[str, Any]]:
    """Of a node that reads what nothing is known of, its operator alone is looked at."""
    _lowering_of(node)
    return Outcome.UNCHECKED, {}


def _independent(name: str) -> ModelError:
    return ModelError("the output does not depend on the input", where=name, fix="check the model")


def _ancestors(nodes: Iterable[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    """The nodes that a tensor depends on, in the file's order, which is topological, with the outputs in use alone."""
    needed, chosen = {output}, []
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


def _only(
    entries: Iterable[onnx.ValueInfoProto], role: str, constants: dict[str, NDArray[np.generic]]
) -> onnx.ValueInfoProto:
    """The one entry that is not an initializer listed as an input."""
    free = [entry for entry in entries if entry.name not in constants]
    if len(free) != 1:
        names = ", ".join(entry.name for entry in free) or "none"
        raise ModelError(
            f"the model has {len(free)} {role}s ({names}), and one is needed", fix=f"export it with one {role}"
        )
    return free[0]


def _check_type(entry: onnx.ValueInfoProto, graph: onnx.GraphProto) -> None:
    """Check that the input is a tensor of float32, as `to_float32` left it; else name the first node that reads it."""
    kind = entry.type.WhichOneof("value") or "tensor_type"
    if kind == "tensor_type" and entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
        return
    shown = onnx.TensorProto.DataType.Name(entry.type.tensor_type.elem_type) if kind == "tensor_type" else kind
    reader = next((node for node in graph.node if entry.name in node.input), onnx.NodeProto(op_type="the graph"))
    raise Node(reader, []).unsupported(
        f"input {entry.name}",
        f"is of type {shown.removesuffix('_type')}; tensors of floats are needed, or of integers that are cast to them",
        "export the model with a float32 input",
    )


def _sample_shape(entry: onnx.ValueInfoProto) -> tuple[tuple[int, ...], bool]:
    """The shape of one sample, and whether the batch axis is symbolic."""
    tensor = entry.type.tensor_type
    sides = [side.dim_value if side.HasField("dim_value") else None for side in tensor.shape.dim]
    sample = [side for side in sides[1:] if side is not None and side > 0]
    if len(sides) < 2 or len(sample) != len(sides) - 1 or sides[0] not in (None, 1):
        shown = ", ".join(
            str(side.dim_value) if side.HasField("dim_value") else side.dim_param or "?" for side in tensor.shape.dim
        )
        raise ModelError(
            f"the input has shape ({shown})",
            where=f"input {entry.name}",
            fix="export it with a batch axis first, symbolic or 1, and the other sizes fixed",
        )
    return tuple(sample), sides[0] is None


def _has_one_sample(graph: onnx.GraphProto, values: Mapping[str, Value | Opaque]) -> bool:
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
