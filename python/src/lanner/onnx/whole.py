"""Which values hold whole numbers whatever the input is, and what computes with them as with the same floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Made, Wire
from lanner.onnx.comparison import TRUTHS
from lanner.onnx.number_types import FLOATS

#: Operators that make of whole numbers what they make of the same numbers as floats.
OF_NUMBERS = frozenset(
    (
        *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Split", "Concat"),
        *("Expand", "Tile", "Pad", "Cast", "Min", "Max", "Clip", "Relu", "ReduceMax", "ReduceMin", "ArgMax"),
        *("Where", "Sign", "OneHotEncoder", "ArrayFeatureExtractor", "DequantizeLinear"),
    )
)

#: The same, but that the type may have too few bits for what they make.
ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Neg", "Abs", "ReduceSum", "MatMul", "Gemm"))

#: The bytes of the integers whose sums are not looked at: 2^31 is farther than float32 counts.
_WIDE = 4

#: Operators of the graph that make whole numbers of whole ones.
_KEEP = frozenset(
    (
        *("Add", "Mul", "Square", "MatrixProduct", "Relu", "MaxPool"),
        *("Reshape", "Flatten", "Transpose", "Slice", "Concat", "Pad"),
    )
)


def is_whole(graph: GraphBuilder, x: Wire) -> bool:
    """Whether all elements of a value are whole numbers, as sums and products of truth values are."""
    seen, pending = set[str](), [x]
    while pending:
        wire = pending.pop()
        made = graph.made(wire)
        if wire.name in seen or (made is not None and made.operator == "Step"):
            continue
        seen.add(wire.name)
        if made is None:
            return False
        if made.operator in ("AddConstant", "MulConstant") and _is_whole(made.value):
            inner = graph.made(made.inputs[0])
            if inner is not None and inner.operator == "GlobalAveragePool":
                if not _makes_sum(made, inner):
                    return False
                pending += inner.inputs
                continue
        elif made.operator not in _KEEP:
            return False
        pending += made.inputs
    return True


def _makes_sum(factor: Made, mean: Made) -> bool:
    """Whether a factor makes of a mean the sum of the same elements, or a multiple of it."""
    count = math.prod(mean.inputs[0].shape[1:])
    return factor.operator == "MulConstant" and factor.constant is not None and factor.constant % count == 0


def _is_whole(value: NDArray[np.float32] | None) -> bool:
    return value is not None and bool((np.round(value) == value).all())


def keeps_whole(node: onnx.NodeProto, kinds: Sequence[np.dtype[Any]]) -> bool:
    """Whether an operator makes of tensors of such integers what it makes of the same numbers as floats."""
    if not kinds:
        return True
    if node.op_type in ARITHMETIC:
        # What is narrower, or has no sign, would wrap where sums leave its type.
        return all(map(is_wide, kinds))
    to = cast_type(node)
    if to is not None:
        return is_wide(to) or all(np.can_cast(kind, to) for kind in kinds)
    return node.op_type in OF_NUMBERS | TRUTHS | {"Shape", "Size"}


def makes_truths(node: onnx.NodeProto) -> bool:
    """Whether what an operator makes are truth values."""
    return node.op_type in TRUTHS or _casts_to(node, (onnx.TensorProto.BOOL,))


def is_wide(kind: np.dtype[Any]) -> bool:
    """Whether a type holds all whole numbers that float32 counts."""
    return kind.kind == "i" and kind.itemsize >= _WIDE


def cast_type(node: onnx.NodeProto) -> np.dtype[Any] | None:
    """The type of integers that a node casts to; None of any other node."""
    if node.op_type != "Cast" or _casts_to(node, (*FLOATS, onnx.TensorProto.BOOL)):
        return None
    to = next((entry.i for entry in node.attribute if entry.name == "to"), onnx.TensorProto.INT64)
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(to))


def leaves_integers(node: onnx.NodeProto) -> bool:
    """Whether what an operator makes of integers is of another type."""
    return node.op_type in TRUTHS | {"Shape", "Size", "OneHotEncoder", "DequantizeLinear"} or _casts_to(
        node, (*FLOATS, onnx.TensorProto.BOOL)
    )


def _casts_to(node: onnx.NodeProto, kinds: Sequence[int]) -> bool:
    return node.op_type == "Cast" and any(entry.name == "to" and entry.i in kinds for entry in node.attribute)
