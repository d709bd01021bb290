"""Values that depend on one index or bit of the input alone, each element on its own: a table says what they are.

What a file computes of a token's number before it looks an embedding up, or of an attention mask before it adds it to
scores, is computed for every choice when the model is compiled. Where another operator reads it, the rows of the table
are summed with the client's row of zeros and one 1: a product with a matrix. A bit is one element, and chooses between
two constants.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError, spelled
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import fold
from lanner.onnx.node import Node
from lanner.onnx.number_types import MASKING
from lanner.onnx.selection import broadcast

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
_MOVEMENTS = frozenset(
    ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand", "Slice", "Gather", "GatherND")
)

#: What a file means by operators.
Opsets: TypeAlias = Sequence[onnx.OperatorSetIdProto]

#: Columns of a vocabulary that are added up.
_MOST_ADDED = 64

#: Operators that give elements another shape, and leave their order.
_VIEWS = frozenset(("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Expand", "Identity"))


@dataclass(frozen=True, slots=True)
class Indices:
    """A tensor whose elements are looked up by indices.

    Attributes:
        source: The client's rows of choices, shape (*shape, choices), or of two choices the second of each row alone,
            shape (*shape, 1).
        shape: The shape of one sample's indices.
        table: What each choice stands for: shape (choices, *what each index is looked up as).
    """

    source: Wire
    shape: tuple[int, ...]
    table: NDArray[np.generic]

    @property
    def is_counted(self) -> bool:
        """Whether the choices are numbers that are counted, and not those of the input."""
        return False

    def bits(self, graph: GraphBuilder) -> Wire | None:
        """Its truth values as 0 and 1, exactly, shape (*shape); None where it is not of 0 and 1."""
        if self.table.ndim != 1 or not np.isin(self.table, (0, 1)).all():
            return None
        holds = self.table.astype(np.bool_)
        # The fewer of the two are added up: of a vocabulary most often one.
        rare = holds.mean() <= 0.5
        columns = np.flatnonzero(holds == rare).tolist()
        if self.source.batch or not 0 < len(columns) <= _MOST_ADDED or self.source.shape[-1] != len(self.table):
            return None
        places = tuple(map(range, self.shape))
        each = [graph.slice(self.source, (*places, range(column, column + 1))) for column in columns]
        picked = functools.reduce(graph.add, each)
        picked = graph.reshape(picked, self.shape)
        return picked if rare else graph.subtract_from(1.0, picked)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers that are looked up are whole, as places are, and more than truth values."""
        numbers = self.table.astype(np.float32)
        return not (numbers % 1).any() and not np.isin(numbers, (0, 1)).all()

    def retold(self, other: Lookup) -> Lookup | None:
        """Another look-up of the same elements, place by place; None of other elements."""
        return other if _alike(self, other) else None

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
        check_finite(table, self.source)
        rest, width = table.shape[1:], self.source.shape[-1]
        weight = table.reshape(len(table), -1)
        rows = graph.reshape(self.source.plain(), (self.source.size // width, width))
        if width == len(table):
            y = rows_product(graph, rows, weight)
        else:
            y = graph.add_constant(rows_product(graph, rows, weight[1:] - weight[:1]), weight[:1])
        return replace(graph.reshape(y, (*self.shape, *rest)), batch=self.source.batch)

    def follow(
        self,
        node: Node,
        inputs: Sequence[object],
        index: int,
        opsets: Opsets,
        graph: GraphBuilder,
    ) -> Indices | None:
        """What an operator makes of it, its input `index`, where that is looked up again; None where it is not."""
        if node.operator == "Gather" and index == 1 and node.attr("axis", 0) == 0:
            return self.gathered(inputs[0])
        if node.operator == "GatherElements" and index == 1:
            return self._gathered_of_line(node, inputs[0])
        if node.operator in _VIEWS and index == 0 and self.source.batch == 0:
            return self.viewed(node, inputs, opsets, graph)
        one_hot = node.operator == "OneHot" and index == 0 and node.attr("axis", -1) == -1
        if not one_hot and not (node.operator in _ELEMENTWISE and self._broadcasts(inputs)):
            return None
        # The choices are one more axis in front.
        ones = (1,) * (len(self.shape) + 1)
        tables = [each._with_axes(ones) if isinstance(each, Indices) else each for each in inputs]
        value = _folded(node, tables, opsets)
        if value is None or value.shape[: len(ones) + 1] != (len(self.table), *ones):
            return None
        return replace(self, table=value.reshape(len(self.table), *value.shape[len(ones) + 1 :]))

    def _with_axes(self, ones: tuple[int, ...]) -> NDArray[np.generic]:
        """The table with axes between the choices and what they stand for."""
        return self.table.reshape(len(self.table), *ones, *self.table.shape[1:])

    def gathered(self, data: object) -> Indices | None:
        """The rows of a constant, in the place of their numbers."""
        if not isinstance(data, np.ndarray) or self.table.dtype.kind not in "iu":
            return None
        asked = self.table.astype(np.int64)
        places = np.where(asked < 0, asked + len(data), asked)
        # The client's choices end where the smallest table does.
        beyond = (places < 0) | (places >= len(data))
        return None if beyond.any() else replace(self, table=data[places])

    def _gathered_of_line(self, node: Node, data: object) -> Indices | None:
        """The elements of one line of constants, in the place of their numbers."""
        is_line = isinstance(data, np.ndarray) and data.ndim == 2 and len(data) == 1
        if not is_line or len(self.shape) != 1 or self.table.ndim != 1 or node.attr("axis", 0) not in (1, -1):
            return None
        return self.gathered(data[0]) if isinstance(data, np.ndarray) else None

    def viewed(self, node: Node, inputs: Sequence[object], opsets: Opsets, graph: GraphBuilder) -> Indices | None:
        """The same elements in another shape: axes behind the indices are of what is looked up."""
        places = np.arange(self.stand_in.size).reshape(1, *self.stand_in.shape)
        moved = _folded(node, [places, *inputs[1:]], opsets)
        if moved is None or moved.shape[:1] != (1,) or not np.array_equal(moved.ravel(), places.ravel()):
            return None
        if moved.shape[1 : 1 + len(self.shape)] == self.shape:
            rest = moved.shape[1 + len(self.shape) :]
            return replace(self, table=self.table.reshape(len(self.table), *rest))
        if self.table.ndim > 1:
            return None
        source = graph.reshape(self.source, (*moved.shape[1:], self.source.shape[-1]))
        return replace(self, source=source, shape=moved.shape[1:])

    def _broadcasts(self, inputs: Sequence[object]) -> bool:
        """Whether no constant differs along the axes of the indices."""
        rest = self.table.ndim - 1
        rank = len(self.shape) + 1 + rest
        arrays = [value for value in inputs if isinstance(value, np.ndarray)]
        return all(each.ndim <= rank and set(each.shape[: max(each.ndim - rest, 0)]) <= {1} for each in arrays)


@dataclass(frozen=True, slots=True)
class Embedded(Indices):
    """Indices whose rows of one table the client gives by itself.

    Attributes:
        source: These rows, shape (*shape, width).
        rows: The table that they are looked up in, shape (choices, width).
    """

    rows: NDArray[np.generic]

    def materialised(self, graph: GraphBuilder) -> Wire:  # noqa: ARG002 - that of all that is looked up
        """The rows.

        Raises:
            ModelError: If something else is asked than they are.
        """
        if self.table.ndim == 1:
            what = "another node also needs the integers, but with public embeddings the client sends only table rows"
            raise ModelError(what, where=self.source.name, fix=spelled("leave ⟦public_embeddings⟧ out"))
        return self.source

    def follow(
        self,
        node: Node,
        inputs: Sequence[object],
        index: int,
        opsets: Opsets,
        graph: GraphBuilder,
    ) -> Indices | None:
        """As `Indices.follow`, up to the rows: what is made of them is the network's."""
        return Indices.follow(self, node, inputs, index, opsets, graph) if self.table.ndim == 1 else None

    def gathered(self, data: object) -> Indices | None:
        """The rows of the table, in the place of their numbers; None of another."""
        found = Indices.gathered(self, data)
        return found if found is not None and np.array_equal(found.table, self.rows) else None


@dataclass(frozen=True, slots=True)
class Bits:
    """A tensor each of whose elements is one of two constants, as a bit of the input says.

    Attributes:
        source: The bits, of the tensor's shape.
        pair: What 0 and 1 stand for: shape (2, 1, ...), which broadcasts to the tensor with a batch of one.
    """

    source: Wire
    pair: NDArray[np.generic]

    def bits(self, graph: GraphBuilder) -> Wire | None:
        """Its truth values as 0 and 1, exactly, of the tensor's shape; None where it is not of 0 and 1."""
        if self.source.batch or self.pair.size != 2 or sorted(self.pair.ravel().tolist()) != [0, 1]:
            return None
        return self.source if self.pair.ravel()[1] else graph.subtract_from(1.0, self.source)

    def retold(self, other: Lookup) -> Lookup | None:
        """Another look-up of the same bits; None of others."""
        return other if _alike(self, other) else None

    @property
    def stand_in(self) -> Wire:
        """A wire of the tensor's shape, for whoever asks for it alone."""
        return self.source

    def materialised(self, graph: GraphBuilder, bound: float | None = None) -> Wire:
        """The tensor as a value of the network; numbers that mask are no further below 0 than `bound`.

        Raises:
            ModelError: If a bit stands for no number.
        """
        pair = self.pair.astype(np.float32)
        if bound is not None:
            pair = np.maximum(pair, np.float32(-bound))
        check_finite(pair, self.source)
        # Constants have no batch axis.
        axis = self.source.batch + 1
        low, high = (np.take(pair, [each], 0).squeeze(0) for each in (0, 1))
        low, high = (np.squeeze(each, axis - 1) for each in (low, high))
        y = self.source.plain()
        y = y if (high - low == 1.0).all() else graph.multiply_constant(y, _least(high - low))
        y = graph.add_constant(y, _least(low)) if low.any() else y
        return replace(y, batch=self.source.batch)

    @property
    def masks(self) -> bool:
        """Whether it takes elements of scores away, and changes no others."""
        pair = self.pair.astype(np.float64)
        low = pair <= -MASKING
        return bool(low.any() and (low | (pair == 0)).all())

    @property
    def largest_of_mask(self) -> float:
        """The largest of the numbers that take elements away, where it `masks`."""
        pair = self.pair.astype(np.float64)
        return float(pair[pair <= -MASKING].max())

    def follow(
        self,
        node: Node,
        inputs: Sequence[object],
        index: int,
        opsets: Opsets,
        graph: GraphBuilder,
    ) -> Lookup | None:
        """What an operator makes of it, its input `index`, where that is looked up again; None where it is not."""
        if node.operator == "Gather" and index == 1 and node.attr("axis", 0) == 0 and self.pair.size == 2:
            rows = graph.reshape(self.source.plain(), (*self.source.shape, 1))
            rows = replace(rows, batch=self.source.batch)
            return Indices(rows, self.source.shape, self.pair.reshape(2)).gathered(inputs[0])
        rank = len(self.source.shape) + 1
        arrays = [value for value in inputs if isinstance(value, np.ndarray)]
        if node.operator not in _ELEMENTWISE or any(value.ndim > rank for value in arrays):
            return None
        value = _folded(node, [value.pair if isinstance(value, Bits) else value for value in inputs], opsets)
        if value is None or value.ndim != rank + 1 or len(value) != 2 or value.shape[1 + self.source.batch] != 1:
            return None
        shape = tuple(side for axis, side in enumerate(value.shape[1:]) if axis != self.source.batch)
        whole = np.broadcast_shapes(shape, self.source.shape)
        moved = replace(broadcast(graph, self.source.plain(), whole), batch=self.source.batch)
        return Bits(moved, value)


def truth(bits: Wire) -> Bits:
    """Truth values that the network computes, of a value that holds 0 and 1."""
    return Bits(bits, np.arange(2).astype(np.bool_).reshape(2, *(1,) * (len(bits.shape) + 1)))


#: What is known of each element for every choice.
Lookup: TypeAlias = Indices | Bits


def of_input(
    graph: GraphBuilder, source: Wire, shape: tuple[int, ...], choices: int, kind: np.dtype[np.generic]
) -> Lookup:
    """An input's indices themselves."""
    if choices == 2:
        return Bits(source, np.arange(2).astype(kind).reshape(2, *(1,) * (len(shape) + 1)))
    # Of one choice the row is a 1, and has no axis of its own yet.
    rows = source if choices > 1 else replace(graph.reshape(source.plain(), (*shape, 1)), batch=source.batch)
    return Indices(rows, shape, np.arange(choices).astype(kind))


def follow(node: Node, inputs: Sequence[object], opsets: Opsets, graph: GraphBuilder) -> Lookup | None:
    """What an operator makes of what is looked up, where that is looked up again; None where it is not.

    Args:
        node: The operator.
        inputs: What it reads: constants, and a `Lookup`, or several of the same elements.
        opsets: What its file means by operators.
        graph: Where nodes that move bits are added.

    Raises:
        ModelError: If it cannot be computed for the choices.
    """
    found = [(index, value) for index, value in enumerate(inputs) if isinstance(value, Indices | Bits)]
    constants = all(value is None or isinstance(value, np.ndarray | Indices | Bits) for value in inputs)
    if not found or not constants or node.proto.domain not in ("", "ai.onnx"):
        return None
    if found[1:] and node.operator not in _ELEMENTWISE:
        return None
    # One that is computed of others tells what these say.
    for index, lookup in found:
        retold = {place: lookup.retold(other) for place, other in found}
        if None not in retold.values():
            told = [retold.get(place, value) for place, value in enumerate(inputs)]
            return lookup.follow(node, told, index, opsets, graph)
    return None


def of_truth(truths: Lookup, other: Lookup) -> NDArray[np.generic] | None:
    """What another look-up is where truth values do not hold, and where they do: shape (2,); None of any other."""
    if not _alike(truths, other):
        return None
    told, values = (each.table if isinstance(each, Indices) else each.pair.ravel() for each in (truths, other))
    if values.ndim != 1 or len(values) != len(told):
        return None
    pair = [values[told == each] for each in (0, 1)]
    return np.stack([each[0] for each in pair]) if all(len(each) and (each == each[0]).all() for each in pair) else None


def lacks_row(node: Node, inputs: Sequence[object]) -> tuple[str, str] | None:
    """Why a table cannot be looked up for every choice of an input, and what to do; None where it has all rows."""
    data, index, *_ = (*inputs, None, None)
    if node.operator != "Gather" or node.attr("axis", 0) != 0 or not isinstance(data, np.ndarray):
        return None
    if not isinstance(index, Indices) or index.is_counted or index.table.dtype.kind not in "iu":
        return None
    asked = index.table.astype(np.int64)
    beyond = np.argwhere((asked < -len(data)) | (asked >= len(data)))
    if not len(beyond):
        return None
    place = tuple(beyond[0])
    what = f"is {asked[place]} where the model's input is {place[0]}, and the table has {len(data)} rows"
    return what, "let the table have a row for every number that the input may be, or the input fewer numbers"


def _alike(one: Lookup, other: Lookup) -> bool:
    """Whether both are functions of the same elements, place by place."""
    if isinstance(one, Indices) and isinstance(other, Indices):
        return one.source == other.source and one.shape == other.shape and one.table.ndim == other.table.ndim
    return isinstance(one, Bits) and isinstance(other, Bits) and one.source == other.source


def moves(node: Node, inputs: Sequence[object]) -> Bits | None:
    """The bits that an operator only moves: it may be lowered for the bits, and computed for what they stand for."""
    first, *others = inputs or [None]
    known = all(value is None or isinstance(value, np.ndarray) for value in others)
    return first if known and node.operator in _MOVEMENTS and isinstance(first, Bits) else None


def moved_pair(
    node: Node, bits: Bits, others: Sequence[object], opsets: Opsets, moved: Wire
) -> NDArray[np.generic] | None:
    """What moved bits stand for."""
    rank = len(moved.shape) + 1
    if bits.pair.size == 2:
        return bits.pair.reshape(2, *(1,) * rank)
    whole = np.broadcast_to(bits.pair, (2, *bits.source.with_batch(1)))
    each = [_folded(node, [half, *others], opsets) for half in whole]
    low, high = each
    return None if low is None or high is None else np.stack([low, high])


def _folded(node: Node, inputs: Sequence[object], opsets: Opsets) -> NDArray[np.generic] | None:
    """The operator's output where its inputs are known."""
    folded: Mapping[str, NDArray[np.generic]] | None = fold(Node(node.proto, inputs), opsets)  # type: ignore[arg-type]
    return None if folded is None else folded[next(filter(None, node.proto.output))]


def rows_product(graph: GraphBuilder, rows: Wire, weight: NDArray[np.float32]) -> Wire:
    """``rows @ weight``: a convolution of one tap over the rows as places."""
    count, width = rows.shape
    places = graph.reshape(graph.transpose(rows, (1, 0)), (width, 1, count))
    image = graph.one_tap(places, np.ascontiguousarray(weight.T)[:, :, np.newaxis, np.newaxis], 1)
    return graph.transpose(graph.reshape(image, (weight.shape[1], count)), (1, 0))


def _least(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """A constant with one element along the axes where it repeats; a number where it is one."""
    for axis in range(value.ndim):
        first = value.take([0], axis)
        value = first if (value == first).all() else value
    return value.reshape(()) if value.size == 1 else value


def check_finite(table: NDArray[np.float32], source: Wire) -> None:
    """Check that every choice stands for a number.

    Raises:
        ModelError: If one does not.
    """
    if not np.isfinite(table).all():
        raise ModelError("a choice of the input stands for NaN or infinity", where=source.name, fix="export it again")
