"""Walks an ONNX graph from its input to its output and lowers every node on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.errors import ModelError, UnsupportedOpError
from lanner.heads import Policy, choose_policy
from lanner.onnx.builder import FloatGraph, GraphBuilder, Wire
from lanner.onnx.ending import ENDINGS, End, check_ending
from lanner.onnx.folding import fold
from lanner.onnx.node import Node
from lanner.onnx.outputs import find_scores
from lanner.onnx.registry import Value, find_lowering


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


def lower_model(proto: onnx.ModelProto, wanted: str | None = None, output_name: str | None = None) -> ImportedModel:
    """Lower a checked model of a current opset.

    Args:
        proto: The model; where it ends in a linear classifier, that is changed to give its scores.
        wanted: The output policy that its owner chose, if any.
        output_name: The output to compute; None for the only one, or that of a classifier's scores.

    Raises:
        ModelError: If it has not exactly one input, or several outputs of which none is named, or a shape is not fixed.
        MisuseError: If there is no such output, or the policy does not go with the network's end.
        UnsupportedOpError: Naming the node, the operator and the attribute that no lowering takes.
    """
    graph = proto.graph
    constants = {tensor.name: _constant(tensor) for tensor in graph.initializer}
    entry = _only(graph.input, "input", constants)
    end = find_scores(graph, constants, wanted, output_name)
    _check_type(entry, graph)
    shape, batched = _sample_shape(entry)
    builder = GraphBuilder(entry.name, shape)
    walk = _Walk(proto, builder, {entry.name: builder.input, **constants})
    walk.lower_to(end)
    wire = walk.scores(end)
    if wire == builder.input:
        raise ModelError("the network does nothing with its input", where=end.scores, fix="check the model")
    policy = choose_policy(end.head, wire.size, wanted)
    if policy.two_classes:
        wire = builder.zero_before(wire)
    lowered = builder.finish(wire)
    return ImportedModel(
        graph.name, entry.name, shape, batched, lowered, end.scores, policy, end.head.classes, walk.operators, proto
    )


class _Walk:
    """The state of a walk: what is known of each tensor so far."""

    def __init__(self, proto: onnx.ModelProto, builder: GraphBuilder, values: dict[str, Value]) -> None:
        self.values = values
        self.operators: Counter[str] = Counter()
        self._proto = proto
        self._builder = builder

    def lower_to(self, end: End) -> None:
        """Lower what the scores depend on, and check what is behind them."""
        for proto in _ancestors(self._proto.graph.node, end.scores):
            self._lower(Node(proto, [self._value(name, proto) for name in proto.input]))
        for proto in end.operators:
            check_ending(Node(proto, []), self.scores(end))
            self.operators[proto.op_type] += 1

    def scores(self, end: End) -> Wire:
        """The scores, which depend on the input."""
        value = self.values[end.scores]
        if not isinstance(value, Wire):
            raise ModelError("the output does not depend on the input", where=end.scores, fix="check the model")
        return value

    def _lower(self, node: Node) -> None:
        if node.proto.domain not in ("", "ai.onnx"):
            raise _unknown(node)
        folded = fold(node, self._proto.opset_import)
        if folded is not None:
            self.values.update(folded)
            return
        lowering = find_lowering(node.operator)
        if lowering is None:
            raise _unknown(node)
        self.operators[node.operator] += 1
        self._builder.enter(node.name)
        lowered = lowering(node, self._builder)
        values = lowered if isinstance(lowered, tuple) else (lowered,)
        self.values.update((name, value) for name, value in zip(node.proto.output, values, strict=False) if name)

    def _value(self, name: str, proto: onnx.NodeProto) -> Value | None:
        if not name:
            return None
        if name not in self.values:
            where = f"node {proto.name or proto.op_type}"
            raise ModelError(f"input {name} is computed nowhere", where=where, fix="export the model again")
        return self.values[name]


def _unknown(node: Node) -> UnsupportedOpError:
    domain = f" of domain {node.proto.domain}" if node.proto.domain else ""
    if node.operator in ENDINGS and not domain:
        return UnsupportedOpError(f"operator {node.operator} is supported only as the network's last", where=node.where)
    return UnsupportedOpError(
        f"operator {node.operator}{domain} is not supported",
        where=node.where,
        fix="replace it by operators that `lanner doctor` lists",
    )


def _ancestors(nodes: Iterable[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    """The nodes that a tensor depends on, in the file's order, which is topological, with the outputs in use alone."""
    needed, chosen = {output}, []
    for node in reversed(list(nodes)):
        if needed.intersection(node.output):
            needed.update(node.input)
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


def _constant(tensor: onnx.TensorProto) -> NDArray[np.generic]:
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OSError) as error:
        raise ModelError(
            f"the tensor cannot be read ({error})",
            where=f"initializer {tensor.name}",
            fix="export or copy again",
        ) from None
