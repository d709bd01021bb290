"""Reads tables by the names of their columns: lines of CSV, objects of JSON, dicts of columns, and data frames.

What is read are numbers, shape (rows, columns), in the order of the model's input: words of a column with categories
become their places, and what says that a number is missing becomes NaN.
"""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.columns import Beyond, Column, StatedColumn, label_of, names_of
from lanner.errors import InputError
from lanner.rows import HEADER_FIXES, FirstRow, header_error, is_number, no_rows
from lanner.wording import counted

#: A table's columns as far as reading needs them.
Columns: TypeAlias = Sequence[Column] | Sequence[StatedColumn]

#: Fields that say that a number is missing, in any case of letters; an empty one does, too.
MISSING = frozenset(("", "na", "nan", "null", "?"))

#: Names that a sentence lists at most.
_MOST_NAMES = 8


class TableWarning(UserWarning):
    """Numbers of a table count as the ends of their columns, or columns of it are left out."""


@dataclass(slots=True)
class Notes:
    """What the owner of a table should know of how it was read; nothing of it is sent.

    Attributes:
        beyond: The numbers that count as the ends of their columns.
        left_out: The names of columns that the model does not read.
        others: How many words of a column are none of its categories, by its label.
    """

    beyond: Beyond = field(default_factory=Beyond)
    left_out: dict[str, None] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """One sentence for each."""
        told = []
        if self.left_out:
            names = _listed([name or "(without a name)" for name in self.left_out])
            one = len(self.left_out) == 1
            told.append(
                f"column {names} is left out: the model does not read it"
                if one
                else f"columns {names} are left out: the model does not read them"
            )
        for label, count in self.others.items():
            words = "1 word is" if count == 1 else f"{count} words are"
            told.append(
                f"{label}: {words} none of its categories, and {'counts' if count == 1 else 'count'} as other words"
            )
        beyond = self.beyond.sentence()
        return told if beyond is None else [*told, beyond]

    def warn(self, stacklevel: int) -> None:
        """Warn of each, where the caller's `stacklevel` is as for `warnings.warn`."""
        for sentence in self.sentences():
            warnings.warn(sentence, TableWarning, stacklevel=stacklevel + 1)


def read_csv(
    lines: Iterable[str],
    columns: Columns,
    where: str,
    header: bool | None = None,
    fixes: tuple[str, str] = HEADER_FIXES,
    notes: Notes | None = None,
) -> NDArray[np.float64]:
    """The rows of comma-separated fields, shape (rows, columns); blank lines are skipped.

    Where the columns have names and the first line has them, columns are picked by these. Else they stand in the
    model's order.

    Args:
        lines: The lines of the file.
        columns: The model's.
        where: What errors call the file.
        header: Whether the first row is a header; None where nobody said so.
        fixes: As for `lanner.rows.read_rows`.
        notes: Gets the columns that are left out.

    Raises:
        InputError: If a name is missing, or a field is neither a number nor one of its column's categories; row and
            column are named, what stands there is not.
        csv.Error: If it is no CSV.
    """
    reader = csv.reader(lines)
    records = filter(None, reader)
    first = [each.strip() for each in next(records, [])]
    place = f"{where}, line {reader.line_num}"
    rows = list(records)
    order = None
    if not first:
        raise no_rows(where)
    if not _is_header(first, columns, header, bool(rows), place, fixes):
        rows.insert(0, first)
    elif names_of(columns) is not None:
        order = _order(first, columns, place, notes)
    found = _rows(rows, columns, where, order, len(first), notes)
    if header is None and order is None:
        told = FirstRow(first, place)
        for fields in rows[1:]:
            told.compare(fields)
        if told.may_be_header(found.tolist()):
            raise InputError("this line may be a header of numbers", where=place, fix=fixes[1])
    return found


