"""Inputs and outputs by name: how the arrays of a sample are one vector, which is what is computed on, and back.

A model with several inputs, or with one of integers that are looked up, has one secret vector: its parts in the order
of the file. A number is one element, times a public factor that brings parts of different sizes together. An index,
such as a token's, is a row of zeros with a one at its place, which the client makes: looking it up is a product with a
matrix. Of two choices one element is enough, 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanner.columns import Beyond, Column, decode, encode, label_of, width_of
from lanner.embeddings import Embeddings
from lanner.errors import InputError, MisuseError

#: What a user gives as input: an array, or arrays by name; of a table also columns or objects by name, and rows with
#: words and None among the numbers.
Given: TypeAlias = "ArrayLike | Mapping[str, object] | Sequence[object]"


@dataclass(frozen=True, slots=True)
class NamedInput:
    """One input of a file.

    Attributes:
        name: Its name.
        datatype: The type of its elements as the Open Inference Protocol names it: ``FP32``, ``INT64``, ``BOOL``.
        shape: The shape of one sample, without a batch axis.
        choices: How many values an index may have, from 0 on; None of a number.
        factor: What a number is multiplied with, a power of two.
        columns: Of a table's row, the columns; None of other inputs.
        embeddings: The public table whose rows a client gives in the place of indices; None where there is none.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    choices: int | None = None
    factor: float = 1.0
    columns: tuple[Column, ...] | None = None
    embeddings: Embeddings | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> NamedInput:
        """Read one of a manifest's ``inputs``."""
        return cls(
            str(document["name"]),
            str(document["datatype"]),
            tuple(map(int, document["shape"])),
            None if document.get("choices") is None else int(document["choices"]),
            float(document.get("factor", 1.0)),
            tuple(map(Column.from_document, document["columns"])) if document.get("columns") else None,
            None if document.get("embeddings") is None else Embeddings.from_document(document["embeddings"]),
        )

    def document(self) -> dict[str, Any]:
        """The element of a manifest's ``inputs``."""
        told: dict[str, Any] = {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
            "choices": self.choices,
            "factor": self.factor,
        }
        if self.columns is not None:
            told["columns"] = [column.document() for column in self.columns]
        if self.embeddings is not None:
            told["embeddings"] = self.embeddings.document()
        return told

    @property
    def width(self) -> int:
        """How many elements of the vector one element takes."""
        if self.embeddings is not None:
            return self.embeddings.width
        return 1 if self.choices in (None, 2) else self.choices or 1

    @property
    def size(self) -> int:
        """How many elements of the vector one sample takes."""
        return math.prod(self.shape) * self.width if self.columns is None else width_of(self.columns)

    @property
    def coded_shape(self) -> tuple[int, ...]:
        """The shape of its part of the vector: that of a sample, and of an index the choices behind it.

        Codes of a row are ``(1, size)``, so that nobody takes them for the row itself.
        """
        if self.columns is not None:
            return (1, self.size)
        return self.shape if self.width == 1 and self.embeddings is None else (*self.shape, self.width)

    def encode(self, values: NDArray[np.float32], where: str, beyond: Beyond | None = None) -> NDArray[np.float32]:
        """Samples of shape (n, *shape) as their part of the vector, shape (n, size).

        `beyond` is shown a table's rows, so that it can tell of numbers that count as ends.

        Raises:
            InputError: If an element is not whole, or no index, where one is needed; its place is named.
            MisuseError: If indices are looked up in a public table that is not at hand.
        """
        rows = values.reshape(len(values), -1)
        if self.columns is not None:
            self._check_columns(self.columns, rows, where)
            if beyond is not None:
                beyond.look(self.columns, rows)
            return encode(self.columns, rows)
        if self.datatype != "FP32" or self.choices is not None:
            self._check_whole(values, where)
        if self.embeddings is not None:
            return self.embeddings.look_up(rows, where).reshape(len(values), -1) * np.float32(self.factor)
        if self.choices is None:
            return rows * np.float32(self.factor)
        if self.choices == 1:
            return np.ones_like(rows)
        if self.width == 1:
            return rows
        coded = np.zeros((len(values), rows.shape[1], self.width), np.float32)
        np.put_along_axis(coded, rows.astype(np.int64)[:, :, np.newaxis], 1.0, axis=2)
        return coded.reshape(len(values), -1)

    def decode(self, coded: NDArray[np.float32]) -> NDArray[np.generic]:
        """What `encode` made its part of: shape (n, *shape), of the file's type."""
        if self.columns is not None:
            return decode(self.columns, coded).reshape(-1, *self.shape).astype(TYPES[self.datatype])
        if self.embeddings is not None:
            vectors = coded.reshape(-1, self.width)
            places = self.embeddings.find(vectors, self.factor, f"input {self.name}")
            return places.reshape(-1, *self.shape).astype(TYPES[self.datatype])
        whole = self.choices in (None, 2)
        rows = coded if whole else coded.reshape(len(coded), -1, self.width).argmax(2)
        values = rows / np.float32(self.factor) if self.choices is None else rows
        return values.reshape(-1, *self.shape).astype(TYPES[self.datatype])

    def _check_columns(self, columns: tuple[Column, ...], rows: NDArray[np.float32], where: str) -> None:
        for index, column in enumerate(columns):
            values, label = rows[:, index], "" if column.name is None else f" ({label_of(columns, index)})"
            absent = np.isnan(values) & (not column.missing)
            if absent.any():
                place = [int(np.argmax(absent)), index]
                raise InputError(
                    f"element {place}{label} is missing, but no calibration sample lacked it",
                    where=where,
                    fix="fill it in, or have the model compiled with samples that lack it",
                )
            if column.categories is None:
                continue
            most = column.choices - 1
            other = ~np.isnan(values) & ((values != np.rint(values)) | (values < 0) | (values > most))
            if other.any():
                place = [int(np.argmax(other)), index]
                raise InputError(
                    f"element {place}{label} is no category", where=where, fix=f"give whole numbers from 0 to {most}"
                )

    def _check_whole(self, values: NDArray[np.float32], where: str) -> None:
        ends = self._ends()
        wrong = values != np.rint(values)
        if ends is not None:
            wrong |= (values < ends[0]) | (values > ends[1])
        if wrong.any():
            place = list(map(int, np.argwhere(wrong)[0]))
            # A number of the input is told to nobody, not even by its owner's terminal or log.
            needed = "whole number" if ends is None else f"whole number from {ends[0]} to {ends[1]}"
            fix = f"give {needed.replace('number', 'numbers', 1)} only"
            raise InputError(f"element {place} is no {needed}", where=where, fix=fix)

    def _ends(self) -> tuple[int, int] | None:
        """The least and the largest value of an element; None where the type has none that float32 tells apart."""
        if self.choices is not None:
            return 0, self.choices - 1
        kind = np.dtype(TYPES[self.datatype])
        if kind.kind not in "iu" or kind.itemsize > 2:
            return None
        return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


