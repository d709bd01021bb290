"""Reads and checks inputs: files into float32 samples of the model's own shape, all before anything is sent.

A sample has the shape of the ONNX input without its batch axis, and its layout (channels last too). A file or an array
may hold one sample, or several with a leading batch axis.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.columns import Beyond
from lanner.columns import parts_of as column_parts
from lanner.errors import InputError
from lanner.files import check_file, why
from lanner.images import ImageDescription, open_image
from lanner.manifest import InputDescription, Manifest
from lanner.named import Given, encode_inputs, only_table, parts_of, tables_of
from lanner.rows import HEADER_FIXES, NoNumbersError, TextError, read_rows
from lanner.tables import Columns, Notes, read_csv, read_objects
from lanner.texts import LINES, read_lines, texts_of
from lanner.wording import counted

PICTURES = (".png", ".jpg", ".jpeg")
NUMPY = (".npy", ".npz")
TABLES = (*NUMPY, ".csv", ".json")

#: What a file or a user gives: an array, or arrays by name.
Arrays: TypeAlias = "NDArray[np.float32] | dict[str, NDArray[np.float32]]"

#: The name of the one array in a ``.npz`` file.
_ONLY = "x"

#: Samples of a file that are in memory at once where it is read as it is used.
ROWS = 256


@dataclass(frozen=True, slots=True)
class Source:
    """A file whose contents are readable and numeric; whether they fit a model is not checked yet.

    Attributes:
        path: The file.
        values: Its float32 contents, an array or several by name; for a ``.csv`` file (rows, columns); None for a
            picture, and for what only a table's columns make numbers of.
        text: What a ``.csv`` or ``.json`` file holds, which a table's columns are read from.
        header: Whether the first row of a ``.csv`` file is a header; None where nobody said so.
        error: Why there are no values, for models without columns.
        lines: Texts, one a line.
    """

    path: Path
    values: Arrays | None
    text: str | None = None
    header: bool | None = None
    error: InputError | None = None
    lines: tuple[str, ...] | None = None

    @property
    def is_picture(self) -> bool:
        """Whether the file is a picture."""
        return self.path.suffix.lower() in PICTURES

    @property
    def is_given(self) -> bool:
        """Whether it is a text of a command line, and stands in no file."""
        return self.path == _GIVEN


#: What stands for the file of a text that is in none.
_GIVEN = Path("text")


@dataclass(frozen=True, slots=True)
class Table:
    """An input whose columns are known, so that a header, a data frame or an object may name them.

    Attributes:
        name: The input.
        columns: The columns.
        shape: The shape of a row.
    """

    name: str
    columns: Columns
    shape: tuple[int, ...]


def table_of(entry: InputDescription) -> Table | None:
    """The table that is a model's only input; None where there is none, or nothing is known of its columns."""
    if entry.columns:
        return Table(entry.name, entry.columns, entry.shape)
    table = only_table(entry.named)
    return None if table is None else Table(table.name, table.columns or (), table.shape)


@dataclass(frozen=True, slots=True)
class Sample:
    """One checked input: the file it came from, if any, its place there, and its values in the model's shape."""

    source: str | None
    index: int
    values: NDArray[np.float32]


def samples_of(x: NDArray[np.float32]) -> list[Sample]:
    """Inputs from no file, shape (n, *the model's shape)."""
    return [Sample(None, index, values) for index, values in enumerate(x)]


def read_sources(paths: Sequence[Path], csv_header: bool | None = None) -> list[Source]:
    """Read files as far as it can be done without knowing the model. A folder stands for the files in it.

    `csv_header` says whether the first row of a ``.csv`` file is a header; see `lanner.rows.read_rows`.

    Raises:
        InputError: If a file is missing, unreadable, of an unknown kind, not numeric, or not finite; or there is none.
    """
    return [_read_source(file, csv_header) for path in paths for file in _files_of(path)]


def text_source(text: str) -> Source:
    """A text that stands in no file."""
    return Source(_GIVEN, None, lines=(text,))