def _rows(
    rows: Sequence[Sequence[str]],
    columns: Columns,
    where: str,
    order: Sequence[int] | None,
    named: int,
    notes: Notes | None,
) -> NDArray[np.float64]:
    """Rows of fields as numbers; each of the columns stands where `order` says, of as many as are named."""
    if not rows:
        raise no_rows(where)
    width = len(columns) if order is None else named
    for number, fields in enumerate(rows, 1):
        if len(fields) != width:
            takes = f"the model expects {counted(width, 'value')} in a row"
            fix = takes if order is None else f"the header has {width}; give rows of equal length"
            raise InputError(f"row {number} has {counted(len(fields), 'value')}", where=where, fix=fix)
    read = _Cells(columns, where, notes)
    places = list(enumerate(range(width) if order is None else order))
    return np.array(
        [[read.text(index, row, fields[place]) for index, place in places] for row, fields in enumerate(rows, 1)],
        np.float64,
    )


def read_objects(
    given: object, columns: Columns, input_name: str, where: str, notes: Notes | None = None
) -> NDArray[np.float64] | None:
    """Rows of objects, columns by name, or lists with words and missing numbers; None of anything else.

    Args:
        given: A list of objects ``{"age": 41}``, an object ``{"age": [41]}``, rows as lists, or a data frame.
        columns: The model's.
        input_name: The name of the input that is the table.
        where: What errors call it.
        notes: Gets the columns that are left out.

    Raises:
        InputError: As `read_csv`.
    """
    names = names_of(columns)
    frame = _frame(given)
    if frame is not None:
        texts = all(isinstance(name, str) for name in frame)
        if names is not None and texts:
            return _by_name(frame, columns, where, notes)
        return _by_column(list(frame.values()), columns, where, notes)
    if isinstance(given, Mapping):
        held = next((given[name] for name in (input_name, "x") if name in given), None)
        if names is not None and (set(given) & set(names)) and not (len(given) == 1 and _is_rows(held)):
            return _by_name(given, columns, where, notes)
        return _in_rows(held, columns, where, notes) if len(given) == 1 and held is not None else None
    if isinstance(given, list | tuple) and given and all(isinstance(each, Mapping) for each in given):
        if names is None:
            fix = "give rows as lists, in the order of the model's input"
            raise InputError("the columns of the model have no names", where=where, fix=fix)
        return _of_objects(given, columns, where, notes)
    return _in_rows(given, columns, where, notes)


