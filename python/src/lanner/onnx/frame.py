"""What an owner says of a file beside its operators: open sizes, inputs that are constants, and outputs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import helper, numpy_helper

from lanner.columns import StatedColumn
from lanner.errors import InputError, MisuseError, option_named, spelled
from lanner.files import check_file, why
from lanner.stated_columns import StatedColumns, read_columns

#: Sizes by the name of an axis, or of an input, whose axes are then all given.
Sizes: TypeAlias = "Mapping[str, int | Sequence[int]]"


@dataclass(frozen=True, slots=True)
class Frame:
    """What an owner says of a file.

    Attributes:
        sizes: Sizes that the file leaves open.
        fixed: Inputs that are the owner's constants.
        outputs: The outputs to compute; empty for the only one.
        samples: The shapes of the calibration's arrays by input, the one array's under ``""``, for refusals' advice.
        largest: The largest magnitude of the calibration's arrays, likewise.
        gains: What outputs' values are multiplied with, by the output's name.
        arrays: The calibration's arrays by input, the one array's under ``""``, for what columns of tables are.
        bounds: How far below 0 a private mask must be that is added to a tensor, by the tensor's name.
        ranged: Whether the owner says which values inputs may have, which then are taken as they are.
        columns: What is said of a table's columns; empty where nothing is.
        needs_table: Whether the file must have a table, since its owner names columns.
        published: Tables of embeddings to publish: their names, or the one of `lanner.embeddings.ALL`.
        publishes_words: Whether the words of encoders may be published, so that clients can number theirs.
        row: The input that a file of words reads in the place of its own; empty of other files.
        classes: How many classes the owner names; 0 where none.
    """

    sizes: Sizes = field(default_factory=dict)
    fixed: Mapping[str, NDArray[np.generic] | str] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    samples: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    ranged: bool = False
    columns: tuple[StatedColumn, ...] = ()
    needs_table: bool = False
    published: Sequence[str] = ()
    publishes_words: bool = False
    row: str = ""
    classes: int = 0

    @property
    def may_lack_numbers(self) -> bool:
        """Whether a sample lacks a number, or the owner says that a column may."""
        stated = any(column.missing for column in self.columns)
        return stated or any(bool(np.isnan(values).any()) for values in self.arrays.values())

    @classmethod
    def of(
        cls,
        shape: str | Sequence[str] | Sizes | None = None,
        fix: str | Sequence[str] | Mapping[str, ArrayLike] | None = None,
        output_name: str | Sequence[str] | None = None,
        columns: StatedColumns | None = None,
        *,
        publishes_words: bool = False,
    ) -> Frame:
        """Read the options ``shape``, ``fix``, ``output_name`` and ``columns``, as text or as Python has them.

        Raises:
            MisuseError: If one is not written as it must be.
        """
        stated = read_columns(columns)
        return cls(
            read_sizes(shape),
            read_fixed(fix),
            _names(output_name),
            columns=stated,
            needs_table=columns is not None,
            publishes_words=publishes_words,
        )

    def apply(self, proto: onnx.ModelProto) -> None:
        """Put the sizes and constants into a model, in place.

        Raises:
            MisuseError: If the file has no such axis or input, or what it says is otherwise.
        """
        for name, size in self.sizes.items():
            _set_size(proto.graph, name, size)
        for name, value in self.fixed.items():
            _fix(proto.graph, name, value)
        if self.sizes or self.fixed:
            # They may state what was open, or what is otherwise now.
            del proto.graph.value_info[:]
            for entry in proto.graph.output:
                for side in list(entry.type.tensor_type.shape.dim)[1:]:
                    side.Clear()


def read_sizes(given: str | Sequence[str] | Sizes | None) -> dict[str, int | tuple[int, ...]]:
    """Sizes from text: ``NAME=1x3x320x320`` of an input, ``axis=320`` of an axis, with commas between several.

    Raises:
        MisuseError: If they are written otherwise, or a size is not positive.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): _size(str(name), size) for name, size in given.items()}
    texts = _texts(given, "shape", _WRITTEN)
    pairs = (_pair(part) for text in texts for part in text.split(","))
    return {name: _size(name, size) for name, size in pairs}