@dataclass(frozen=True, slots=True)
class NamedOutput:
    """One output of a file, of several.

    Attributes:
        name: Its name.
        shape: The shape for one sample, without a batch axis.
        factor: What its values are multiplied with in the vector, a power of two.
    """

    name: str
    shape: tuple[int, ...]
    factor: float = 1.0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> NamedOutput:
        """Read one of a manifest's ``outputs``."""
        return cls(str(document["name"]), tuple(map(int, document["shape"])), float(document.get("factor", 1.0)))

    def document(self) -> dict[str, Any]:
        """The element of a manifest's ``outputs``."""
        return {"name": self.name, "shape": list(self.shape), "factor": self.factor}

    @property
    def size(self) -> int:
        """How many elements one sample's have."""
        return math.prod(self.shape)


#: The type of an array by the name that the Open Inference Protocol has for it.
TYPES: Mapping[str, type[np.generic]] = {
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
}


def encode_inputs(
    inputs: Sequence[NamedInput],
    arrays: Mapping[str, NDArray[np.float32]],
    where: str,
    beyond: Beyond | None = None,
) -> NDArray[np.float32]:
    """Arrays by name as samples of one vector, shape (n, size of all); each is one sample's, or has them first.

    `beyond` is as for `NamedInput.encode`.

    Raises:
        InputError: If one is missing, unknown or of another shape, or they are of different numbers of samples.
    """
    shown = ", ".join(f"{entry.name} {entry.shape}" for entry in inputs)
    names = {entry.name for entry in inputs}
    for name in (*sorted(names - set(arrays)), *sorted(set(arrays) - names)):
        said = "is missing" if name in names else "is not an input of the model"
        raise InputError(f"input {name} {said}", where=where, fix=f"give {shown}")
    batches = [_as_batch(arrays[entry.name], entry, where) for entry in inputs]
    counts = sorted({len(batch) for batch in batches})
    if len(counts) > 1:
        told = " and ".join(map(str, counts))
        raise InputError(f"the inputs hold {told} samples", where=where, fix="give as many of each")
    coded = [
        entry.encode(batch, f"{where}, {entry.name}" if where != "input" else f"input {entry.name}", beyond)
        for entry, batch in zip(inputs, batches, strict=True)
    ]
    return np.concatenate(coded, axis=1)


