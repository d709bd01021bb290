"""Reads an inference request of the Open Inference Protocol v2: JSON, and binary data behind it where there is any."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.gateway.errors import Refused
from lanner.gateway.tensors import TEXT, read_tensor, read_texts

#: The most characters of a request's id, which is sent back.
_MAX_ID = 256


@dataclass(frozen=True, slots=True)
class WantedOutput:
    """An output that a request asks for.

    Attributes:
        name: Its name.
        classification: How many best classes are wanted as text in its place; None for the output itself.
        binary: Whether its data is to follow the JSON.
    """

    name: str
    classification: int | None
    binary: bool


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request for predictions.

    Attributes:
        identity: What the caller named it, or None.
        arrays: The inputs by name, each in the shape that the request gave it; none where texts are given.
        outputs: What is asked for; None for every output of the model.
        binary: Whether all outputs' data is to follow the JSON, where none is asked for by name.
        texts: Texts in the place of all inputs, or None.
    """

    identity: str | None
    arrays: Mapping[str, NDArray[np.float32]]
    outputs: tuple[WantedOutput, ...] | None
    binary: bool
    texts: tuple[str, ...] | None = None

    @classmethod
    def parse(
        cls, body: bytes, header_length: str | None, tables: Collection[str] = (), *, reads_texts: bool = False
    ) -> InferenceRequest:
        """Read a request.

        Args:
            body: The body.
            header_length: The header ``Inference-Header-Content-Length``: the bytes of JSON before binary data.
            tables: The inputs that are tables, whose numbers may be missing.
            reads_texts: Whether texts may be given in the place of all inputs.

        Raises:
            Refused: Naming what is wrong.
            InputError: If a value is beyond float32, or not finite where it must be.
        """
        text, binary = _split(body, header_length)
        document = _parsed(text)
        identity = document.get("id")
        if identity is not None and not (isinstance(identity, str) and len(identity) <= _MAX_ID):
            raise Refused(400, f"`id` must be text of at most {_MAX_ID} characters")
        parameters = _mapping(document.get("parameters", {}), "`parameters`")
        by_default = _flag(parameters, "binary_data_output", "`parameters`", default=False)
        entries = _listed(document, "inputs")
        texts = _texts(entries, binary) if reads_texts else None
        arrays = _inputs(entries, binary, tables) if texts is None else {}
        outputs = None
        if document.get("outputs"):
            outputs = tuple(_wanted(entry, by_default) for entry in _listed(document, "outputs"))
        return cls(identity, arrays, outputs, by_default, texts)


def _split(body: bytes, header_length: str | None) -> tuple[bytes, bytes]:
    if header_length is None:
        return body, b""
    if not (header_length.isascii() and header_length.isdecimal()) or int(header_length) > len(body):
        raise Refused(400, "Inference-Header-Content-Length must be the bytes of JSON at the body's beginning")
    return body[: int(header_length)], body[int(header_length) :]


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON; see the Open Inference Protocol v2") from None
    return _mapping(document, "the request")


def _texts(entries: Sequence[Any], binary: bytes) -> tuple[str, ...] | None:
    """The texts of a request whose one input is of type BYTES; None of another request."""
    if not any(isinstance(entry, dict) and entry.get("datatype") == "BYTES" for entry in entries):
        return None
    if len(entries) > 1:
        raise Refused(400, "texts stand in the place of all inputs, and there are others")
    entry = _mapping(entries[0], "an input")
    if entry.get("name") != TEXT:
        raise Refused(400, f"an input of type BYTES must be called {TEXT!r}")
    size = _mapping(entry.get("parameters", {}), "an input's `parameters`").get("binary_data_size")
    if (size is None) == bool(binary) or size not in (None, len(binary)) or (size is not None and "data" in entry):
        raise Refused(400, "texts are in `data`, or in the bytes behind the JSON, as many as `binary_data_size` says")
    return read_texts(entry, binary if size is not None else None)


def _inputs(entries: Sequence[Any], binary: bytes, tables: Collection[str]) -> dict[str, NDArray[np.float32]]:
    if not entries:
        raise Refused(400, "there are no inputs")
    arrays, start = dict[str, NDArray[np.float32]](), 0
    mappings = [_mapping(entry, "an input") for entry in entries]
    sizes = [
        _mapping(entry.get("parameters", {}), "an input's `parameters`").get("binary_data_size") for entry in mappings
    ]
    if binary and all(size is None for size in sizes):
        raise Refused(400, "data follows the JSON, and no input's `binary_data_size` is there to say whose it is")
    for entry, size in zip(mappings, sizes, strict=True):
        name = str(entry.get("name"))
        if size is not None and (type(size) is not int or not 0 <= size <= len(binary) - start):
            raise Refused(
                400, f"`binary_data_size` is {size!r}, and {len(binary) - start} bytes follow the JSON for it"
            )
        if size is not None and "data" in entry:
            raise Refused(400, f"input {name!r} has both `data` and `binary_data_size`; give one of them")
        if name in arrays:
            raise Refused(400, f"input {name!r} is there twice")
        data = None if size is None else binary[start : start + size]
        start += size or 0
        arrays[name] = read_tensor(entry, data, missing=name in tables)
    if start != len(binary):
        raise Refused(400, f"{len(binary) - start} bytes of data follow that are no input's")
    return arrays


def _wanted(entry: Any, by_default: bool) -> WantedOutput:  # noqa: ANN401 - parsed here
    output = _mapping(entry, "an output")
    if not isinstance(output.get("name"), str):
        raise Refused(400, "an output that is asked for has no `name`")
    parameters = _mapping(output.get("parameters", {}), "an output's `parameters`")
    classification = parameters.get("classification")
    if classification is not None and (type(classification) is not int or classification < 0):
        raise Refused(400, "`classification` must be a number of classes")
    binary = _flag(parameters, "binary_data", "an output's `parameters`", default=by_default)
    # Triton takes 0 classes for no classification.
    return WantedOutput(output["name"], classification or None, binary)


def _mapping(value: Any, what: str) -> Mapping[str, Any]:  # noqa: ANN401 - parsed here
    if not isinstance(value, dict):
        raise Refused(400, f"{what} must be a JSON object")
    return value


def _listed(document: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = document.get(name)
    if not isinstance(value, list):
        raise Refused(400, f"`{name}` must be a list")
    return value


def _flag(parameters: Mapping[str, Any], name: str, where: str, *, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise Refused(400, f"`{name}` in {where} must be true or false")
    return value
