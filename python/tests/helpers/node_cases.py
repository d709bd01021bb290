"""The onnx package's own test cases of single operators, each made a private network.

A case is one node with its inputs' values. A network has one secret input with a batch axis, and one output. So one
input of the case stays secret, or several do, cut out of one; the others become initializers. Where the operator keeps
samples apart, the case's own first axis is the batch. Elsewhere the case is *lifted*: it becomes one sample, and the
node's axes move up by one. An identity convolution of one tap is the linear layer that a network must have.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[np.generic]

#: The network's input and output, named as no case names its own.
SECRET, RESULT = "the_secret", "the_result"

#: The first axis of these operators' input is the batch.
BATCHED = {
    *("Conv", "Gemm", "BatchNormalization", "MaxPool", "AveragePool", "GlobalAveragePool", "Flatten"),
    *("ConvTranspose", "GlobalMaxPool", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth"),
    *("ArgMax", "LSTM", "GRU", "RNN"),
    *("InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization", "LpPool", "LRN"),
}

#: These have the steps of sequences in front of the batch, but for layout 1.
RECURRENT = {"LSTM", "GRU", "RNN"}

#: Any one of these operators' operands may be secret, or all.
OPERANDS = {
    *("Add", "Sub", "Mul", "Div", "Pow", "MatMul", "Concat", "Max", "Min", "Sum", "Mean", "Einsum"),
    *("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "And", "Or", "Xor", "Where"),
}

#: What is around an operator is of this opset or a later one.
_OLDEST = 7

#: These may only end a network; what precedes them are the logits.
ENDINGS = {"ArgMax"}


#: Operators along an axis, and which it is where none is given.
ALONG = {
    **dict.fromkeys(("Concat", "Split", "Gather"), 0),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "LpNormalization"), -1),
}


@dataclass(frozen=True)
class NodeCase:
    """A node case as a private network.

    Attributes:
        name: The case's name, with the secret inputs' numbers where there is a choice.
        model: The network; its node is called ``under_test``.
        x: Its samples.
        expected: What the case's own node makes of them, flat; one row per sample.
        ending: The operator after the logits, or nothing.
    """

    name: str
    model: onnx.ModelProto
    x: NDArray[Any]
    expected: Array
    ending: str = ""


def node_cases(operator: str) -> Iterator[NodeCase]:
    """All cases of one operator, in every choice of secret inputs."""
    for case in _collected(operator):
        choices = _choices(case.node, case.inputs)
        for secret in choices:
            suffix = f" of secret {' and '.join(map(str, secret))}" if len(choices) > 1 else ""
            yield _network(case.name + suffix, case, [case.node.input[index] for index in secret])


@dataclass(frozen=True)
class _Case:
    """A case of the package: one node with its inputs' values by name, and its outputs."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    outputs: list[Array]

    @property
    def node(self) -> onnx.NodeProto:
        node: onnx.NodeProto = self.model.graph.node[0]
        return node


def _collected(operator: str) -> list[_Case]:
    """The cases whose graph is this one operator; importing a module of the package computes its cases."""
    package = importlib.import_module("onnx.backend.test.case.node")
    with np.errstate(divide="ignore"):
        importlib.import_module(f"{package.__name__}.{MODULES.get(operator, operator.lower())}")
    # The package's public function would compute the cases of all operators.
    cases = package._NodeTestCases
    single = [case for case in cases if [node.op_type for node in case.model.graph.node] == [operator]]
    # Modules of other operators hold this one, too, as what an operator expands to.
    own = [case for case in single if "_expanded" not in case.name and not _of_text(case.model)]
    names = [[entry.name for entry in case.model.graph.input] for case in own]
    return [
        _Case(case.name, case.model, dict(zip(listed, inputs, strict=True)), [np.asarray(value) for value in outputs])
        for case, listed in zip(own, names, strict=True)
        for inputs, outputs in case.data_sets
    ]


def _of_text(model: onnx.ModelProto) -> bool:
    """Whether a case is of texts, which no network has."""
    return any(entry.type.tensor_type.elem_type == onnx.TensorProto.STRING for entry in model.graph.input)


def _choices(node: onnx.NodeProto, inputs: dict[str, Array]) -> list[tuple[int, ...]]:
    """Which inputs may be secret; all of them only where they are of one type of floats."""
    if node.op_type not in OPERANDS or len(node.input) < 2:
        return [(0,)] if node.input else [()]
    vectors: list[tuple[int, ...]] = [(index,) for index, name in enumerate(node.input) if np.ndim(inputs[name]) > 0]
    types = {np.asarray(value).dtype for value in inputs.values()}
    floats = len(types) == 1 and types.pop().kind == "f"
    return [*vectors, tuple(range(len(node.input)))] if floats and len(vectors) == len(node.input) else vectors