def tables_of(inputs: Sequence[NamedInput]) -> frozenset[str]:
    """The names of the inputs that are tables."""
    return frozenset(entry.name for entry in inputs if entry.columns is not None)


def only_table(inputs: Sequence[NamedInput]) -> NamedInput | None:
    """The one input of a file whose only input is a table."""
    return inputs[0] if len(inputs) == 1 and inputs[0].columns is not None else None


def decode_inputs(inputs: Sequence[NamedInput], coded: NDArray[np.float32]) -> dict[str, NDArray[np.generic]]:
    """What `encode_inputs` was given, in the file's types; each array has the samples first."""
    rows = coded.reshape(len(coded), -1)
    return {entry.name: entry.decode(rows[:, part]) for entry, part in parts_of(inputs)}


def parts_of(inputs: Sequence[NamedInput]) -> Iterator[tuple[NamedInput, slice]]:
    """Each input, and which elements of the vector are its."""
    ends = accumulate(entry.size for entry in inputs)
    return ((entry, slice(end - entry.size, end)) for entry, end in zip(inputs, ends, strict=True))


def holding(
    inputs: Sequence[NamedInput], tables: Mapping[str, NDArray[Any]], where: str | None = None
) -> tuple[NamedInput, ...]:
    """Inputs with the public tables that are named, each by its input; those of other inputs are not looked at.

    Raises:
        ModelError: If one is another table than the model's; `where` is named, or the input.
    """
    return tuple(
        entry
        if entry.embeddings is None or entry.name not in tables
        else replace(entry, embeddings=entry.embeddings.holding(tables[entry.name], where or f"input {entry.name}"))
        for entry in inputs
    )


def range_of(inputs: Sequence[NamedInput]) -> tuple[float, float] | None:
    """What the vector's elements may be, so that every row of every public table is accepted; None without any.

    Numbers are between -1 and 1 on the samples, by their factors, and may be twice as large.
    """
    if all(entry.embeddings is None for entry in inputs):
        return None
    ends = [(0.0, 0.0)]
    for entry in inputs:
        if entry.embeddings is not None:
            low, high = entry.embeddings.ends()
            ends.append((low * entry.factor, high * entry.factor))
        else:
            ends.append((-2.0, 2.0) if entry.choices is None else (0.0, 1.0))
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    return (least, most) if least < most else (0.0, 1.0)


def published_tables(inputs: Sequence[NamedInput]) -> dict[str, NDArray[np.float32]]:
    """The public tables that are at hand, by the names of their inputs."""
    found = ((entry.name, entry.embeddings) for entry in inputs)
    return {name: each.table.rows for name, each in found if each is not None and each.table is not None}


def check_ranges(options: Mapping[str, Any], inputs: Sequence[NamedInput]) -> None:
    """Check that nothing else is said of ranges that follow from public tables.

    Raises:
        MisuseError: Naming the option.
    """
    if range_of(inputs) is None:
        return
    for name in ("input_range", "public_preprocessing"):
        if options.get(name):
            raise MisuseError(
                "public embeddings have the range of their tables",
                where=name,
                fix=f"leave {name} out, or public_embeddings",
            )


def split_outputs(outputs: Sequence[NamedOutput], vector: Sequence[float]) -> dict[str, list[float]]:
    """The values of each output in row-major order, of one sample's vector that holds them one after another."""
    ends = accumulate(output.size for output in outputs)
    return {
        output.name: [value / output.factor for value in vector[end - output.size : end]]
        for output, end in zip(outputs, ends, strict=True)
    }


def largest(values: NDArray[np.float32]) -> float:
    """The largest magnitude of some numbers, 0 of none."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def factor_for(largest: float) -> float:
    """The power of two that brings numbers up to `largest` to between a half and one."""
    if not (math.isfinite(largest) and largest > 0):
        return 1.0
    return float(2.0 ** -max(-120, min(120, math.ceil(math.log2(largest)))))


def _as_batch(values: NDArray[np.float32], entry: NamedInput, where: str) -> NDArray[np.float32]:
    if values.shape == entry.shape:
        return values[np.newaxis]
    if values.ndim == len(entry.shape) + 1 and values.shape[1:] == entry.shape and len(values) > 0:
        return values
    taken = f"{entry.shape}, or {('n', *entry.shape)} for several".replace("'", "")
    raise InputError(f"input {entry.name} has shape {values.shape}", where=where, fix=f"the model expects {taken}")