def read_fixed(
    given: str | Sequence[str] | Mapping[str, ArrayLike] | None,
) -> dict[str, NDArray[np.generic] | str]:
    """Constants from text: ``NAME=16000``, or ``NAME=F.npy``, each a text of its own.

    Raises:
        MisuseError: If they are written otherwise.
        InputError: If a file cannot be read.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): _constant(str(name), value) for name, value in given.items()}
    found: dict[str, NDArray[np.generic] | str] = {}
    for text in _texts(given, "fix", _FIXED):
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise _wrong(f"{text!r} is not NAME=VALUE", "fix", _FIXED)
        found[name] = _loaded(Path(value)) if value.endswith(".npy") else value
    return found


_FIXED = "write ⟦fix=sr=16000⟧ or ⟦fix=sr=F.npy⟧"


def _wrong(what: str, option: str, fix: str) -> MisuseError:
    """The error of an option; `fix` may name options in brackets."""
    return MisuseError(what, where=option_named(option), fix=spelled(fix))


def _texts(given: object, option: str, fix: str) -> list[str]:
    """An option's texts, of which it may have one or several.

    Raises:
        MisuseError: If it is something else.
    """
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not isinstance(given, Iterable) or not all(isinstance(text, str) for text in texts):
        raise _wrong(f"{given!r} is no text, and no list of texts", option, fix)
    return texts


def _constant(name: str, value: ArrayLike) -> NDArray[np.generic] | str:
    if isinstance(value, str):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        what = f"the constant of input {name} is no array of numbers"
        raise _wrong(what, "fix", "give a number, or an array of numbers or of truth values")
    return array


def _loaded(path: Path) -> NDArray[np.generic]:
    check_file(path, InputError)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read as a NumPy file ({why(error)})", where=str(path)) from None


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    fix = "write ⟦output_name=a,b⟧"
    names = given.split(",") if isinstance(given, str) else _texts(given, "output_name", fix)
    if not all(names):
        raise _wrong(f"{given!r} has an empty name", "output_name", fix)
    return tuple(dict.fromkeys(names))


def _pair(text: str) -> tuple[str, str]:
    name, sign, size = text.rpartition("=")
    if not sign or not name:
        raise _wrong(f"{text!r} is not NAME=SIZE", "shape", _WRITTEN)
    return name.strip(), size


def _size(name: str, given: object) -> int | tuple[int, ...]:
    sides: Sequence[Any] = given.split("x") if isinstance(given, str) else [given]
    if isinstance(given, Sequence) and not isinstance(given, str):
        sides = given
    try:
        # A size that is no text must be whole.
        sizes = tuple(int(side) if isinstance(side, str) else operator.index(side) for side in sides)
    except (TypeError, ValueError):
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise _wrong(f"{given!r} is no size of {name}", "shape", _WRITTEN)
    one = isinstance(given, int) or (isinstance(given, str) and len(sizes) == 1)
    return sizes[0] if one else sizes


_WRITTEN = "write ⟦shape=NAME=1x3x320x320⟧ for an input, or ⟦shape=height=320,width=320⟧ for axes"


def _set_size(graph: onnx.GraphProto, name: str, size: int | Sequence[int]) -> None:
    entry = next((entry for entry in graph.input if entry.name == name), None)
    if entry is not None:
        _set_sizes(entry, (size,) if isinstance(size, int) else tuple(size))
        return
    axes = [
        side
        for value in (*graph.input, *graph.output)
        for side in value.type.tensor_type.shape.dim
        if side.dim_param == name
    ]
    known = _open_axes(graph)
    if not axes or not isinstance(size, int):
        shown = ", ".join([*known, *(each.name for each in graph.input)])
        what = f"there is no axis or input {name}" if not axes else f"{name} is one axis, and {size} are several sizes"
        raise _wrong(what, "shape", f"name one of {shown}")
    for side in axes:
        side.dim_value = size


def _set_sizes(entry: onnx.ValueInfoProto, sizes: Sequence[int]) -> None:
    sides = list(entry.type.tensor_type.shape.dim)
    if len(sizes) == len(sides) - 1:
        # The batch is left out.
        sides = sides[1:]
    shown = "x".join(side.dim_param or str(side.dim_value or "?") for side in entry.type.tensor_type.shape.dim)
    if len(sizes) != len(sides):
        given = "x".join(map(str, sizes))
        raise _wrong(f"input {entry.name} has axes {shown}, and {given} is of others", "shape", _WRITTEN)
    for side, size in zip(sides, sizes, strict=True):
        side.dim_value = size


def _open_axes(graph: onnx.GraphProto) -> list[str]:
    """The names of the inputs' axes."""
    sides = (side for entry in graph.input for side in entry.type.tensor_type.shape.dim)
    return list(dict.fromkeys(side.dim_param for side in sides if side.dim_param))


