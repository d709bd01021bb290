"""Computes what depends on constants and shapes alone, so that lowerings meet only the secret's path."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from lanner.errors import ModelError
from lanner.extras import is_installed
from lanner.onnx.builder import Wire
from lanner.onnx.node import Node

#: A sample is one element of the batch, whatever the file says.
BATCH = 1

#: The most axes of a constant, as NumPy has them.
MAX_RANK = 64

#: The most elements of a constant that a small description makes: the largest layer of VGG's networks has 102,760,448.
MAX_CONSTANT = 1 << 27

#: Operators that draw random numbers are not constants even without inputs.
_RANDOM = {
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}


#: The format's version of models that onnxruntime computes constants by; later ones may be newer than it is.
_IR_VERSION = 8

#: The first opset of which the reference evaluator has an operator that is older.
_FIRST_EVALUATED = {"QuantizeLinear": 19, "DequantizeLinear": 19}


def fold(
    node: Node, opsets: Sequence[onnx.OperatorSetIdProto], batch: int = BATCH
) -> dict[str, NDArray[np.generic]] | None:
    """Return the outputs in use, by name, of a node whose value is known, or None.

    Known are nodes with constant inputs only, and the shape of anything; it has `batch` samples. Floats may become
    infinite or NaN, as a logarithm of 0 does that a Where then leaves out: what computes with them looks at them.

    Raises:
        ModelError: If neither ONNX's reference evaluator nor onnxruntime, where that is installed, computes the node.
    """
    if node.operator in ("Shape", "Size") and isinstance(node.inputs[0], Wire):
        return {node.proto.output[0]: _shape(node, node.inputs[0].with_batch(batch))}
    if any(isinstance(value, Wire) for value in node.inputs) or node.operator in _RANDOM or _has_body(node):
        return None
    constants = {
        name: value for name, value in zip(node.proto.input, node.inputs, strict=True) if isinstance(value, np.ndarray)
    }
    try:
        check_size(node.operator, list(constants.values()))
        values = _evaluate(node, constants, opsets)
    except Exception as error:  # noqa: BLE001 - evaluators raise errors of many kinds
        raise ModelError(
            f"the constant {node.operator} cannot be computed ({error})",
            where=node.where,
            fix="simplify the model, for example with onnxsim",
        ) from None
    return {name: np.asarray(value) for name, value in zip(filter(None, node.proto.output), values, strict=True)}


def _evaluate(
    node: Node, constants: dict[str, NDArray[np.generic]], opsets: Sequence[onnx.OperatorSetIdProto]
) -> Sequence[object]:
    """A node's outputs, by ONNX's reference evaluator; by onnxruntime what that one lacks, or computes wrongly."""
    # Integers that are divided by 0 would be 0; numbers that are cast to integers may be infinite.
    integers = any(value.dtype.kind in "iu" for value in constants.values())
    try:
        model = helper.make_model(_graph_of(node, constants), opset_imports=_evaluated(node, opsets))
        with np.errstate(all="ignore") if not integers else np.errstate(divide="raise", invalid="raise", over="ignore"):
            return list(ReferenceEvaluator(model).run(None, {}))
    except ArithmeticError:
        raise
    except Exception:
        if not is_installed("onnxruntime"):
            raise
        return _run(node, constants, opsets)


def _run(
    node: Node, constants: dict[str, NDArray[np.generic]], opsets: Sequence[onnx.OperatorSetIdProto]
) -> Sequence[object]:
    """A node's outputs by onnxruntime, as a model of that node alone."""
    from lanner.reference import open_exactly  # onnxruntime is optional.

    used = [entry for entry in opsets if (entry.domain or "ai.onnx") == (node.proto.domain or "ai.onnx")]
    model = helper.make_model(_graph_of(node, constants), opset_imports=used, ir_version=_IR_VERSION)
    return list(open_exactly(model).run(None, {}))


def _graph_of(node: Node, constants: dict[str, NDArray[np.generic]]) -> onnx.GraphProto:
    outputs = [onnx.ValueInfoProto(name=name) for name in node.proto.output if name]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return helper.make_graph([node.proto], "constants", [], outputs, tensors)


def check_size(operator: str, inputs: Sequence[NDArray[np.generic]]) -> None:
    """Raise an error where a constant would be made of few numbers that is too large for any use.

    Raises:
        ArithmeticError: If it would be.
    """
    told = [[float(number) for number in np.ravel(value)] for value in inputs if value.size <= MAX_RANK]
    elements = 0.0
    if operator in ("ConstantOfShape", "Expand") and told:
        elements = math.prod(told[-1])
    elif operator == "Tile" and told:
        elements = inputs[0].size * math.prod(told[-1])
    elif operator == "Range" and len(told) == len(inputs):
        start, limit, step = (numbers[0] for numbers in told)
        elements = (limit - start) / step
    if elements > MAX_CONSTANT:
        raise ArithmeticError(f"it has more than {MAX_CONSTANT} elements")


def _evaluated(node: Node, opsets: Sequence[onnx.OperatorSetIdProto]) -> list[onnx.OperatorSetIdProto]:
    """The opsets that the evaluator reads a node by: some operators it has only of a later one, meaning the same."""
    least = _FIRST_EVALUATED.get(node.operator, 0)
    return [
        helper.make_opsetid(
            entry.domain, max(entry.version, least) if entry.domain in ("", "ai.onnx") else entry.version
        )
        for entry in opsets
    ]


def _has_body(node: Node) -> bool:
    """Whether it is a loop or a branch, whose body may read the secret without listing it as an input."""
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.proto.attribute)


def _shape(node: Node, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if node.operator == "Size":
        return np.array(np.prod(shape, dtype=np.int64))
    chosen = shape[slice(node.attr("start", 0), node.attr("end", len(shape)))]
    return np.array(chosen, dtype=np.int64)
