"""Columns of a table: which values a client's number may be rounded to, and what stands for a missing one.

A model of trees compares each column with thresholds. Its client sends whole numbers, the *codes* of a column: a
number is the multiple of the column's unit that is nearest to it, counted from the column's offset. What lies beyond
the ends counts as the end. The units follow from the owner's samples alone, never from thresholds.

Other models of a table with words read its numbers as they are, and a word as a row of zeros with a one at its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A column has no more codes than whole numbers that a float32 tells apart.
MOST_BITS = 24

#: Bits of the range to which its ends are told.
_TOLD = 5

#: The most decimal digits that are looked for behind the point.
_DIGITS = 7


class Coding(Enum):
    """What the elements of a column are."""

    #: A code, which trees compare.
    CODE = "code"
    #: The number itself, or that of the category. One that may be missing is 0 then, and a one behind it says so.
    NUMBER = "number"
    #: A row of zeros with a one at the place of the category.
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        unit: What neighbouring codes are apart; 1 of what is no code.
        offset: The code 0 stands for this many units.
        high: The largest code.
        missing: Whether a number may be missing. The codes 0 and `high` are then no numbers': they stand for a missing
            one, the one or the other as it is to be taken for low or for high.
        name: Its name, where the model's owner gave one.
        categories: What its numbers from 0 on stand for, in words; None of plain numbers.
        others: Whether every other word counts as one category more, the last.
        coding: What its elements are.
    """

    unit: float
    offset: int
    high: int
    missing: bool = False
    name: str | None = None
    categories: tuple[str, ...] | None = None
    others: bool = False
    coding: Coding = Coding.CODE

    @classmethod
    def of(cls, samples: NDArray[np.float32], stated: StatedColumn | None = None) -> Column:
        """The column that samples are of: decimals of a few digits as such, others in steps of a power of two.

        There is room for half their range on either side, and one of NaN makes a column with missing numbers. What its
        owner stated of it comes first: of categories the codes are theirs.
        """
        missing = bool(np.isnan(samples).any())
        if stated is not None:
            return cls._stated(samples, stated, missing or stated.missing)
        return cls._spanning(samples, missing)

    @classmethod
    def _stated(cls, samples: NDArray[np.float32], stated: StatedColumn, missing: bool) -> Column:
        if stated.categories is None:
            return replace(cls._spanning(samples, missing), name=stated.name)
        # How many there are is told anyway.
        high = max(stated.choices - 1, 1) + 2 * missing
        return cls(1.0, -int(missing), high, missing, stated.name, stated.categories, stated.others)

    @classmethod
    def plain(cls, stated: StatedColumn, coding: Coding, *, missing: bool) -> Column:
        """The column of a model that reads numbers as they are, or a one at the place of a category."""
        if stated.categories is None:
            return cls(1.0, 0, 2 * missing, missing, stated.name, coding=coding)
        return replace(cls._stated(np.zeros(0, np.float32), stated, missing=False), coding=coding)

    @classmethod
    def _spanning(cls, samples: NDArray[np.float32], missing: bool) -> Column:
        known = np.unique(samples[np.isfinite(samples)].astype(np.float64))
        if len(known) == 0:
            known = np.zeros(1)
        low, high = float(known[0]), float(known[-1])
        margin = max((high - low) / 2, 0.5 * abs(high) if high == low else 0.0)
        for digits in range(_DIGITS + 1):
            unit = 10.0**-digits
            if (high - low + 2 * margin) / unit >= 2**MOST_BITS * 0.8 or max(abs(low), abs(high)) / unit > 2**40:
                break
            if np.array_equal((np.rint(known / unit) * unit).astype(np.float32), known.astype(np.float32)):
                return cls._between(unit, low - margin - unit, high + margin + unit, missing)
        width = high - low + 2 * margin
        # The ends move outwards by less than a quarter.
        unit = float(2.0 ** np.ceil(np.log2(1.25 * (width or 1.0) / (2**MOST_BITS - 4))))
        return cls._between(unit, low - margin, high + margin, missing)

    @classmethod
    def _between(cls, unit: float, low: float, high: float, missing: bool) -> Column:
        first, last = int(np.floor(low / unit)), int(np.ceil(high / unit))
        # The ends are told to a part of the range only, so that they tell no sample.
        step = 1 << max((last - first).bit_length() - _TOLD, 0)
        first, last = first // step * step, -(-last // step) * step
        return cls(unit, first - missing, last - first + 2 * missing, missing)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Column:
        """Read one of a manifest's input's ``columns``."""
        name, categories = document.get("name"), document.get("categories")
        return cls(
            float(document["unit"]),
            int(document["offset"]),
            int(document["high"]),
            bool(document.get("missing")),
            None if name is None else str(name),
            None if categories is None else tuple(map(str, categories)),
            bool(document.get("others")),
            Coding(document.get("coding", "code")),
        )

    def document(self) -> dict[str, Any]:
        """The element of a manifest's input's ``columns``."""
        told: dict[str, Any] = {
            "unit": self.unit,
            "offset": self.offset,
            "high": self.high,
            "missing": self.missing,
        }
        told |= {} if self.name is None else {"name": self.name}
        told |= {} if self.categories is None else {"categories": list(self.categories)}
        told |= {"others": True} if self.others else {}
        return told | ({} if self.coding is Coding.CODE else {"coding": self.coding.value})

    @property
    def choices(self) -> int:
        """How many categories there are, other words among them; 0 of plain numbers."""
        return len(self.categories or ()) + self.others

    @property
    def width(self) -> int:
        """How many elements of the vector it takes."""
        return self.choices if self.coding is Coding.CHOICE else 1 + self.missing

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last code of a number."""
        return int(self.missing), self.high - int(self.missing)

    def codes(self, values: NDArray[np.float32]) -> NDArray[np.int64]:
        """The codes of numbers; of a missing one the first code of all, 0."""
        low, high = self.ends
        with np.errstate(invalid="ignore"):
            places = np.rint(values.astype(np.float64) / self.unit) - self.offset
        return np.where(np.isnan(places), 0, np.clip(places, low, high)).astype(np.int64)

    def values(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """The numbers that codes stand for, as a float32 holds them."""
        return ((codes + self.offset) * self.unit).astype(np.float32)

    def elements(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers, shape (n,), as elements of the vector, shape (n, `width`), where these are no codes."""
        if self.coding is Coding.NUMBER:
            lacks = np.isnan(values)
            found = np.stack([np.where(lacks, 0.0, values), lacks], axis=1).astype(np.float32)
            return np.asarray(found[:, : self.width])
        return np.asarray(values[:, np.newaxis] == np.arange(self.choices), np.float32)

    def numbers(self, elements: NDArray[np.float32]) -> NDArray[np.float32]:
        """What `elements` made elements of: shape (n,)."""
        if self.coding is Coding.NUMBER:
            lacks = elements[:, -1] > 0.5 if self.missing else np.zeros(len(elements), np.bool_)
            return np.asarray(np.where(lacks, np.nan, elements[:, 0]), np.float32)
        return np.asarray(elements.argmax(axis=1), np.float32)

    def beyond(self, values: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which numbers lie beyond the ends, so that they count as these."""
        if self.coding is not Coding.CODE:
            return np.zeros(values.shape, np.bool_)
        low, high = self.ends
        places = values.astype(np.float64) / self.unit - self.offset
        with np.errstate(invalid="ignore"):
            return np.asarray((places < low - 0.5) | (places > high + 0.5))


@dataclass(frozen=True, slots=True)
class StatedColumn:
    """What a model's owner says of a column.

    Attributes:
        name: Its name.
        missing: Whether a number may be missing, though no sample lacks one.
        categories: What its numbers from 0 on stand for, in words; None of plain numbers.
        others: Whether every other word counts as one category more, the last.
    """

    name: str
    missing: bool = False
    categories: tuple[str, ...] | None = None
    others: bool = False

    @property
    def choices(self) -> int:
        """How many categories there are, other words among them; 0 of plain numbers."""
        return len(self.categories or ()) + self.others


def label_of(columns: Sequence[Column] | Sequence[StatedColumn], index: int) -> str:
    """A column as sentences name it: ``column age``, or ``column 3`` of those without names, counted from 1."""
    name = columns[index].name
    return f"column {index + 1 if name is None else name}"


def names_of(columns: Sequence[Column] | Sequence[StatedColumn]) -> tuple[str, ...] | None:
    """The names of the columns; None where one has none."""
    names = tuple(column.name for column in columns if column.name is not None)
    return names if len(names) == len(columns) else None


class Beyond:
    """The numbers that counted as the ends of their columns, for their owner: where they stand, not what they are."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: dict[tuple[str, str], list[int]] = {}
        self._first, self._of = 0, ""

    def behind(self, first: int) -> Beyond:
        """The same, to be shown rows that follow so many others."""
        self._first = first
        return self

    def of(self, source: str) -> Beyond:
        """The same, to be shown rows of a file, whose name it tells; of no name where there is one file."""
        self._of = source
        return self

    def look(self, columns: Sequence[Column], rows: NDArray[np.float32]) -> None:
        """Look at rows of shape (n, columns)."""
        for index, column in enumerate(columns):
            found = np.flatnonzero(column.beyond(rows[:, index]))
            if len(found):
                self._count += len(found)
                place = (self._of, label_of(columns, index))
                self._rows.setdefault(place, []).extend((found + self._first + 1).tolist())

    def sentence(self) -> str | None:
        """What to tell; None where there is nothing."""
        if not self._count:
            return None
        shown = [_place(of, label, rows) for (of, label), rows in list(self._rows.items())[:_MOST_COLUMNS]]
        if len(self._rows) > len(shown):
            shown.append("...")
        said = (
            "1 value is beyond its column's range and counts as the end"
            if self._count == 1
            else f"{self._count} values are beyond their columns' ranges and count as the ends"
        )
        return f"{said}: {', '.join(shown)}"


def _place(of: str, label: str, rows: list[int]) -> str:
    told = [str(row) for row in rows[:_MOST_ROWS]] + (["..."] if len(rows) > _MOST_ROWS else [])
    within = f" of {of}" if of else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(told)}{within} ({label})"