def fit_sources(sources: Sequence[Source], manifest: Manifest) -> list[Sample]:
    """Check files against a model and cut them into samples.

    Raises:
        InputError: If a shape or a range does not fit, or a picture is given to a model that describes none.
    """
    notes = Notes()
    several = len(sources) > 1
    samples = [sample for source in sources for sample in _fit_source(source, manifest, notes, several)]
    notes.warn(stacklevel=2)
    return samples


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files that paths stand for, a folder for those in it; each is there and of a known kind.

    Raises:
        InputError: If a file is missing or of an unknown kind, or a folder has none.
    """
    files = [file for path in paths for file in _files_of(path)]
    for file in files:
        _check_kind(file)
    return files


def each_sample(files: Sequence[Path], manifest: Manifest, csv_header: bool | None = None) -> Iterator[Sample]:
    """The samples of files, checked against a model one after the other as they are asked for.

    Of a ``.npy`` file no more than `ROWS` samples are in memory at once. `csv_header` is as for `read_sources`.

    Raises:
        InputError: As `read_sources` and `fit_sources`, when its turn comes.
    """
    for file in files:
        if file.suffix.lower() == ".npy":
            yield from _each_row(file, manifest)
        else:
            yield from fit_sources([_read_source(file, csv_header)], manifest)


def stack_sources(
    sources: Sequence[Source], entry: InputDescription, image: ImageDescription | None, model: str
) -> NDArray[np.float32]:
    """Files as one batch of a model's input, shape (n, *sample); no range is checked.

    Raises:
        InputError: If a shape does not fit, or a picture is given without a description of pictures; `model` is named.
    """
    notes = Notes()
    batches = [_batch_of(source, entry, image, model, notes, len(sources) > 1) for source in sources]
    notes.warn(stacklevel=2)
    return np.concatenate(batches)


def stack_tables(sources: Sequence[Source], table: Table) -> NDArray[np.float32]:
    """Files as rows of a table, shape (n, columns), whose numbers are as the files have them.

    Raises:
        InputError: If a file holds something else.
    """
    notes, found = Notes(), []
    for source in sources:
        values = _table_of(source, table, notes, _UNNAMED)
        rows = values.get(table.name, values.get(_ONLY)) if isinstance(values, dict) else values
        if rows is None or rows.shape[-1:] != table.shape:
            fix = f"the model expects rows of {counted(table.shape[0], 'value')}"
            raise InputError("it has no rows of the model's columns", where=str(source.path), fix=fix)
        found.append(rows.reshape(-1, *table.shape))
    notes.warn(stacklevel=2)
    return np.concatenate(found)


def load_arrays(path: Path) -> Arrays:
    """Read the array of a ``.npy`` file, or those of a ``.npz`` file by name, as float32.

    Where the samples are `x`, what else is no numbers is left out; `y` may be what is true of them, or another input.

    Raises:
        InputError: If it cannot be read, is not numeric, or is not finite.
    """
    loaded = _load_numpy(path)
    if not isinstance(loaded, dict):
        return to_float32(loaded, str(path), missing=True)
    labelled = _ONLY in loaded and "y" in loaded and not _are_numbers(loaded["y"])
    used = {name: values for name, values in loaded.items() if not (labelled and name == "y")}
    return {name: to_float32(values, f"{path}, {name}", missing=True) for name, values in used.items()}


def _are_numbers(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isfinite(values).all())


def load_truth(path: Path) -> NDArray[Any]:
    """Read ``y`` of a ``.npz`` file: what is true of each sample, numbers or names of classes.

    Raises:
        InputError: If it is absent, or has no axis of samples.
    """
    if path.suffix.lower() == ".npy":
        raise InputError("there are no labels in a .npy file", where=str(path), fix="give a .npz file with `x` and `y`")
    loaded = _load_numpy(path, "y")
    if not isinstance(loaded, dict) or "y" not in loaded:
        held = ", ".join(loaded) or "nothing"
        raise InputError(f"there is no `y` in it but {held}", where=str(path), fix="name the array `y`")
    truth = np.asarray(loaded["y"])
    if truth.ndim == 0:
        raise InputError("`y` is a single value", where=str(path), fix="give one for each sample")
    return truth


def to_float32(values: object, where: str = "input", *, missing: bool = False) -> NDArray[np.float32]:
    """Convert a numeric array to float32; with `missing`, NaN and infinities stay, which `as_batch` looks at.

    Raises:
        InputError: If the type is not numeric, or an element is NaN, infinite or beyond float32; the element is named.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("the lists are not of equal length", where=where, fix="give as many in each") from None
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"the values are of type {array.dtype}, not numbers", where=where, fix="give integers or floats"
        )
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(converted) | ~np.isfinite(array) if missing else np.isfinite(converted)
    if not finite.all():
        place = tuple(map(int, np.argwhere(~finite)[0]))
        # A number of the input is told to nobody, not even by its owner's terminal or log.
        told = "beyond float32" if np.isfinite(array[place]) else str(array[place])
        raise InputError(f"element {list(place)} is {told}", where=where, fix="give finite numbers within float32")
    return converted


