"""Numbers that are a constant and what the reached leaf of each tree adds, and the operators that keep them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.folding import fold
from lanner.onnx.node import Node

#: A tree of one of the samples that a graph is looked at with: the sample's number and the tree's.
Reached = tuple[int, int]

#: An array of `LeafSum` and of numbers.
Sums = NDArray[np.object_]

#: The most numbers of a tensor that are looked at one by one.
_MOST = 1 << 17


class LeafSum:
    """A number that is a constant and what the reached leaf of each of some trees adds.

    Attributes:
        const: The constant.
        parts: What each leaf of each tree adds.
    """

    __slots__ = ("const", "parts")
    #: NumPy's numbers leave sums and products to this class.
    __array_ufunc__ = None

    def __init__(self, const: float, parts: dict[Reached, NDArray[np.float64]]) -> None:
        self.const = const
        self.parts = parts

    def add(self, tree: Reached, values: NDArray[np.float64]) -> None:
        """Add what the leaves of a tree say, in place; the number must be its maker's alone."""
        self.parts[tree] = self.parts[tree] + values if tree in self.parts else values

    def __add__(self, other: LeafSum | float) -> LeafSum:
        if not isinstance(other, LeafSum):
            return LeafSum(self.const + float(other), self.parts)
        parts = dict(self.parts)
        for tree, values in other.parts.items():
            parts[tree] = parts[tree] + values if tree in parts else values
        return LeafSum(self.const + other.const, parts)

    __radd__ = __add__

    def __mul__(self, factor: float) -> LeafSum:
        if isinstance(factor, LeafSum):
            return NotImplemented
        factor = float(factor)
        if factor == 0.0:
            return LeafSum(0.0, {})
        return LeafSum(self.const * factor, {tree: values * factor for tree, values in self.parts.items()})

    __rmul__ = __mul__

    def __neg__(self) -> LeafSum:
        return self * -1.0

    def __sub__(self, other: LeafSum | float) -> LeafSum:
        return self + -other

    def __rsub__(self, other: float) -> LeafSum:
        return -self + other

    def __truediv__(self, divisor: float) -> LeafSum:
        return NotImplemented if isinstance(divisor, LeafSum) else self * (1.0 / float(divisor))

    def is_same(self, other: LeafSum, sample: int, other_sample: int) -> bool:
        """Whether it is of one sample alone what another number is of another sample alone."""
        if self.const != other.const or {each for each, _ in self.parts} - {sample}:
            return False
        theirs = {(sample if of == other_sample else -1, tree): values for (of, tree), values in other.parts.items()}
        return self.parts.keys() == theirs.keys() and all(
            np.array_equal(values, theirs[tree]) for tree, values in self.parts.items()
        )


def as_sums(values: NDArray[Any]) -> Sums:
    """Numbers as an array of Python's own."""
    return values if values.dtype == object else values.astype(np.float64).astype(object)


#: An operator's inputs: sums, constants, or None where one is left out.
_Inputs = Sequence[NDArray[Any] | None]


def follow(node: Node, inputs: _Inputs, opsets: Sequence[onnx.OperatorSetIdProto]) -> list[Sums] | None:
    """What an operator makes of sums, an array for each output in use; None where these are no such sums.

    Args:
        node: The operator's node, without inputs.
        inputs: Arrays of objects for sums, else constants.
        opsets: The file's.
    """
    name = node.qualified_operator
    if name in _MOVES:
        return _moved(node, inputs, opsets)
    compute = _COMPUTED.get(name)
    try:
        made = None if compute is None else compute(node, inputs)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        # A product of two sums, or shapes that do not fit.
        return None
    return None if made is None or np.size(made) > _MOST else [np.asarray(made, object)]


def _moved(node: Node, inputs: _Inputs, opsets: Sequence[onnx.OperatorSetIdProto]) -> list[Sums] | None:
    """What an operator picks: it is run on places in place of numbers."""
    data = range(len(inputs)) if node.operator in ("Concat", "Sum") else range(1)
    if any(value is None or (at not in data and value.dtype == object) for at, value in enumerate(inputs)):
        return None
    held: list[NDArray[Any]] = []
    places: list[NDArray[Any]] = []
    first = 0
    for at, value in enumerate(inputs):
        if value is None or at not in data:
            places.append(np.asarray(value))
            continue
        held.append(as_sums(value).ravel())
        places.append(np.arange(first, first + value.size).reshape(value.shape))
        first += value.size
    if first > _MOST:
        return None
    try:
        picked = fold(node.reading(places), opsets)
    except ModelError:
        return None
    if picked is None or any(value.size > _MOST for value in picked.values()):
        return None
    every = np.concatenate(held)
    return [np.asarray(every[value.astype(np.int64)], object).reshape(value.shape) for value in picked.values()]


