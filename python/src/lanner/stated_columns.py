"""What a model's owner says of a table's columns: their names, which may lack numbers, and what numbers stand for."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from lanner.columns import StatedColumn
from lanner.errors import MisuseError, option_named, spelled
from lanner.files import check_file, why

#: Columns as the option has them: text, a path, or a list of names or of objects.
StatedColumns: TypeAlias = str | Path | Sequence[str | Mapping[str, object]]

#: The most bytes of a name or of a category, and the most categories of a column; the native module has them, too.
MOST_BYTES, MOST_CATEGORIES = 256, 4096

_FIX = (
    "write ⟦columns=age,sex⟧, or give a .csv file with a header, or a .json file with a list of "
    '{"name": "age", "missing": true, "categories": ["no", "yes"]}'
)
_FIELDS = ("name", "missing", "categories")


def read_columns(given: StatedColumns | None) -> tuple[StatedColumn, ...]:
    """Columns from text with commas between the names, from the path of a file, or from a list; none where not given.

    Raises:
        MisuseError: If they are written otherwise, a name is there twice, or a file cannot be read.
    """
    if given is None:
        return ()
    if isinstance(given, str | Path):
        suffix = Path(given).suffix.lower()
        if isinstance(given, Path) or suffix in (".csv", ".json"):
            return _of_file(Path(given), suffix)
        return check_stated([StatedColumn(name.strip()) for name in given.split(",")], option_named("columns"))
    if not isinstance(given, Sequence):
        what = f"a {type(given).__name__} is no list of columns"
        raise MisuseError(what, where=option_named("columns"), fix=spelled(_FIX))
    return _listed(given, option_named("columns"))


def _of_file(path: Path, suffix: str) -> tuple[StatedColumn, ...]:
    check_file(path, MisuseError)
    try:
        if suffix == ".json":
            document: Any = json.loads(path.read_text(encoding="utf-8-sig"))
        else:
            with path.open(newline="", encoding="utf-8-sig") as file:
                document = [field.strip() for field in next(filter(None, csv.reader(file)), [])]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        what = f"no columns can be read from it ({why(error)})"
        raise MisuseError(what, where=str(path), fix=spelled(_FIX)) from None
    if not isinstance(document, list):
        raise MisuseError("it is no list of columns", where=str(path), fix=spelled(_FIX))
    return _listed(document, str(path))


def _listed(given: Sequence[object], where: str) -> tuple[StatedColumn, ...]:
    return check_stated([_column(each, place, where) for place, each in enumerate(given, 1)], where)


def _column(given: object, place: int, where: str) -> StatedColumn:
    if isinstance(given, str):
        return StatedColumn(given)
    if not isinstance(given, Mapping):
        raise MisuseError(f"column {place} is neither a name nor an object", where=where, fix=spelled(_FIX))
    unknown = next((field for field in given if field not in _FIELDS), None)
    if unknown is not None:
        fix = f"leave it out; a column has {', '.join(_FIELDS)}"
        raise MisuseError(f"column {place} has the unknown field {unknown!r}", where=where, fix=fix)
    name, missing, categories = given.get("name"), given.get("missing", False), given.get("categories")
    if not isinstance(name, str):
        raise MisuseError(f"column {place} has no name", where=where, fix=spelled(_FIX))
    if not isinstance(missing, bool):
        raise MisuseError(f"`missing` of column {name} is neither true nor false", where=where, fix=spelled(_FIX))
    if categories is None:
        return StatedColumn(name, missing)
    listed = isinstance(categories, Sequence) and not isinstance(categories, str)
    if not listed or not all(isinstance(each, str) for each in categories):
        raise MisuseError(f"`categories` of column {name} are no list of texts", where=where, fix=spelled(_FIX))
    return StatedColumn(name, missing, tuple(categories))


def check_stated(columns: Sequence[StatedColumn], where: str) -> tuple[StatedColumn, ...]:
    """The columns, whose names and categories are bounded and no two alike.

    Raises:
        MisuseError: If they are not; `where` says who states them.
    """
    _check_texts([column.name for column in columns], "column", "", where)
    for column in columns:
        if column.categories is None:
            continue
        count = len(column.categories)
        if not 1 <= count <= MOST_CATEGORIES:
            what = f"column {column.name} has {count} categories"
            raise MisuseError(what, where=where, fix=f"give 1 to {MOST_CATEGORIES}, or leave them out")
        _check_texts(column.categories, "category", f" of column {column.name}", where)
    return tuple(columns)


def _check_texts(texts: Sequence[str], what: str, of: str, where: str) -> None:
    seen = set[str]()
    for place, text in enumerate(texts, 1):
        size = len(text.encode("utf-8", "surrogatepass"))
        if not text.strip() or size > MOST_BYTES:
            said = f"has {size} bytes" if text.strip() else "is empty"
            raise MisuseError(f"{what} {place}{of} {said}", where=where, fix=f"give each 1 to {MOST_BYTES} bytes")
        if text in seen:
            raise MisuseError(f"{what} {text!r}{of} is there twice", where=where, fix="give each once")
        seen.add(text)
