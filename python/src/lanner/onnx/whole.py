"""Which values hold whole numbers whatever the input is, and what computes with these as with the same numbers as floats."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    )
)

#: The same, but that the type may have too few bits for what they make.
ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Neg", "Abs", "ReduceSum", "MatMul", "Gemm"))

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


def keeps_whole(node: onnx.NodeProto) -> bool:
    """Whether an operator makes of tensors of integers what it makes of the same numbers as floats."""
    return node.op_type in OF_NUMBERS | ARITHMETIC | TRUTHS | {"Where", "Sum", "Sign"}


def makes_truths(node: onnx.NodeProto) -> bool:
    """Whether what an operator makes are truth values."""
    return node.op_type in TRUTHS or _casts_to(node, (onnx.TensorProto.BOOL,))


def casts_to_integers(node: onnx.NodeProto) -> bool:
    """Whether a node makes integers of other numbers."""
    return node.op_type == "Cast" and not _casts_to(node, (*FLOATS, onnx.TensorProto.BOOL))


def leaves_integers(node: onnx.NodeProto) -> bool:
    """Whether what an operator makes of integers is of another type."""
    return node.op_type in TRUTHS | {"Shape", "Size"} or _casts_to(node, (*FLOATS, onnx.TensorProto.BOOL))


def _casts_to(node: onnx.NodeProto, kinds: Sequence[int]) -> bool:
    return node.op_type == "Cast" and any(entry.name == "to" and entry.i in kinds for entry in node.attribute)
