"""Tensors of the Open Inference Protocol v2: as JSON, and as the binary data that follows it."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.gateway.errors import Refused
from lanner.inputs import to_float32

#: The numeric types that an input may have; values are converted to float32.
DATATYPES = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}

#: The input that texts are, in the place of all others.
TEXT = "text"

#: The most axes of an input, its batch axis included.
_MAX_AXES = 9


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array to be answered.

    Attributes:
        name: The output's name.
        datatype: ``INT64``, ``FP64``, ``BOOL`` or ``BYTES``.
        values: Its elements; of ``BYTES`` an array of text.
    """

    name: str
    datatype: str
    values: NDArray[Any]

    def document(self) -> dict[str, Any]:
        """The tensor with its elements in JSON, row after row."""
        return {**self._header(), "data": self.values.ravel().tolist()}

    def binary(self) -> tuple[dict[str, Any], bytes]:
        """The tensor with its elements in the data behind the JSON, and that data."""
        data = self._bytes()
        return {**self._header(), "parameters": {"binary_data_size": len(data)}}, data

    def _header(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.values.shape)}

    def _bytes(self) -> bytes:
        if self.datatype == "BYTES":
            texts = [str(text).encode() for text in self.values.ravel()]
            return b"".join(struct.pack("<I", len(text)) + text for text in texts)
        return self.values.astype(DATATYPES[self.datatype]).tobytes()


def read_tensor(
    document: Any,  # noqa: ANN401 - parsed here
    binary: bytes | None,
    *,
    missing: bool = False,
) -> NDArray[np.float32]:
    """An input's values in its own shape, from the JSON, or from its part of the data behind it.

    With `missing`, floats may be missing: NaN, and null in JSON, which has no NaN.

    Raises:
        Refused: If type, shape and data do not fit each other, or an element is no value of the type.
        InputError: If a value is beyond float32, or not finite where it must be.
    """
    name = str(document.get("name"))
    datatype = document.get("datatype")
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise Refused(400, f"input {name!r} is of type {datatype!r}; send one of {', '.join(DATATYPES)}")
    shape = _shape(document.get("shape"), name)
    missing = missing and DATATYPES[datatype].kind == "f"
    values = _from_json(document, name, missing) if binary is None else _from_binary(binary, datatype, name)
    _check_values(values, datatype, name)
    if values.size != math.prod(shape):
        raise Refused(400, f"input {name!r} has {values.size} values, and its shape is {list(shape)}")
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    return to_float32(values, f"input {name!r}", missing=missing).reshape(shape)


def read_texts(document: Mapping[str, Any], binary: bytes | None) -> tuple[str, ...]:
    """The texts of an input of type BYTES, one for each sample.

    Raises:
        Refused: If shape and data do not fit each other, or something is no text.
    """
    shape = _shape(document.get("shape"), TEXT)
    if shape[1:] not in ((), (1,)):
        raise Refused(400, f"input {TEXT!r} has the shape {list(shape)}; give [n], a text for each sample")
    found = _listed_texts(document.get("data")) if binary is None else _binary_texts(binary)
    if len(found) != shape[0]:
        raise Refused(400, f"input {TEXT!r} has {len(found)} texts, and its shape is {list(shape)}")
    return tuple(found)


def _listed_texts(data: Any) -> list[str]:  # noqa: ANN401 - parsed here
    if not isinstance(data, list):
        raise Refused(400, f"input {TEXT!r} has no list of texts as `data`")
    found = [each[0] if isinstance(each, list) and len(each) == 1 else each for each in data]
    if not all(isinstance(each, str) for each in found):
        raise Refused(400, f"the data of input {TEXT!r} must be texts")
    return found


def _binary_texts(binary: bytes) -> list[str]:
    found, start = list[str](), 0
    while start < len(binary):
        length = int.from_bytes(binary[start : start + 4], "little")
        content = binary[start + 4 : start + 4 + length]
        if len(binary) - start < 4 or len(content) != length:
            raise Refused(400, f"the data of input {TEXT!r} ends within a text")
        try:
            found.append(content.decode())
        except UnicodeDecodeError:
            raise Refused(400, f"a text of input {TEXT!r} is not UTF-8") from None
        start += 4 + length
    return found


def _shape(sides: Any, name: str) -> tuple[int, ...]:  # noqa: ANN401 - parsed here
    whole = isinstance(sides, list) and all(type(side) is int and 0 < side < 2**31 for side in sides)
    if not whole or not 1 <= len(sides) <= _MAX_AXES:
        raise Refused(400, f"input {name!r} has no shape of 1 to {_MAX_AXES} positive whole numbers")
    return tuple(sides)


def numbers_of(data: list[Any], *, missing: bool = False) -> NDArray[Any]:
    """Lists of JSON as an array of their shape; with `missing`, null is NaN.

    Raises:
        ValueError: If they are not of equal length.
        OverflowError: If a number is beyond any type.
        RecursionError: If they are nested too deeply.
    """
    values = np.array(data)
    if not missing or values.dtype.kind != "O":
        return values
    holes = np.array([each is None for each in values.ravel().tolist()], bool).reshape(values.shape)
    # Numbers alone, so that neither text nor an object passes for one.
    if not all(type(each) in (bool, int, float) for each in values[~holes].tolist()):
        return values
    values[holes] = np.nan
    return values.astype(np.float64)


def _from_json(document: Any, name: str, missing: bool) -> NDArray[Any]:  # noqa: ANN401 - parsed here
    if not isinstance(document.get("data"), list):
        raise Refused(400, f"input {name!r} has no `data`, a list of numbers")
    try:
        values = numbers_of(document["data"], missing=missing)
    except (ValueError, OverflowError, RecursionError):
        raise Refused(400, f"the lists in the data of input {name!r} are not of equal length") from None
    if values.dtype.kind not in "biuf":
        raise Refused(400, f"the data of input {name!r} must be numbers alone")
    return values.ravel()


def _from_binary(data: bytes, datatype: str, name: str) -> NDArray[Any]:
    # A byte may be more than true or false, so it is read as the number that it is.
    dtype = DATATYPES["UINT8" if datatype == "BOOL" else datatype]
    if len(data) % dtype.itemsize:
        raise Refused(400, f"the binary data of input {name!r} ends within an element")
    return np.frombuffer(data, dtype)


def _check_values(values: NDArray[Any], datatype: str, name: str) -> None:
    """Check that every element is a value of the type; whether floats are finite is not checked.

    Raises:
        Refused: Naming the place of the first that is not; its value is the caller's alone.
    """
    dtype = DATATYPES[datatype]
    if values.dtype == dtype:
        return
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            wrong, taken = np.isfinite(values) & ~np.isfinite(values.astype(dtype)), "numbers within its range"
        elif dtype.kind == "b":
            wrong, taken = (values != 0) & (values != 1), "true or false"
        else:
            ends = np.iinfo(dtype.str)
            # A list that has an end of a type of 64 bits may be floats here, which is why that end rounded up is taken.
            wrong = (values < ends.min) | (values > ends.max) | (values % 1 != 0)
            taken = f"whole numbers from {ends.min} to {ends.max}"
    if wrong.any():
        place = int(np.argmax(wrong))
        raise Refused(400, f"element [{place}] of input {name!r} is no {datatype}; send {taken}, or name another type")