def is_frame(given: object) -> bool:
    """Whether something is a data frame, as pandas and polars have them."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__") and hasattr(given, "to_numpy")


def stated_by(frame: object) -> tuple[StatedColumn, ...]:
    """The columns of a data frame whose names are all text, with the categories that pandas has of them, else none."""
    held = _frame(frame) or {}
    if not held or not all(isinstance(name, str) and name.strip() for name in held):
        return ()
    return tuple(StatedColumn(name, categories=_categories(column)) for name, column in held.items())


def _categories(column: object) -> tuple[str, ...] | None:
    known = getattr(getattr(column, "cat", None), "categories", None)
    texts = None if known is None or callable(known) else list(known)
    return tuple(texts) if texts and all(isinstance(text, str) for text in texts) else None


def _frame(given: object) -> dict[Any, Any] | None:
    """The columns of a data frame by name."""
    if not is_frame(given):
        return None
    frame: Any = given
    names = list(frame.columns)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"column {twice} of the data frame is there twice", fix="give each column once")
    return {name: frame[name] for name in names}


def _is_header(
    first: list[str], columns: Columns, header: bool | None, others: bool, place: str, fixes: tuple[str, str]
) -> bool:
    """Whether the first row of a file is a header; `others` is whether rows follow."""
    if header is not None:
        return header
    names = set(names_of(columns) or ())
    read = _Cells(columns, place)
    is_row = len(first) == len(columns) and all(read.reads(index, text) for index, text in enumerate(first))
    if names and names <= set(first):
        if is_row and others:
            raise InputError("this line may be a header", where=place, fix=fixes[1])
        return not is_row
    if is_row:
        return False
    if names & set(first) or (names and not any(map(is_number, first))):
        return True
    if not any(map(is_number, first)) and not all(text.casefold() in MISSING for text in first):
        raise header_error(place, fixes[0])
    return False


def _order(found: list[str], columns: Columns, where: str, notes: Notes | None) -> list[int]:
    """Where each of the model's columns stands among names."""
    names = names_of(columns) or ()
    lacking = [name for name in names if name not in found]
    if lacking:
        which = f"column{'s' if len(lacking) > 1 else ''} {_listed(lacking)}"
        fix = f"the model reads {_listed(names)}"
        raise InputError(f"{which} {'are' if len(lacking) > 1 else 'is'} not there", where=where, fix=fix)
    twice = next((name for name in names if found.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"column {twice} is there twice", where=where, fix="give each column once")
    if notes is not None:
        notes.left_out |= {name: None for name in found if name not in names}
    return [found.index(name) for name in names]


def _by_name(given: Mapping[Any, Any], columns: Columns, where: str, notes: Notes | None) -> NDArray[np.float64]:
    found = [str(name) for name in given]
    by_place = list(given.values())
    return _by_column([by_place[place] for place in _order(found, columns, where, notes)], columns, where, notes)


def _by_column(held: Sequence[Any], columns: Columns, where: str, notes: Notes | None) -> NDArray[np.float64]:
    """Columns, each a list or an array, or all of them a single field."""
    if len(held) != len(columns):
        fix = f"the model reads {counted(len(columns), 'column')}"
        raise InputError(f"there are {counted(len(held), 'column')}", where=where, fix=fix)
    arrays = [np.asarray(each) if _is_plain(each) else np.array(_fields(each), object) for each in held]
    sizes = sorted({each.shape for each in arrays})
    if len(sizes) > 1 or len(sizes[0]) > 1:
        raise InputError("the columns are not lists of equal length", where=where, fix="give each as many numbers")
    read = _Cells(columns, where, notes)
    return np.stack([read.column(index, each.reshape(-1)) for index, each in enumerate(arrays)], axis=1)


def _is_plain(column: object) -> bool:
    """Whether a column is an array of numbers."""
    return getattr(getattr(column, "dtype", None), "kind", "O") in "biuf" and isinstance(np.asarray(column), np.ndarray)


def _fields(column: object) -> Any:  # noqa: ANN401 - a list, or one field
    if isinstance(column, str | int | float | None) or not hasattr(column, "__iter__"):
        return column
    return list(column)


def _of_objects(
    given: Sequence[Mapping[Any, Any]], columns: Columns, where: str, notes: Notes | None
) -> NDArray[np.float64]:
    read, rows = _Cells(columns, where, notes), []
    for number, each in enumerate(given, 1):
        found = [str(name) for name in each]
        values = list(each.values())
        order = _order(found, columns, f"{where}, row {number}", notes)
        rows.append([read.value(index, number, values[place]) for index, place in enumerate(order)])
    return np.array(rows, np.float64)


def _is_rows(held: object) -> bool:
    """Whether something is a list of lists, or an array of rows."""
    if isinstance(held, list | tuple):
        return bool(held) and isinstance(held[0], list | tuple)
    return getattr(held, "ndim", 0) > 1


def _in_rows(given: object, columns: Columns, where: str, notes: Notes | None) -> NDArray[np.float64] | None:
    """Lists with words or missing numbers among them, shape (rows, columns); None of arrays, and of numbers alone."""
    kind = getattr(getattr(given, "dtype", None), "kind", None)
    if kind in ("O", "U", "S", "T"):
        given = np.asarray(given).tolist()
    if not isinstance(given, list | tuple) or not given:
        return None
    rows = given if _is_rows(given) else [given]
    if not all(isinstance(row, list | tuple) for row in rows):
        return None
    fields = [field for row in rows for field in row]
    if not any(field is None or isinstance(field, str) for field in fields):
        return None
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != len(columns)), None)
    if wrong is not None:
        what = f"row {wrong} has {counted(len(rows[wrong - 1]), 'value')}"
        raise InputError(what, where=where, fix=f"the model expects {counted(len(columns), 'value')} in a row")
    read = _Cells(columns, where, notes)
    return np.array(
        [[read.value(index, number, held) for index, held in enumerate(row)] for number, row in enumerate(rows, 1)],
        np.float64,
    )