def _network(name: str, case: _Case, secrets: Sequence[str]) -> NodeCase:
    node, inputs, expected = case.node, case.inputs, _expected(case)
    batched = node.op_type in BATCHED or (node.op_type == "MatMul" and all(v.ndim == 2 for v in inputs.values()))
    batched = batched and len(secrets) == 1 and secrets[0] == node.input[0]
    constants = {key: np.asarray(value) for key, value in inputs.items() if key not in secrets}
    under_test = onnx.NodeProto()
    under_test.CopyFrom(node)
    under_test.name = "under_test"
    if not batched:
        if node.op_type == "Einsum":
            _lift_equation(under_test, [key in secrets for key in node.input])
        _lift(under_test, constants, np.ndim(next(iter(inputs.values()), 0)))
    builder = _Builder(constants)
    if len(secrets) == 1:
        x = np.asarray(inputs[secrets[0]])
        x = x if batched else x[np.newaxis]
        builder.rename(under_test, secrets[0], SECRET)
    elif secrets:
        x = builder.cut({key: np.asarray(inputs[key]) for key in secrets})
    else:
        x = np.ones((1, *expected[0].shape), np.float32)
        expected = [expected[0] + x[0]]
    ending = under_test.op_type if under_test.op_type in ENDINGS else ""
    if ending:
        builder.identity(SECRET, "logits", x.shape)
        builder.rename(under_test, SECRET, "logits")
    steps_first = node.op_type in RECURRENT and not _attribute(node, "layout")
    if steps_first:
        x, expected = np.swapaxes(x, 0, 1), [np.moveaxis(value, -2, 0) for value in expected]
        builder.turn(SECRET, "steps", 1, x.ndim)
        builder.rename(under_test, SECRET, "steps")
    builder.nodes.append(under_test)
    outputs = list(filter(None, under_test.output))
    if steps_first:
        ranks = [value.ndim for value in expected]
        outputs = [builder.turn(name, f"{name}_turned", -2, rank) for name, rank in zip(outputs, ranks, strict=True)]
    if not secrets:
        builder.nodes.append(helper.make_node("Add", [SECRET, outputs[0]], ["sum"]))
        outputs = ["sum"]
    result = outputs[0] if ending else builder.join(outputs, expected)
    # Where rows are no samples, the importer refuses the case.
    rows = len(x) if all(value.size % len(x) == 0 for value in expected) else 1
    flat = np.concatenate([value.reshape(rows, -1) for value in expected], axis=1)
    return NodeCase(name, builder.model(case.model, x, result), x, flat, ending)


def _expected(case: _Case) -> list[Array]:
    """What onnxruntime computes for the case itself; the case's own outputs where it lacks the operator's form."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
        return [np.asarray(value) for value in session.run(None, case.inputs)]
    except Exception:  # noqa: BLE001 - onnxruntime raises errors of many kinds
        return case.outputs


class _Builder:
    """The nodes around the node under test."""

    def __init__(self, constants: dict[str, Array]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants = dict(constants)

    def rename(self, node: onnx.NodeProto, old: str, new: str) -> None:
        """Let a node read another tensor."""
        names = [new if name == old else name for name in node.input]
        del node.input[:]
        node.input.extend(names)

    def cut(self, values: dict[str, Array]) -> Array:
        """Cut one secret vector into values by name; returns the vector."""
        names = list(values)
        self.constants["cuts"] = np.array([values[name].size for name in names])
        self.nodes.append(helper.make_node("Split", [SECRET, "cuts"], [f"{name}_flat" for name in names], axis=1))
        for name in names:
            self.reshape(f"{name}_flat", name, [0, *values[name].shape])
        return np.concatenate([values[name].ravel() for name in names])[np.newaxis]

    def reshape(self, source: str, target: str, shape: Sequence[int]) -> None:
        """Another view."""
        self.constants[f"{target}_shape"] = np.array(shape, np.int64)
        self.nodes.append(helper.make_node("Reshape", [source, f"{target}_shape"], [target]))

    def turn(self, source: str, target: str, axis: int, rank: int) -> str:
        """Move an axis to the front."""
        order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
        self.nodes.append(helper.make_node("Transpose", [source], [target], perm=order))
        return target

    def identity(self, source: str, target: str, shape: Sequence[int]) -> None:
        """A linear layer that changes nothing."""
        self.constants["one"] = np.ones((1, 1, 1, 1), np.float32)
        self.reshape(source, f"{target}_row", [0, 1, 1, -1])
        self.nodes.append(helper.make_node("Conv", [f"{target}_row", "one"], [f"{target}_same"]))
        self.reshape(f"{target}_same", target, [0, *shape[1:]])

    def join(self, outputs: Sequence[str], expected: Sequence[Array]) -> str:
        """All outputs as one row behind a linear layer."""
        for name, value in zip(outputs, expected, strict=True):
            source = name
            if value.dtype != np.float32:
                source = f"{name}_float"
                self.nodes.append(helper.make_node("Cast", [name], [source], to=onnx.TensorProto.FLOAT))
            self.nodes.append(helper.make_node("Flatten", [source], [f"{name}_flat_out"]))
        self.nodes.append(helper.make_node("Concat", [f"{name}_flat_out" for name in outputs], ["joined"], axis=1))
        self.identity("joined", RESULT, [0, -1])
        return RESULT

    def model(self, case: onnx.ModelProto, x: Array, output: str) -> onnx.ModelProto:
        """The network, of the case's opset."""
        entry = onnx.ValueInfoProto(name=SECRET)
        if case.graph.input and not case.graph.input[0].type.HasField("tensor_type"):
            entry.type.CopyFrom(case.graph.input[0].type)
        else:
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            entry = helper.make_tensor_value_info(SECRET, kind, ["n", *x.shape[1:]])
        leave = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        leave.type.tensor_type.shape.SetInParent()
        initializers = [numpy_helper.from_array(value, key) for key, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "case", [entry], [leave], initializers)
        # In the oldest files initializers are listed among the inputs, and a Cast names its type.
        opsets = [
            helper.make_opsetid(entry.domain, entry.version if entry.domain or entry.version >= _OLDEST else 13)
            for entry in case.opset_import
        ]
        return helper.make_model(graph, opset_imports=opsets, ir_version=max(case.ir_version, 4))