def batch_of(given: Given, entry: InputDescription, where: str = "input") -> NDArray[np.float32]:
    """What a user gives, an array or arrays by name, as samples of shape (n, *the model's), n >= 1.

    Of a table that may be a data frame, columns by name, or objects, too; a `TableWarning` tells what counts as the
    ends of columns, and what is left out.

    Raises:
        InputError: As `to_float32` and `as_batch`.
    """
    notes = Notes()
    if entry.text is not None and (texts := texts_of(given)) is not None:
        return as_batch(entry.text.arrays(texts, where), entry, where)
    batch = as_batch(arrays_of(given, entry, where, notes), entry, where, notes.beyond)
    notes.warn(stacklevel=3)
    return batch


def arrays_of(given: Given, entry: InputDescription, where: str = "input", notes: Notes | None = None) -> Arrays:
    """What a user gives as an array, or arrays by name; of a table what `batch_of` takes.

    Raises:
        InputError: As `to_float32`, or as `lanner.tables.read_objects`.
    """
    table = table_of(entry)
    rows = None if table is None else read_objects(given, table.columns, table.name, where, notes)
    if rows is not None:
        return to_float32(rows, where, missing=True)
    if isinstance(given, Mapping):
        return {name: to_float32(values, f"input {name}", missing=True) for name, values in given.items()}
    return to_float32(given, where, missing=True)


def as_batch(
    values: Arrays, entry: InputDescription, where: str = "input", beyond: Beyond | None = None
) -> NDArray[np.float32]:
    """Give an array, or arrays by name, the shape (n, *sample), n >= 1; what has been given it stays.

    `beyond` is told of a table's numbers that count as the ends of their columns.

    Raises:
        InputError: If a shape is neither the sample's nor a batch of it, where both are named, an array is missing, or
            an element is NaN or infinite that is none of a table's columns.
    """
    _check_finite(values, entry, where)
    if entry.named:
        coded = entry.shape != own_shape(entry) or len(entry.named) > 1
        if coded and not isinstance(values, Mapping) and values.ndim > 0 and values.shape[1:] == entry.shape:
            return values
        if not isinstance(values, Mapping):
            values = {_only_name(entry, where): values}
        elif len(entry.named) == 1 and entry.named[0].name not in values and _ONLY in values:
            values = {entry.named[0].name: values[_ONLY]}
        if _ONLY in values and all(each.name != "y" for each in entry.named):
            values = {name: array for name, array in values.items() if name != "y"}
        return encode_inputs(entry.named, values, where, beyond).reshape(-1, *entry.shape)
    if isinstance(values, Mapping):
        values = _single(values, entry, where)
    if values.shape == entry.shape:
        return values[np.newaxis]
    if values.shape[1:] == entry.shape and values.ndim == len(entry.shape) + 1 and len(values) > 0:
        return values
    raise InputError(
        f"the shape is {values.shape}",
        where=where,
        fix=f"the model expects {entry.shape}, or {('n', *entry.shape)} for several".replace("'", ""),
    )