def _fix(graph: onnx.GraphProto, name: str, value: NDArray[np.generic] | str) -> None:
    """Make an input a constant."""
    constants = {tensor.name for tensor in graph.initializer}
    entry = next((entry for entry in graph.input if entry.name == name), None)
    if entry is None:
        shown = ", ".join(each.name for each in graph.input if each.name not in constants) or "none"
        raise _wrong(f"there is no input {name}", "fix", f"name one of {shown}")
    tensor = entry.type.tensor_type
    sides = [side.dim_value for side in tensor.shape.dim]
    kind = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    array = _number(value, name) if isinstance(value, str) else np.asarray(value)
    if array.ndim == 0 and sides:
        # One number is that of every element; there is one sample.
        array = np.full([side or 1 for side in sides], array)
    fits = array.ndim == len(sides) and all(side in (0, size) for side, size in zip(sides, array.shape, strict=True))
    if not fits:
        told = ", ".join(side.dim_param or str(side.dim_value or "?") for side in tensor.shape.dim)
        what = f"input {name} has shape ({told}), and the constant {array.shape}"
        raise _wrong(what, "fix", "give an array of its shape, or one number for every element")
    with np.errstate(all="ignore"):
        held = array.astype(kind)
    if not np.array_equal(held.astype(np.float64), array.astype(np.float64), equal_nan=True) and kind.kind != "f":
        what = f"input {name} is of type {kind}, and the constant is not"
        raise _wrong(what, "fix", f"give values that {kind} has")
    kept = [each for each in graph.initializer if each.name != name]
    del graph.initializer[:]
    graph.initializer.extend([*kept, numpy_helper.from_array(held, name)])
    remaining = [each for each in graph.input if each.name != name]
    del graph.input[:]
    graph.input.extend(remaining)


def _number(text: str, name: str) -> NDArray[np.generic]:
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return np.asarray(lowered == "true")
    try:
        return np.asarray(int(text) if lowered.lstrip("+-").isdigit() else float(text))
    except ValueError:
        what = f"{text!r} is no number for input {name}"
        raise _wrong(what, "fix", "give a number, or the path of a .npy file") from None


def open_sizes(entry: onnx.ValueInfoProto, batch: int, samples: Mapping[str, tuple[int, ...]]) -> str:
    """What to give for the sizes that an input leaves open: the option, with the file's own names.

    `batch` is the axis of samples, and `samples` as of `Frame`: where they fit, they say the numbers.
    """
    sides = list(entry.type.tensor_type.shape.dim)
    found = samples.get(entry.name, samples.get("", ()))
    sizes = [*found[:batch], 1, *found[batch:]] if len(found) == len(sides) - 1 else list(found)
    known = sizes if len(sizes) == len(sides) else [0] * len(sides)
    of = [(side, known[axis]) for axis, side in enumerate(sides) if axis != batch and side.dim_value < 1]
    if all(side.dim_param for side, _ in of):
        named = {side.dim_param: size for side, size in of}
        written = ",".join(f"{name}={size or 'SIZE'}" for name, size in named.items())
        return spelled(f"⟦shape={written}⟧")
    told = "x".join(
        "1" if axis == batch else str(side.dim_value or known[axis] or "SIZE") for axis, side in enumerate(sides)
    )
    return spelled(f"⟦shape={entry.name}={told}⟧")
