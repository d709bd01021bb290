"""Sums of a row's numbers times constants: what encoders, scalers and joins make of them in front of a first layer.

They stay one matrix until something else reads them, so that the first layer takes it in: then the network begins with
that layer, whose weights are as large as the units of its numbers ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lanner.columns import Coding, Column
from lanner.errors import ModelError
from lanner.onnx.builder import GraphBuilder
from lanner.onnx.node import Node
from lanner.onnx.number_types import FLOATS
from lanner.onnx.wire import Wire
from lanner.onnx.words import ML, encoded


@dataclass(frozen=True, slots=True)
class Affine:
    """A tensor whose elements are sums of a row's numbers, times constants.

    Attributes:
        source: The row, shape (n,).
        matrix: What each number counts in each element: shape (n, elements).
        offset: What is added: shape (elements,).
        shape: The shape of one sample.
        batch: The axis of samples.
        lacks: Of each element, which of the row's numbers is a one where it is missing; -1 where it never is.
        word: Of a word's place, which of the row's numbers are its choices.
    """

    source: Wire
    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    shape: tuple[int, ...]
    lacks: NDArray[np.int64]
    batch: int = 0
    word: slice | None = None

    @classmethod
    def of_column(cls, source: Wire, column: Column, part: slice, batch: int) -> Affine:
        """A column of the row: a number, or a word's place."""
        matrix, is_word = np.zeros((source.size, 1)), column.coding is Coding.CHOICE
        matrix[part, 0] = np.arange(column.width) if is_word else [1.0, 0.0][: column.width]
        lacks = np.array([part.stop - 1 if column.missing else -1])
        return cls(source, matrix, np.zeros(1), (1,), lacks, batch, part if is_word else None)

    @property
    def stand_in(self) -> Wire:
        """A wire of its shape, for whoever asks for that alone."""
        return Wire(self.source.name, self.shape, batch=self.batch)

    def materialised(self, graph: GraphBuilder) -> Wire:
        """The tensor as a value of the network.

        Raises:
            ModelError: If an element may be missing.
        """
        if (self.lacks >= 0).any():
            raise ModelError(
                "a column lacks numbers in the samples, and no imputer fills them in before another step reads them",
                where=self.source.name,
                fix="make a SimpleImputer without add_indicator the first step, or give samples that lack no numbers",
            )
        y = graph.affine(self.source, self.matrix.astype(np.float32), self.offset.astype(np.float32))
        return replace(graph.reshape(y, self.shape), batch=self.batch)

    def follow(self, node: Node, inputs: Sequence[object]) -> Affine | None:
        """What an operator makes of it, or of several; None where that is something else."""
        others = [value for value in inputs if not isinstance(value, Affine) and value is not None]
        if not all(isinstance(value, np.ndarray) for value in others) or self.batch != 0:
            return None
        if node.operator in ("Concat", "FeatureVectorizer"):
            return None if others else self._joined(node, [each for each in inputs if isinstance(each, Affine)])
        known = [np.asarray(value) for value in others]
        first = isinstance(inputs[0], Affine)
        if sum(isinstance(value, Affine) for value in inputs) != 1:
            return None
        if node.operator in _OPERATIONS and len(known) == 1:
            return self._with_constant(node.operator, known[0], first=first)
        made = _FOLLOWED.get(node.qualified_operator) if first else None
        return None if made is None else made(self, node, known)

    def _joined(self, node: Node, parts: Sequence[Affine]) -> Affine | None:
        last = len(self.shape)
        along = node.operator == "FeatureVectorizer" or node.attr("axis", 1) in (-1, last)
        flat = all(len(part.shape) == last and set(part.shape[:-1]) <= {1} and part.batch == 0 for part in parts)
        if not along or not flat:
            return None
        matrix = np.concatenate([part.matrix for part in parts], axis=1)
        offset, lacks = (
            np.concatenate(each) for each in zip(*((part.offset, part.lacks) for part in parts), strict=True)
        )
        shape = (*self.shape[:-1], len(offset))
        return replace(self, matrix=matrix, offset=offset, shape=shape, lacks=lacks, word=None)

    def _with_constant(self, operator: str, constant: NDArray[np.generic], *, first: bool) -> Affine | None:
        try:
            given = np.broadcast_to(constant.astype(np.float64), (1, *self.shape)).ravel()
        except ValueError:
            return None
        sign = -1.0 if operator == "Sub" else 1.0
        if operator in ("Add", "Sub"):
            if first:
                return self._scaled(np.ones(1), sign * given)
            return self._scaled(np.array([sign]), given)
        if operator == "Div" and (not first or not given.all()):
            return None
        return self._scaled(1.0 / given if operator == "Div" else given, np.zeros(1))

    def _scaled(self, factor: NDArray[np.float64], term: NDArray[np.float64]) -> Affine:
        """It times a factor and plus a term, each for every element or for all."""
        return replace(self, matrix=self.matrix * factor, offset=self.offset * factor + term, word=None)

    def _encoded(self, node: Node, _: Sequence[NDArray[np.generic]]) -> Affine | None:
        if self.word is None:
            return None
        places = np.arange(self.word.stop - self.word.start)
        made = encoded(node, places)
        if made is None:
            return None
        each = made.reshape(len(made), -1)
        matrix = np.zeros((len(self.matrix), each.shape[1]))
        matrix[self.word] = each
        count = each.shape[1]
        shape = self.shape if made.ndim == 1 else (*self.shape, count)
        never = np.full(count, -1)
        return replace(self, matrix=matrix, offset=np.zeros(count), shape=shape, lacks=never, word=None)

    def _kept(self, _: Node, __: Sequence[NDArray[np.generic]]) -> Affine:
        return self

    def _cast(self, node: Node, _: Sequence[NDArray[np.generic]]) -> Affine | None:
        """The same numbers as floats, or the place of a word as an integer; others would be rounded."""
        return self if self.word is not None or node.attr("to", 1) in FLOATS else None

    def _viewed(self, node: Node, known: Sequence[NDArray[np.generic]]) -> Affine | None:
        """The same elements in another shape, whose first axis is the samples'."""
        if node.operator == "Flatten":
            return replace(self, shape=(len(self.offset),), word=None) if node.attr("axis", 1) == 1 else None
        if node.attr("allowzero", 0) or len(known) != 1:
            return None
        before = (1, *self.shape)
        sizes = [int(side) for side in known[0].ravel()]
        if any(side == 0 and axis >= len(before) for axis, side in enumerate(sizes)):
            return None
        sizes = [before[axis] if side == 0 else side for axis, side in enumerate(sizes)]
        try:
            shape = np.empty(before, np.bool_).reshape(sizes).shape
        except ValueError:
            return None
        return replace(self, shape=shape[1:]) if shape[0] == 1 and sizes[0] in (-1, 1) else None

    def _picked(self, node: Node, known: Sequence[NDArray[np.generic]]) -> Affine | None:
        last = len(self.shape)
        if len(known) != 1 or set(self.shape[:-1]) - {1}:
            return None
        if node.operator == "Gather" and (node.attr("axis", 0) not in (last, -1) or known[0].ndim != 1):
            return None
        places = [int(place) % self.shape[-1] for place in known[0].ravel()]
        kept = self.word if places == [0] and self.shape == (1,) else None
        return replace(
            self,
            matrix=self.matrix[:, places],
            offset=self.offset[places],
            lacks=self.lacks[places],
            shape=(*self.shape[:-1], len(places)),
            word=kept,
        )

    def _standardised(self, node: Node, _: Sequence[NDArray[np.generic]]) -> Affine | None:
        none = list[float]()
        offset = np.array(node.attr("offset", none) or [0.0])
        scale = np.array(node.attr("scale", none) or [1.0])
        if {len(offset), len(scale)} - {1, len(self.offset)} or len(self.shape) != 1:
            return None
        return self._scaled(scale, -offset * scale)

    def _imputed(self, node: Node, _: Sequence[NDArray[np.generic]]) -> Affine | None:
        """What stands for missing numbers, in the place of what the row has there, 0."""
        none = list[float]()
        fills = np.array(node.attr("imputed_value_floats", none) or node.attr("imputed_value_int64s", none))
        if not np.isnan(float(node.attr("replaced_value_float", 0.0))) or len(fills) not in (1, len(self.offset)):
            return None
        matrix = self.matrix.copy()
        for element, (lacks, fill) in enumerate(
            zip(self.lacks, np.broadcast_to(fills, self.offset.shape), strict=True)
        ):
            if lacks >= 0:
                matrix[lacks, element] = fill - self.offset[element]
        return replace(self, matrix=matrix, lacks=np.full(len(self.lacks), -1))


_FOLLOWED: dict[str, Callable[[Affine, Node, Sequence[NDArray[np.generic]]], Affine | None]] = {
    f"{ML}.OneHotEncoder": Affine._encoded,
    f"{ML}.LabelEncoder": Affine._encoded,
    f"{ML}.Scaler": Affine._standardised,
    f"{ML}.Imputer": Affine._imputed,
    f"{ML}.ArrayFeatureExtractor": Affine._picked,
    "Gather": Affine._picked,
    "Reshape": Affine._viewed,
    "Flatten": Affine._viewed,
    "Identity": Affine._kept,
    "Cast": Affine._cast,
}

_OPERATIONS = frozenset(("Add", "Sub", "Mul", "Div"))