def _sum(_: Node, inputs: _Inputs) -> Sums:
    total, *others = map(_given, inputs)
    for each in others:
        total = total + each
    return total


def _mean(node: Node, inputs: _Inputs) -> Sums:
    return np.asarray(_sum(node, inputs) * (1.0 / len(inputs)), object)


def _product(_: Node, inputs: _Inputs) -> Sums:
    return np.asarray(_given(inputs[0]) * _given(inputs[1]), object)


def _quotient(_: Node, inputs: _Inputs) -> Sums | None:
    divisors = inputs[1]
    if divisors is None or divisors.dtype == object or divisors.dtype.kind != "f":
        return None
    return np.asarray(_given(inputs[0]) / as_sums(divisors), object)


def _difference(_: Node, inputs: _Inputs) -> Sums:
    return np.asarray(_given(inputs[0]) - _given(inputs[1]), object)


def _negative(_: Node, inputs: _Inputs) -> Sums:
    return np.asarray(_given(inputs[0]) * -1.0, object)


def _cast(node: Node, inputs: _Inputs) -> Sums | None:
    return _given(inputs[0]) if node.attr("to", 0) in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) else None


def _reduced(node: Node, inputs: _Inputs) -> Sums | None:
    data, named = _given(inputs[0]), inputs[1] if len(inputs) > 1 else None
    if named is not None and named.dtype == object:
        return None
    axes = node.attr("axes", list[int]()) if named is None else np.ravel(named).tolist()
    if not axes and node.attr("noop_with_empty_axes", 0):
        return data
    chosen = tuple(int(axis) % data.ndim for axis in axes) or tuple(range(data.ndim))
    total = np.sum(data, axis=chosen, keepdims=bool(node.attr("keepdims", 1)))
    if node.operator == "ReduceMean":
        total = total * (1.0 / np.prod([data.shape[axis] for axis in chosen]))
    return np.asarray(total, object)


def _matmul(_: Node, inputs: _Inputs) -> Sums:
    return np.asarray(np.matmul(_given(inputs[0]), _given(inputs[1])), object)


def _gemm(node: Node, inputs: _Inputs) -> Sums:
    a, b = _given(inputs[0]), _given(inputs[1])
    a, b = a.T if node.attr("transA", 0) else a, b.T if node.attr("transB", 0) else b
    made = np.matmul(a, b) * float(node.attr("alpha", 1.0))
    if len(inputs) > 2 and inputs[2] is not None:
        made = made + _given(inputs[2]) * float(node.attr("beta", 1.0))
    return np.asarray(made, object)


def _linear(node: Node, inputs: _Inputs) -> Sums | None:
    if node.attr("post_transform", "NONE") != "NONE":
        return None
    data, coefficients = _given(inputs[0]), np.array(node.attr("coefficients", list[float]()), np.float64)
    intercepts = np.array(node.attr("intercepts", list[float]()) or [0.0], np.float64)
    rows = coefficients.reshape(-1, data.shape[1]).T
    return np.asarray(np.matmul(data, as_sums(rows)) + as_sums(intercepts), object)


def _classified(node: Node, inputs: _Inputs) -> Sums | None:
    labels = node.attr("classlabels_ints", list[object]()) or node.attr("classlabels_strings", list[object]())
    made = None if node.proto.output[0] else _linear(node, inputs)
    # Of two classes one may have a score alone, and what the other's is depends on the transform.
    return made if made is not None and made.shape[1:] == (len(labels),) else None


def _scaled(node: Node, inputs: _Inputs) -> Sums:
    offset = np.array(node.attr("offset", list[float]()) or [0.0], np.float64)
    scale = np.array(node.attr("scale", list[float]()) or [1.0], np.float64)
    return np.asarray((_given(inputs[0]) - as_sums(offset)) * as_sums(scale), object)


def _given(value: NDArray[Any] | None) -> Sums:
    """An input, as sums.

    Raises:
        TypeError: If it is left out, or holds no numbers.
    """
    if value is None or value.dtype.kind not in "fiuO":
        raise TypeError
    return as_sums(value)


#: Operators that pick numbers and put them elsewhere.
_MOVES = frozenset(
    (
        *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Split"),
        *("Expand", "Tile", "Concat", "ai.onnx.ml.ArrayFeatureExtractor"),
    )
)

_COMPUTED: Mapping[str, Callable[[Node, _Inputs], Sums | None]] = {
    "Add": _sum,
    "Sum": _sum,
    "Mean": _mean,
    "Sub": _difference,
    "Mul": _product,
    "Div": _quotient,
    "Neg": _negative,
    "Cast": _cast,
    "ReduceSum": _reduced,
    "ReduceMean": _reduced,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "ai.onnx.ml.LinearRegressor": _linear,
    "ai.onnx.ml.LinearClassifier": _classified,
    "ai.onnx.ml.Scaler": _scaled,
}