def _lift(node: onnx.NodeProto, constants: dict[str, Array], rank: int) -> None:
    """Move a node's axes up by one, for values of the given rank with one more axis in front."""
    name = dict(enumerate(node.input))
    if node.op_type == "Transpose":
        perm = _attribute(node, "perm") or reversed(range(rank))
        _set(node, perm=[0, *(axis + 1 for axis in perm)])
    elif node.op_type in ALONG:
        axis = _attribute(node, "axis")
        axis = ALONG[node.op_type] if axis is None else axis
        _set(node, axis=axis + 1 if axis >= 0 else axis)
        if node.op_type == "Concat":
            constants.update({key: value[np.newaxis] for key, value in constants.items()})
    elif node.op_type in ("Reshape", "Expand", "Tile"):
        # A view keeps the batch by 0: beside another -1 a 1 would be an axis of its own.
        batch = 0 if node.op_type == "Reshape" and not _attribute(node, "allowzero") else 1
        constants[name[1]] = np.concatenate([[batch], constants[name[1]]]).astype(np.int64)
    elif node.op_type.startswith("Reduce"):
        _lift_reduction(node, constants, rank)
    elif node.op_type in ("Squeeze", "Unsqueeze"):
        constants[name[1]] = _up(constants[name[1]])
    elif node.op_type == "Slice":
        listed = constants.get(name.get(3, ""), np.arange(len(constants[name[1]])))
        node.input[:] = [*node.input[:3], "axes", *node.input[4:]]
        constants["axes"] = _up(listed)
    elif node.op_type == "Pad" and len(node.input) == 4:
        constants[name[3]] = _up(constants[name[3]])
    elif node.op_type == "Pad":
        constants[name[1]] = np.insert(constants[name[1]], [0, rank], 0)


def _lift_reduction(node: onnx.NodeProto, constants: dict[str, Array], rank: int) -> None:
    listed = constants.get(node.input[1] if len(node.input) > 1 else "", np.zeros(0))
    if listed.size:
        constants[node.input[1]] = _up(listed)
    elif not _attribute(node, "noop_with_empty_axes"):
        # All axes of the case are all but the first one here.
        del node.input[1:]
        node.input.append("axes")
        constants["axes"] = np.arange(1, rank + 1)


def _lift_equation(node: onnx.NodeProto, secret: Sequence[bool]) -> None:
    """Name a first axis of the secret operands and the result."""
    left, arrow, result = _attribute(node, "equation").decode().replace(" ", "").partition("->")
    letters = left.replace(",", "").replace(".", "")
    if not arrow:
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    terms = [f"z{term}" if chosen else term for term, chosen in zip(left.split(","), secret, strict=True)]
    _set(node, equation=f"{','.join(terms)}->z{result}")


def _up(axes: Array) -> Array:
    return np.array([axis + 1 if axis >= 0 else axis for axis in axes.tolist()], np.int64)


def _attribute(node: onnx.NodeProto, name: str) -> Any:  # noqa: ANN401 - as ONNX's own helper
    return next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == name), None)


def _set(node: onnx.NodeProto, **values: object) -> None:
    kept = [entry for entry in node.attribute if entry.name not in values]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in values.items())])


#: Modules of the onnx package that are not named as their operator in lower case.
MODULES = {
    "BatchNormalization": "batch_normalization",
    "InstanceNormalization": "instance_normalization",
    "And": "and_",
    "Not": "not_",
    "Or": "or_",
    "GreaterOrEqual": "greater_or_equal",
    "LessOrEqual": "less_or_equal",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
}