class _Cells:
    """Reads the fields of a table, column by column."""

    def __init__(self, columns: Columns, where: str, notes: Notes | None = None) -> None:
        self._columns = columns
        self._where = where
        self._notes = notes
        self._places = [
            {} if column.categories is None else {text: place for place, text in enumerate(column.categories)}
            for column in columns
        ]
        # Where words look like numbers, a number may be either.
        self._numeric = [any(map(is_number, places)) for places in self._places]

    def text(self, index: int, row: int, text: str) -> float:
        """A field of text; `row` counts from 1."""
        found = self._found(index, text)
        if found is None:
            raise self._wrong(index, row)
        column = self._columns[index]
        if column.others and text not in self._places[index] and text.strip() in self._places[index]:
            # The owner's encoder takes it for another word.
            raise InputError(
                f"{label_of(self._columns, index)} has one of its categories with blanks before or behind it",
                where=f"{self._where}, row {row}",
                fix="leave the blanks out",
            )
        if self._notes is not None and column.others and found == len(column.categories or ()):
            label = label_of(self._columns, index)
            self._notes.others[label] = self._notes.others.get(label, 0) + 1
        return found

    def reads(self, index: int, text: str) -> bool:
        """Whether a field of text can be read."""
        return self._found(index, text) is not None

    def value(self, index: int, row: int, held: object) -> float:
        """A field of any type."""
        if isinstance(held, str):
            return self.text(index, row, held)
        number = _number(held)
        if number is None:
            raise self._wrong(index, row)
        # A word that scikit-learn learnt of rows that lacked one is called so in files.
        place = self._places[index].get(f"{number:.15g}")
        if math.isnan(number):
            return number if place is None else float(place)
        known = self._is_known(index, number)
        if place is not None and known and place != number:
            label = label_of(self._columns, index)
            raise InputError(
                f"{label}: the value may be a word or a category's number",
                where=f"{self._where}, row {row}",
                fix='give words as text, as in "1"',
            )
        if place is None and not known:
            raise self._wrong(index, row)
        return number if place is None else float(place)

    def column(self, index: int, held: NDArray[Any]) -> NDArray[np.float64]:
        """A whole column; an array of numbers at once."""
        if held.dtype.kind in "biuf" and self._columns[index].categories is None:
            return held.astype(np.float64)
        return np.array([self.value(index, row, each) for row, each in enumerate(held.tolist(), 1)], np.float64)

    def _found(self, index: int, text: str) -> float | None:
        stripped = text.strip()
        for known in (text, stripped):
            if known in self._places[index]:
                return float(self._places[index][known])
        if stripped.casefold() in MISSING:
            return math.nan
        if self._columns[index].others:
            return float(len(self._places[index]))
        if not is_number(stripped) or self._numeric[index]:
            return None
        number = float(stripped)
        return number if self._is_known(index, number) else None

    def _is_known(self, index: int, number: float) -> bool:
        """Whether a number is one of the column's, which those of categories are not beyond these."""
        choices = self._columns[index].choices
        return not choices or math.isnan(number) or (number.is_integer() and 0 <= number < choices)

    def _wrong(self, index: int, row: int) -> InputError:
        """The error of a field; what stands there is told to nobody, not even by its owner's terminal or log."""
        place, label = f"{self._where}, row {row}", label_of(self._columns, index)
        if self._places[index]:
            fix = f"give one of {_listed(self._columns[index].categories or ())}"
            return InputError(f"{label} has a field that is none of its categories", where=place, fix=fix)
        fix = "give a number with a decimal point, or leave the field empty where it is missing"
        return InputError(f"{label} has a field that is no number", where=place, fix=fix)


def _number(held: object) -> float | None:
    """A field that is no text as a number, NaN where it is missing; None where it is neither."""
    if held is None or type(held).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(held, bool | int | float | np.number | np.bool_):
        try:
            return float(held)
        except (OverflowError, TypeError):
            return None
    return None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown}, ..." if len(names) > _MOST_NAMES else shown