def _check_finite(values: Arrays, entry: InputDescription, where: str) -> None:
    tables = tables_of(entry.named)
    by_name = values.items() if isinstance(values, Mapping) else [("", values)]
    for name, array in by_name:
        finite = np.isfinite(array)
        if finite.all() or name in tables or (len(entry.named) == len(tables) == 1):
            continue
        place = tuple(map(int, np.argwhere(~finite)[0]))
        # A number of the input is told to nobody, not even by its owner's terminal or log.
        of = f"{where}, {name}" if name and where != "input" else f"input {name}" if name else where
        raise InputError(f"element {list(place)} is {array[place]}", where=of, fix="give finite numbers within float32")


def check_range(values: NDArray[np.float32], entry: InputDescription, where: str = "input") -> None:
    """Check that every element is in the range that the model accepts.

    Raises:
        InputError: Naming the place of the first element that is not, and the limits; its value is the client's alone.
    """
    place = entry.outside(values)
    if place is not None:
        least, most = (np.broadcast_to(end, values.shape)[place] for end in entry.limits())
        if entry.named:
            raise _named_outside(entry, place, (float(least), float(most)))
        of = "" if entry.features is None else f" of feature {place[entry.features.axis - len(entry.shape)]}"
        raise InputError(
            f"element {list(place)} is outside the accepted range{of} [{least:.6g}, {most:.6g}]",
            where=where,
            fix="scale the input as the model's owner did, or have the model compiled for such inputs",
        )


def _only_name(entry: InputDescription, where: str) -> str:
    """The name of the one input that an array without a name is.

    Raises:
        InputError: If there are several.
    """
    if len(entry.named) > 1:
        shown = ", ".join(f"{each.name} {each.shape}" for each in entry.named)
        raise InputError(
            f"the model has {len(entry.named)} inputs, and this is one array",
            where=where,
            fix=f"give {shown} by name: a .npz or .json file, or a dict in Python",
        )
    return entry.named[0].name


def _single(values: Mapping[str, NDArray[np.float32]], entry: InputDescription, where: str) -> NDArray[np.float32]:
    """The array of a model with one input: `x`, or the input's own name."""
    found = values.get(_ONLY, values.get(entry.name))
    if found is None:
        held = ", ".join(values) or "nothing"
        fix = f"name the array `{_ONLY}`, or as the input, `{entry.name}`"
        raise InputError(f"there is no `{_ONLY}` in it but {held}", where=where, fix=fix)
    return found


