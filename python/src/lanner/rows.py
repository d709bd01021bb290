"""Rows of CSV: one input in each line, numbers with commas between them, and perhaps a header.

A header of names is told from inputs by itself. One of numbers, as of a table whose columns have no names, looks like
an input, so a first line that is written otherwise than those behind it is refused until its owner says which it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.errors import InputError
from lanner.wording import counted

#: What to do about a first line that is a header, and about one that may be one, where files are named by a user.
HEADER_FIXES = (
    "leave this line out, or pass --csv-header (in Python csv_header=True)",
    "pass --csv-header if it is one, or --no-csv-header if it is an input (in Python csv_header=True or False)",
)


class TextError(InputError):
    """A header, or a field that is no number: to a model whose columns have names or categories it may be right."""


class NoNumbersError(csv.Error):
    """The first lines have no numbers."""


def read_rows(
    lines: Iterable[str], where: str, header: bool | None = None, fixes: tuple[str, str] = HEADER_FIXES
) -> list[list[float]]:
    """The rows of comma-separated numbers, all of one length; blank lines are skipped.

    Args:
        lines: The lines of the file.
        where: What errors call it.
        header: Whether the first row is a header, which is left out; None where nobody said so.
        fixes: What to do about a header, and about what may be one, where `header` is None.

    Raises:
        InputError: If they are no numbers, not of equal length, or none, or the first may be a header; `where` and the
            place are named, what stands there is not.
        csv.Error: If they are something else than rows: no CSV, or without a number in the first two lines.
    """
    reader = csv.reader(lines)
    if header and next(filter(None, reader), None) is None:
        raise no_rows(where)
    first: FirstRow | None = None
    rows: list[list[float]] = []
    for fields in filter(None, reader):
        place = f"{where}, line {reader.line_num}"
        if first is None:
            if not _has_numbers(fields):
                raise _no_row(fields, next(filter(None, reader), []), place, fixes[0])
            first = FirstRow(fields, place)
        else:
            first.compare(fields)
        rows.append([_number(field, number, place) for number, field in enumerate(fields, 1)])
    if first is None:
        raise no_rows(where)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(
                f"row {number} has {counted(len(row), 'value')}, row 1 has {len(rows[0])}",
                where=where,
                fix="give rows of equal length",
            )
    if header is None and first.may_be_header(rows):
        raise InputError("this line may be a header of numbers", where=first.place, fix=fixes[1])
    return rows


class FirstRow:
    """How the first row is written, beside the others."""

    def __init__(self, fields: Sequence[str], place: str) -> None:
        self.place = place
        self._whole = len(set(fields)) == len(fields) and not any(_POINTED.search(field) for field in fields)
        self._others_pointed = True

    def compare(self, fields: Sequence[str]) -> None:
        """Look at another row."""
        if self._whole and self._others_pointed:
            self._others_pointed = all(_POINTED.search(field) for field in fields)

    def may_be_header(self, rows: Sequence[Sequence[float]]) -> bool:
        """Whether the first of the rows stands out as names of columns do.

        Either it has distinct whole numbers without a decimal point, and no other number is without one; or its
        numbers count, by any step, and those of another row do not.
        """
        if len(rows) == 1:
            return False
        written_otherwise = self._whole and self._others_pointed
        return written_otherwise or (_counts(rows[0]) and not all(map(_counts, rows[1:])))


def _counts(row: Sequence[float]) -> bool:
    """Whether three or more numbers ascend by the same step."""
    with np.errstate(all="ignore"):
        steps: NDArray[np.float64] = np.diff(np.asarray(row, np.float64))
        return len(row) >= _COUNTED and bool(steps[0] > 0 and np.all(np.abs(steps - steps[0]) <= 1e-6 * steps[0]))


def no_rows(where: str) -> InputError:
    """The error of a file without rows."""
    return InputError("there are no rows", where=where, fix="give one input a row")


def _no_row(first: Sequence[str], second: Sequence[str], where: str, fix: str) -> Exception:
    """The error of a first row without numbers, by the row behind it."""
    if not any(map(str.strip, first)):
        return _no_number(first[0], 1, where)
    if _has_numbers(second):
        return header_error(where, fix)
    return NoNumbersError("its first lines have no numbers")


def header_error(where: str, fix: str) -> InputError:
    """The error of a header where numbers are needed."""
    return TextError("this is a header", where=where, fix=fix)


def _has_numbers(fields: Sequence[str]) -> bool:
    return any(is_number(field) or _is_odd(field) or _separated(field) for field in fields)


def _number(field: str, number: int, where: str) -> float:
    if not is_number(field):
        raise _no_number(field, number, where)
    return float(field)


def _no_number(field: str, number: int, where: str) -> InputError:
    if not field.strip():
        return TextError(f"field {number} is empty", where=where, fix="give every input all of its numbers")
    if _separated(field):
        return TextError(
            f"field {number} is several numbers",
            where=where,
            fix="put commas between them, not semicolons, tabs or blanks, and decimal points into them",
        )
    if _is_odd(field):
        return TextError(
            f"field {number} has an underscore, or digits other than 0 to 9",
            where=where,
            fix="write numbers with the digits 0 to 9 and nothing between them, as in 1250.5",
        )
    return TextError(
        f"field {number} is no number",
        where=where,
        fix="give numbers alone, with commas between them and a decimal point, without a header",
    )


def _separated(field: str) -> bool:
    """Whether a field is numbers with something else than commas between them."""
    parts = [part for part in re.split(r"[;\s]", field) if part]
    return len(parts) > 1 and all(map(is_number, parts))


def is_number(field: str) -> bool:
    """Whether a field is a number as it is read here."""
    return _NUMBER.fullmatch(field) is not None


def _is_odd(field: str) -> bool:
    """Whether Python alone reads a field as a number: ``1_0`` as 10, and the digits of every script."""
    try:
        float(field)
    except ValueError:
        return False
    return not is_number(field)


_NUMBER = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)\s*", re.IGNORECASE | re.ASCII
)

#: What makes a number one that is not written as whole.
_POINTED = re.compile(r"[.eE]")

#: Of fewer numbers it says nothing that they count.
_COUNTED = 3
