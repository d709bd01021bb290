"""A client's keys, made before it meets a server, which gets its part of them once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lanner import _native
from lanner.errors import native_errors
from lanner.limits import limits_document
from lanner.manifest import Manifest
from lanner.model import Model, load


@dataclass(frozen=True, slots=True)
class MadeKeys:
    """The files that `keygen` wrote.

    Attributes:
        keys: The file of the keys. It is secret.
        keys_bytes: Its size.
        upload: The file of what servers get, which is not.
        upload_bytes: Its size.
        upload_hash: Its SHA-256 in hexadecimal, under which servers keep it.
    """

    keys: str
    keys_bytes: int
    upload: str
    upload_bytes: int
    upload_hash: str


def keygen(
    model: Model | str | Path,
    path: str | Path,
    *,
    max_memory: str | int | None = None,
    max_seconds: int | None = None,
) -> MadeKeys:
    """Make keys for `Client`, for every model with the same key parameters and for every server.

    Args:
        model: A model, its file, or the file of its public half.
        path: The file of the keys, which must be new. What servers get is written beside it, with ``.upload`` behind
            the name.
        max_memory: As for `lanner.load`.
        max_seconds: As for `lanner.load`.

    Raises:
        MisuseError: If the model's sessions have no keys, there is such a file already, or it cannot be written.
        ModelError: If the file is no model and no public half.
    """
    if isinstance(model, (str, Path)):
        text = _public_half(Path(model), max_memory, max_seconds)
    else:
        text = model.native.manifest()
    limits = limits_document(max_memory, max_seconds)
    with native_errors():
        made = _native.keygen(text, str(path), limits["memory"], limits["seconds"])
    return MadeKeys(**json.loads(made))


def _public_half(path: Path, max_memory: str | int | None, max_seconds: int | None) -> str:
    """The public half in a file of it, or in a model's."""
    if path.suffix == ".lanner" or path.suffix == ".onnx":
        return load(path, max_memory=max_memory, max_seconds=max_seconds).native.manifest()
    return json.dumps(Manifest.read(path).document)
