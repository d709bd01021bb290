"""Values that depend on one index or bit of the input alone, each element on its own: a table says what they are.

What a file computes of a token's number before it looks an embedding up, or of an attention mask before it adds it to
scores, is computed for every choice when the model is compiled. Where another operator reads it, the rows of the table
are summed with the client's row of zeros and one 1: a product with a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import fold
from lanner.onnx.node import Node

#: Operators that work on each element alone.
_ELEMENTWISE = frozenset(
    (
        *("Cast", "CastLike", "Identity", "Not", "Neg", "Abs", "Sign", "Sqrt", "Reciprocal", "Exp", "Floor", "Ceil"),
        *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"),
        *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Clip", "Where", "IsNaN", "IsInf"),
        *("QuantizeLinear", "DequantizeLinear"),
    )
)

#: Operators that move elements, and look at none.
_MOVEMENTS = frozenset(("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand", "Slice", "Gather"))


@dataclass(frozen=True, slots=True)
class Lookup:
    """A tensor whose elements are looked up.

    Attributes:
        source: The client's rows of choices, shape (*shape, choices), or bits, shape (*shape).
        shape: The shape of one sample's indices.
        table: What each choice stands for: shape (choices, *what each index is looked up as).
        bits: Whether the source holds one bit in place of a row of two.
    """

    source: Wire
    shape: tuple[int, ...]
    table: NDArray[np.generic]
    bits: bool

    @classmethod
    def of_input(cls, source: Wire, shape: tuple[int, ...], choices: int, kind: np.dtype[np.generic]) -> Lookup:
        """The indices themselves."""
        return cls(source, shape, np.arange(choices).astype(kind), choices == 2)

    @property
    def stand_in(self) -> Wire:
        """A wire of the shape of what is looked up, for whoever asks for it alone."""
        return Wire(self.source.name, (*self.shape, *self.table.shape[1:]), batch=self.source.batch)

    def materialised(self, graph: GraphBuilder) -> Wire:
        """What is looked up, as a value of the network.

        Raises:
            ModelError: If a choice stands for no number.
        """
        table = self.table.astype(np.float32)
        if not np.isfinite(table).all():
            raise ModelError("a table holds NaN or infinite numbers", where=self.source.name, fix="export it again")
        rest, batch = table.shape[1:], self.source.batch
        x = self.source.plain()
        if self.bits and not rest:
            y = graph.shift(graph.scale(x, float(table[1] - table[0])), float(table[0]))
            return replace(y, batch=batch)
        width = 1 if self.bits else len(table)
        weight = (table[1:] - table[:1] if self.bits else table).reshape(width, -1)
        rows = graph.reshape(x, (x.size // width, width))
        y = graph.matmul(graph.reshape(rows, (width,)), weight) if len(rows.shape) == 1 else _rows(graph, rows, weight)
        if self.bits:
            y = graph.add_constant(y, table[:1].reshape(1, -1))
        return replace(graph.reshape(y, (*self.shape, *rest)), batch=batch)


def _rows(graph: GraphBuilder, rows: Wire, weight: NDArray[np.float32]) -> Wire:
    """``rows @ weight``: a convolution of one tap over the rows as places."""
    places = graph.reshape(graph.transpose(rows, (1, 0)), (rows.shape[1], 1, rows.shape[0]))
    image = graph.one_tap(places, np.ascontiguousarray(weight.T)[:, :, np.newaxis, np.newaxis], 1)
    return graph.transpose(graph.reshape(image, (weight.shape[1], rows.shape[0])), (1, 0))


def follow(node: Node, inputs: Sequence[object], opsets: Sequence[onnx.OperatorSetIdProto]) -> dict[str, Lookup] | None:
    """What an operator makes of what is looked up, where that is looked up again; None where it is not.

    Args:
        node: The operator.
        inputs: What it reads: constants, and one `Lookup`.
        opsets: What its file means by operators.

    Raises:
        ModelError: If it cannot be computed for the choices.
    """
    found = [(index, value) for index, value in enumerate(inputs) if isinstance(value, Lookup)]
    constants = all(value is None or isinstance(value, np.ndarray | Lookup) for value in inputs)
    if len(found) != 1 or not constants or node.proto.domain not in ("", "ai.onnx"):
        return None
    index, lookup = found[0]
    output = next(filter(None, node.proto.output))
    if node.operator == "Gather" and index == 1 and node.attr("axis", 0) == 0:
        return _gathered(inputs[0], lookup, output)
    if node.operator == "OneHot" and index == 0 and node.attr("axis", -1) == -1:
        return _folded(node, inputs, index, lookup, opsets, output)
    if node.operator in _ELEMENTWISE and _broadcasts(inputs, lookup):
        return _folded(node, inputs, index, lookup, opsets, output)
    return None


def follows_moved(node: Node, inputs: Sequence[object]) -> Lookup | None:
    """The bits that an operator only moves: it may be lowered for the bits themselves."""
    first = inputs[0] if inputs else None
    moves = node.operator in _MOVEMENTS and isinstance(first, Lookup) and first.bits and first.table.ndim == 1
    return first if moves and isinstance(first, Lookup) else None


def _gathered(data: object, lookup: Lookup, output: str) -> dict[str, Lookup] | None:
    if not isinstance(data, np.ndarray) or lookup.table.ndim != 1 or lookup.table.dtype.kind not in "iu":
        return None
    asked = lookup.table.astype(np.int64)
    places = np.where(asked < 0, asked + len(data), asked)
    # The client's choices end where the smallest table does.
    beyond = (places < 0) | (places >= len(data))
    table = data[np.where(beyond, 0, places)]
    return None if beyond.any() else {output: replace(lookup, table=table)}


def _folded(
    node: Node,
    inputs: Sequence[object],
    index: int,
    lookup: Lookup,
    opsets: Sequence[onnx.OperatorSetIdProto],
    output: str,
) -> dict[str, Lookup] | None:
    """The operator on every choice: these are one more axis in front."""
    table = lookup.table
    ones = (1,) * (len(lookup.shape) + 1)
    every = table.reshape(len(table), *ones, *table.shape[1:])
    known = [every if place == index else value for place, value in enumerate(inputs)]
    folded = fold(Node(node.proto, known), opsets)  # type: ignore[arg-type]
    if folded is None:
        return None
    value = folded[output]
    if value.shape[: len(ones) + 1] != (len(table), *ones):
        return None
    return {output: replace(lookup, table=value.reshape(len(table), *value.shape[len(ones) + 1 :]))}


def _broadcasts(inputs: Sequence[object], lookup: Lookup) -> bool:
    """Whether no constant differs along the axes of the indices."""
    rest = lookup.table.ndim - 1
    rank = len(lookup.shape) + 1 + rest
    arrays = (value for value in inputs if isinstance(value, np.ndarray))
    return all(value.ndim <= rank and all(side == 1 for side in value.shape[: value.ndim - rest]) for value in arrays)