def _named_outside(entry: InputDescription, place: tuple[int, ...], limits: tuple[float, float]) -> InputError:
    """The error of a number that is not accepted, by the input whose it is."""
    index = int(np.ravel_multi_index(place[1:], entry.shape))
    named, part = next((each, part) for each, part in parts_of(entry.named) if index < part.stop)
    at = index - part.start
    if named.columns is not None and len(named.shape) == 1:
        # Columns take different numbers of elements.
        column = next(place for place, cells in enumerate(column_parts(named.columns)) if at < cells.stop)
        within: Sequence[Any] = (column,)
    else:
        within = np.unravel_index(at // named.width, named.shape) if named.shape else ()
    least, most = (end / named.factor for end in limits)
    return InputError(
        f"element {[place[0], *map(int, within)]} is outside the accepted range [{least:.6g}, {most:.6g}]",
        where=f"input {named.name}",
        fix="scale the input as the model's owner did, or have the model compiled for such inputs",
    )


def _read_source(path: Path, csv_header: bool | None) -> Source:
    suffix = path.suffix.lower()
    _check_kind(path)
    if suffix in PICTURES:
        open_image(path)
        return Source(path, None)
    if suffix in LINES:
        return Source(path, None, lines=read_lines(path))
    if suffix not in (".csv", ".json"):
        return Source(path, load_arrays(path))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(error, suffix, str(path)) from None
    try:
        values = read_json(text, str(path)) if suffix == ".json" else _read_csv(text, str(path), csv_header)
    except TextError as error:
        return Source(path, None, text, csv_header, error)
    return Source(path, values, text, csv_header)


def _unreadable(error: Exception, suffix: str, where: str, kind: type[InputError] = InputError) -> InputError:
    fix = _JSON if suffix == ".json" else "give comma-separated numbers, one input a row"
    return kind(f"cannot be read as {suffix[1:].upper()} ({why(error)})", where=where, fix=fix)


def read_json(text: str, where: str) -> Arrays:
    """Lists of numbers, or an object of them by name.

    Raises:
        InputError: If it is something else; a `TextError` where that may be a table.
    """
    document = _parsed(text, where)
    if isinstance(document, dict):
        return {str(name): _listed(values, f"{where}, {name}", _JSON) for name, values in document.items()}
    return _listed(document, where, _JSON)


def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON, for ``json.loads``, which would keep the last of the values that one name has.

    Raises:
        ValueError: If a name is there twice.
    """
    names = [name for name, _ in pairs]
    if (repeated := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise ValueError(f"the name {repeated} is there twice")
    return dict(pairs)


def _parsed(text: str, where: str) -> Any:  # noqa: ANN401 - whatever is there
    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read as JSON ({why(error)})", where=where, fix=_JSON) from None


def read_table(
    text: str,
    table: Table,
    where: str,
    *,
    as_json: bool,
    header: bool | None = None,
    fixes: tuple[str, str] = HEADER_FIXES,
    notes: Notes | None = None,
) -> Arrays:
    """What a table's file of CSV or JSON holds: rows in the order of the model's columns, or arrays by name.

    Args:
        text: What is in the file.
        table: The input that is the table.
        where: What errors call the file.
        as_json: Whether it is JSON.
        header: Whether the first row of CSV is a header; None where nobody said so.
        fixes: As for `lanner.rows.read_rows`.
        notes: Gets the columns that are left out.

    Raises:
        InputError: If it does not fit the columns; row and column are named.
        csv.Error: If it is no CSV.
    """
    columns = table.columns
    if not as_json:
        rows = read_csv(io.StringIO(text, newline=""), columns, where, header, fixes, notes)
        return to_float32(rows, where, missing=True)
    found = read_objects(_parsed(text, where), columns, table.name, where, notes)
    return read_json(text, where) if found is None else to_float32(found, where, missing=True)


_JSON = "give an object of lists of numbers by input name, or one list"


def _listed(values: object, where: str, fix: str) -> NDArray[np.float32]:
    try:
        array = np.array(values)
    except (ValueError, OverflowError, RecursionError):
        raise InputError("the lists are not of equal length", where=where, fix=fix) from None
    if array.dtype.kind in "OU":
        raise TextError(
            f"the values are of type {array.dtype}, not numbers", where=where, fix="give integers or floats"
        )
    return to_float32(array, where, missing=True)


_AS_PICTURE = "convert it to .png or .jpg"

#: What to do about well-known kinds that are not read.
_CONVERSIONS = {
    **dict.fromkeys((".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic"), _AS_PICTURE),
    ".dcm": f"{_AS_PICTURE} in the window that the model expects: docs/how-to/classify-pictures.md shows how",
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".parquet"), "export the table as .csv"),
}


def _check_kind(path: Path) -> None:
    check_file(path, InputError)
    suffix, known = path.suffix.lower(), (*TABLES, *PICTURES, *LINES)
    if suffix not in known:
        kind = f"{suffix} files" if suffix else "files without a suffix"
        fix = _CONVERSIONS.get(suffix, f"give {', '.join(known)}")
        raise InputError(f"lanner does not read {kind}", where=str(path), fix=fix)


def _each_row(path: Path, manifest: Manifest) -> Iterator[Sample]:
    """The samples of a ``.npy`` file, which stays on the disk but for those at hand."""
    entry = manifest.input
    values = _load_numpy(path, lazily=True)
    if isinstance(values, dict) or values.shape == own_shape(entry):
        values = np.asarray(values)[np.newaxis]
    notes = Notes()
    for start in range(0, max(len(values), 1), ROWS):
        where = str(path) if start == 0 else f"{path}, from row {start}"
        beyond = notes.beyond.behind(start)
        part = to_float32(values[start : start + ROWS], where, missing=True)
        rows = as_batch(_by_name(part, entry, where), entry, where, beyond)
        check_range(rows, entry, where)
        for index, sample in enumerate(rows, start):
            yield Sample(str(path), index, sample)
    notes.warn(stacklevel=2)


def own_shape(entry: InputDescription) -> tuple[int, ...]:
    """The shape of one sample as a user gives it."""
    return entry.named[0].shape if len(entry.named) == 1 else entry.shape


def _files_of(path: Path) -> list[Path]:
    """The path itself, or a folder's pictures, else its other files of known kinds, by their names.

    Left out are hidden files, folders within, and what lies beside pictures, such as a table of their labels.
    """
    if not path.is_dir():
        return [path]
    visible = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    for kinds in (PICTURES, TABLES, LINES):
        files = [file for file in visible if file.suffix.lower() in kinds]
        if files:
            return files
    known = ", ".join((*TABLES, *PICTURES, *LINES))
    raise InputError("there are no inputs in this folder", where=str(path), fix=f"give {known} files")


def _fit_source(source: Source, manifest: Manifest, notes: Notes, several: bool) -> list[Sample]:
    where = str(source.path)
    batch = _batch_of(source, manifest.input, manifest.image, manifest.name, notes, several)
    check_range(batch, manifest.input, where)
    return [Sample(where, index, values) for index, values in enumerate(batch)]


def _batch_of(
    source: Source,
    entry: InputDescription,
    image: ImageDescription | None,
    model: str,
    notes: Notes,
    several: bool,
) -> NDArray[np.float32]:
    """The samples of a source; `notes` are told which of `several` files they are of."""
    where = str(source.path)
    if (table := table_of(entry)) is not None and source.text is not None:
        beyond = notes.beyond.of(source.path.name if several else "")
        return as_batch(_table_of(source, table, notes), entry, where, beyond)
    if source.is_picture:
        if image is None:
            raise no_pictures(entry, model, where)
        return image.load(source.path, entry.shape)[np.newaxis]
    if source.lines is not None:
        if entry.text is None:
            raise no_texts(model, where, source.lines if source.is_given else ())
        return as_batch(entry.text.arrays(source.lines, where), entry, where)
    values = _values_of(source)
    if source.path.suffix.lower() == ".csv" and not isinstance(values, dict):
        values = fit_rows(values, entry, where)
    return as_batch(_by_name(values, entry, where), entry, where, notes.beyond.of(source.path.name if several else ""))


def _values_of(source: Source) -> Arrays:
    """The numbers of a file.

    Raises:
        InputError: If it has text.
    """
    if source.values is None:
        raise source.error or InputError("it has no numbers", where=str(source.path))
    return source.values


#: What to do about a header of calibration samples, whose columns may get their names by it.
_UNNAMED = (f"pass --columns with its names (in Python columns=), or {HEADER_FIXES[0]}", HEADER_FIXES[1])


def _table_of(source: Source, table: Table, notes: Notes, fixes: tuple[str, str] = HEADER_FIXES) -> Arrays:
    """The rows of a table's file, or its arrays by name."""
    if source.text is None:
        return _values_of(source)
    where, as_json = str(source.path), source.path.suffix.lower() == ".json"
    try:
        return read_table(source.text, table, where, as_json=as_json, header=source.header, fixes=fixes, notes=notes)
    except csv.Error as error:
        raise _unreadable(error, source.path.suffix.lower(), where) from None


def _by_name(values: Arrays, entry: InputDescription, where: str) -> Arrays:
    """What a file holds, by name where the model's inputs have names: no user writes what a client makes of them."""
    if not entry.named or isinstance(values, Mapping):
        return values
    return {_only_name(entry, where): values}


def no_pictures(entry: InputDescription, model: str, where: str) -> InputError:
    """The error of a picture that is given to a model that describes none."""
    shape = str(entry.shape).replace(" ", "")
    row = counted(math.prod(entry.shape), "value")
    return InputError(
        f"model {model} does not describe images", where=where, fix=f"pass .npy of shape {shape}, or CSV of {row} a row"
    )


def no_texts(model: str, where: str, given: Sequence[str] = ()) -> InputError:
    """The error of a text that a model does not read; `given` on a command line, it may be meant as a file's name."""
    name = next((text for text in given if text and " " not in text), None)
    if name is not None:
        return InputError("no such file or folder", where=name, fix="check the path")
    return InputError(
        f"model {model} does not describe texts", where=where, fix="give numbers, or have it compiled with --text"
    )


def fit_rows(rows: NDArray[np.float32], entry: InputDescription, where: str) -> NDArray[np.float32]:
    """Rows, each of which is one sample laid out as the model's input: shape (rows, *sample).

    Raises:
        InputError: If a row has another number of values; both are named.
    """
    if len(entry.named) > 1:
        shown = ", ".join(each.name for each in entry.named)
        fix = f"give {shown} by name: a .npz or .json file"
        raise InputError(f"rows have no names, and the model has {len(entry.named)} inputs", where=where, fix=fix)
    shape = own_shape(entry)
    size = math.prod(shape)
    if rows.shape[1] != size:
        raise InputError(
            f"a row has {counted(rows.shape[1], 'value')}",
            where=where,
            fix=f"the model expects {shape}: {counted(size, 'value')} in a row",
        )
    return rows.reshape(-1, *shape)


def _read_csv(text: str, where: str, header: bool | None) -> NDArray[np.float32]:
    try:
        return to_float32(read_rows(io.StringIO(text, newline=""), where, header), where, missing=True)
    except NoNumbersError as error:
        raise _unreadable(error, ".csv", where, TextError) from None
    except csv.Error as error:
        raise _unreadable(error, ".csv", where) from None


def _load_numpy(path: Path, needed: str = "", *, lazily: bool = False) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The array of a ``.npy`` file, or those of a ``.npz`` file by name. Pickles are never loaded.

    `needed` is the array that must be one of numbers or text; without it, it is `x` where there is one, else all.
    `lazily` leaves what a ``.npy`` file holds on the disk until it is used.
    """
    check_file(path, InputError)
    if path.suffix.lower() not in NUMPY:
        raise InputError(
            f"a file of kind {path.suffix or 'without a suffix'} is not read here",
            where=str(path),
            fix=f"give {' or '.join(NUMPY if not needed else NUMPY[-1:])}",
        )
    member = needed or _ONLY
    try:
        loaded = np.load(path, mmap_mode="r" if lazily else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        arrays = {}
        with loaded:
            for name in loaded.files:
                member = name
                try:
                    arrays[name] = np.asarray(loaded[name])
                except ValueError:
                    if name == (needed or _ONLY) or (needed or _ONLY) not in loaded.files:
                        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(
            f"cannot be read as a NumPy file ({_without_advice(error)})", where=str(path), fix=_remedy(error, member)
        ) from None
    if not needed and _ONLY in arrays:
        return {name: values for name, values in arrays.items() if name == _ONLY or values.dtype.kind in "biuf"}
    return arrays


def _remedy(error: Exception, member: str) -> str:
    if "Object arrays" not in str(error):
        return "write it with numpy.save or numpy.savez"
    # Names of classes come as objects from tables.
    return "save y.astype(str) in its place" if member == "y" else f"save {member}.astype(float) in its place"


def _without_advice(error: Exception) -> str:
    """NumPy's words; where it takes damage for a pickle, it advises to load what must not be loaded."""
    if "Object arrays" in str(error):
        return "it holds objects of Python, not numbers"
    return "its beginning is none" if "pickle" in str(error) else why(error)