#: Columns, and rows of one, that are named.
_MOST_COLUMNS, _MOST_ROWS = 6, 8


def width_of(columns: tuple[Column, ...]) -> int:
    """How many elements a row has."""
    return sum(column.width for column in columns)


def _are_codes(columns: tuple[Column, ...]) -> bool:
    return all(column.coding is Coding.CODE for column in columns)


def encode(columns: tuple[Column, ...], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of shape (n, columns) as elements of shape (n, `width_of`): those of each column one after another.

    Codes are one for each column, and behind them one more for each with missing numbers: a missing number is low in
    its column's place, and high in the codes behind.
    """
    if not _are_codes(columns):
        return np.concatenate([column.elements(rows[:, index]) for index, column in enumerate(columns)], axis=1)
    codes = [column.codes(rows[:, index]) for index, column in enumerate(columns)]
    high = [
        np.where(np.isnan(rows[:, index]), column.high, codes[index])
        for index, column in enumerate(columns)
        if column.missing
    ]
    return np.stack([*codes, *high], axis=1).astype(np.float32)


def decode(columns: tuple[Column, ...], elements: NDArray[np.float32]) -> NDArray[np.float32]:
    """What `encode` made elements of, rounded to the columns' units."""
    rows = np.empty((len(elements), len(columns)), np.float32)
    if not _are_codes(columns):
        for index, part in enumerate(parts_of(columns)):
            rows[:, index] = columns[index].numbers(elements[:, part])
        return rows
    whole = np.rint(elements).astype(np.int64)
    for index, column in enumerate(columns):
        rows[:, index] = column.values(whole[:, index])
        if column.missing:
            rows[whole[:, index] == 0, index] = np.nan
    return rows


def parts_of(columns: tuple[Column, ...]) -> list[slice]:
    """Which elements are each column's, where none is a code."""
    ends = list(accumulate(column.width for column in columns))
    return [slice(end - column.width, end) for column, end in zip(columns, ends, strict=True)]


def high_place(columns: tuple[Column, ...], index: int) -> int:
    """Where among a row's codes a missing number of a column is high."""
    return len(columns) + sum(column.missing for column in columns[:index])
