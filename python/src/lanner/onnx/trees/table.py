"""The client's table on its way to trees: what each of its columns has become, for every code of the client's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.columns import Column, high_place
from lanner.onnx.builder import Wire
from lanner.onnx.node import Node
from lanner.onnx.words import ML, encoded

#: What became of a column's numbers, which may be NaN.
Became = Callable[[NDArray[np.float32]], NDArray[np.float32]]

#: Operators that hand columns on, or change each by itself.
_ON_COLUMNS = frozenset(("Identity", "Cast", "Concat", "Gather", "Reshape", "Add", "Sub", "Mul", "Div"))
_ML_ON_COLUMNS = frozenset(
    ("ArrayFeatureExtractor", "Scaler", "Imputer", "FeatureVectorizer", "OneHotEncoder", "LabelEncoder")
)

_TREES = frozenset(("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"))


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a table that depends on one of the client's.

    Attributes:
        column: The client's.
        places: Where its code is in the client's vector: where a missing number is low, and where it is high.
        became: What its numbers have become, in the same order or the opposite one; of categories in any order.
        known: Codes that samples have, in order, and a sample's number for each.
        exact: Whether samples are what their codes stand for, and not only near it.
    """

    column: Column
    places: tuple[int, int]
    became: Became
    known: tuple[NDArray[np.int64], NDArray[np.float32]]
    exact: bool

    def at(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """What it is for codes of numbers: for those that samples have, what it is for the sample."""
        known, numbers = self.known
        place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        values = self.column.values(codes)
        return self.became(np.where(known[place] == codes, numbers[place], values) if len(known) else values)

    def is_known(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which codes samples have."""
        return np.isin(codes, self.known[0])

    @property
    def at_missing(self) -> float:
        """What it is where the number is missing."""
        return float(self.became(np.array([np.nan], np.float32))[0])

    def then(self, of: Became) -> Cell:
        """What an operator makes of it."""
        before = self.became
        return replace(self, became=lambda values: of(before(values)))


@dataclass(frozen=True, slots=True)
class Table:
    """A tensor of shape (n, columns) each of whose columns depends on one of the client's alone.

    Attributes:
        cells: Its columns.
        source: The client's whole vector.
    """

    cells: tuple[Cell, ...]
    source: Wire

    @property
    def stand_in(self) -> Wire:
        """A wire of its shape."""
        return Wire(self.source.name, (len(self.cells),))

    def follow(self, node: Node, inputs: Sequence[object]) -> Table | None:
        """What an operator makes of it, or of several tables; None where that is no table."""
        if node.operator in ("Concat", "FeatureVectorizer"):
            return self._joined(node, inputs)
        if not isinstance(inputs[0], Table):
            return self._from_right(node, inputs)
        others = [value for value in inputs[1:] if value is not None]
        if not all(isinstance(value, np.ndarray) for value in others):
            return None
        if node.operator in ("Identity", "Cast", "Reshape"):
            return self if self._is_kept(node, others) else None
        if node.operator in ("OneHotEncoder", "LabelEncoder"):
            return self._encoded(node)
        if node.operator in ("ArrayFeatureExtractor", "Gather"):
            return self._picked(node, np.asarray(others[0]))
        if node.operator == "Scaler":
            return self._scaled(node)
        if node.operator == "Imputer":
            return self._imputed(node)
        if node.operator in _OPERATIONS and len(others) == 1:
            return self._each(np.asarray(others[0]), _OPERATIONS[node.operator])
        return None

    def _is_kept(self, node: Node, others: Sequence[object]) -> bool:
        """Whether an operator hands all columns on as they are."""
        if node.operator == "Reshape":
            # The encoders of scikit-learn's converter have an axis for their one column.
            return np.ravel(np.asarray(others[0])).tolist() == [-1, len(self.cells)]
        to = node.attr("to", 0)
        return node.operator == "Identity" or to in _FLOATS or (to in _WHOLE and all(map(_is_whole, self.cells)))

    def _from_right(self, node: Node, inputs: Sequence[object]) -> Table | None:
        """A constant and the table, of operators whose result does not turn the order into none."""
        first = inputs[0]
        if not isinstance(first, np.ndarray) or node.operator not in ("Add", "Mul", "Sub"):
            return None
        operation = _OPERATIONS[node.operator]
        return self._each(first, lambda values, constant: operation(constant, values))

    def _each(self, constants: NDArray[np.generic], of: Callable[..., NDArray[np.float32]]) -> Table | None:
        if constants.size not in (1, len(self.cells)) or (constants.ndim > 1 and constants.shape[0] != 1):
            return None
        each = np.broadcast_to(constants.ravel().astype(np.float32), (len(self.cells),))
        cells = (cell.then(partial(_applied, of, constant)) for cell, constant in zip(self.cells, each, strict=True))
        return replace(self, cells=tuple(cells))

    def _scaled(self, node: Node) -> Table | None:
        count, none = len(self.cells), list[float]()
        offset = np.array(node.attr("offset", none) or [0.0], np.float32)
        scale = np.array(node.attr("scale", none) or [1.0], np.float32)
        if {len(offset), len(scale)} - {1, count}:
            return None
        offset, scale = np.broadcast_to(offset, (count,)), np.broadcast_to(scale, (count,))

        def scaled(cell: Cell, o: np.float32, s: np.float32) -> Cell:
            return cell.then(lambda x: (x - o) * s)

        return replace(self, cells=tuple(map(scaled, self.cells, offset, scale)))

    def _encoded(self, node: Node) -> Table | None:
        """The numbers of categories, or a column for each of them."""
        if len(self.cells) != 1 or self.cells[0].column.categories is None:
            return None
        cell = self.cells[0]
        made = encoded(node, np.arange(cell.column.choices))
        if made is None:
            return None
        each = made.reshape(len(made), -1).T.astype(np.float32)
        return replace(self, cells=tuple(cell.then(partial(_looked_up, numbers)) for numbers in each))

    def _imputed(self, node: Node) -> Table | None:
        none = list[float]()
        given = node.attr("imputed_value_floats", none) or node.attr("imputed_value_int64s", none)
        replaced = float(node.attr("replaced_value_float", 0.0))
        if len(given) not in (1, len(self.cells)):
            return None
        fill = np.broadcast_to(np.array(given, np.float32), (len(self.cells),))

        def imputed(cell: Cell, value: np.float32) -> Cell:
            if not np.isnan(replaced):
                return cell
            return cell.then(lambda x: np.where(np.isnan(x), value, x))

        return replace(self, cells=tuple(map(imputed, self.cells, fill))) if np.isnan(replaced) else None

    def _joined(self, node: Node, inputs: Sequence[object]) -> Table | None:
        tables = [value for value in inputs if isinstance(value, Table)]
        along = node.operator == "FeatureVectorizer" or node.attr("axis", 1) in (1, -1)
        if len(tables) != len(inputs) or not along:
            return None
        return replace(self, cells=tuple(cell for table in tables for cell in table.cells))

    def _picked(self, node: Node, indices: NDArray[np.generic]) -> Table | None:
        if node.operator == "Gather" and (node.attr("axis", 0) not in (1, -1) or indices.ndim != 1):
            return None
        places = [int(index) % len(self.cells) for index in indices.ravel()]
        return replace(self, cells=tuple(self.cells[place] for place in places))


def table_of(source: Wire, first: int, columns: tuple[Column, ...], rows: NDArray[np.float32]) -> Table:
    """An input's columns, whose codes begin at place `first` of the client's vector; `rows` are the owner's samples."""
    cells = []
    for index, column in enumerate(columns):
        high = high_place(columns, index) if column.missing else index
        numbers = np.unique(rows[np.isfinite(rows[:, index]), index])
        codes, places = np.unique(column.codes(numbers), return_index=True)
        known = (codes, numbers[places])
        exact = bool(np.array_equal(column.values(column.codes(numbers)), numbers))
        cells.append(Cell(column, (first + index, first + high), lambda values: values, known, exact))
    return Table(tuple(cells), source)


def leads_to_trees(name: str, graph: onnx.GraphProto) -> bool:
    """Whether an input is a table that trees read, column by column, and nothing else does."""
    seen, pending, found = {name}, [name], False
    while pending:
        read = pending.pop()
        for node in graph.node:
            if read not in node.input:
                continue
            if node.domain == ML and node.op_type in _TREES:
                found = True
            elif node.op_type in (_ML_ON_COLUMNS if node.domain == ML else _ON_COLUMNS):
                pending += [output for output in node.output if output not in seen]
                seen.update(node.output)
            else:
                return False
    return found


def _is_whole(cell: Cell) -> bool:
    """Whether a column holds whole numbers as they are."""
    return cell.column.unit >= 1 and float(cell.column.unit).is_integer() and cell.exact


def _looked_up(numbers: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The numbers that categories' places stand for; NaN where there is no category."""
    places = np.where(np.isnan(values), 0, values).astype(np.int64)
    return np.where(np.isnan(values), np.float32(np.nan), numbers[np.clip(places, 0, len(numbers) - 1)])


def _applied(
    of: Callable[[NDArray[np.float32], np.float32], NDArray[np.float32]],
    constant: np.float32,
    values: NDArray[np.float32],
) -> NDArray[np.float32]:
    return of(values, constant)


_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_WHOLE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)

_OPERATIONS: dict[str, Callable[..., NDArray[np.float32]]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
