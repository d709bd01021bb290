"""Inputs that come as bytes in memory: a picture, numbers as CSV, or a NumPy array; nothing is written to disk."""

from __future__ import annotations

import csv
import io
import zipfile

import numpy as np
from numpy.typing import NDArray

from lanner.errors import InputError
from lanner.images import decode_image
from lanner.inputs import (
    Arrays,
    as_batch,
    batch_of,
    check_range,
    fit_rows,
    no_pictures,
    no_texts,
    read_json,
    read_table,
    table_of,
    to_float32,
)
from lanner.manifest import Manifest
from lanner.rows import read_rows
from lanner.tables import Notes

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_NUMPY = b"\x93NUMPY"
_ZIP = b"PK\x03\x04"

#: The most bytes of arrays that a compressed file may become.
_MOST_BYTES = 1 << 28

#: What to do about a first line that is a header, and about one that may be one.
_HEADER_FIXES = (
    "leave this line out, or say that the first line is a header",
    "say that the first line is a header if it is one; if it is an input, send one input at a time",
)


def read_upload(
    content: bytes, manifest: Manifest, *, csv_header: bool = False, notes: Notes | None = None, as_text: bool = False
) -> NDArray[np.float32]:
    """Samples of shape (n, *the model's), by the rules for files of the same kind, which the first bytes tell.

    `csv_header` says that the first row of CSV is a header; without it, what looks like one is refused, unless it has
    the names of the model's columns. `notes` gets what the owner of a table should know. `as_text` says that the bytes
    are one text in UTF-8, which nothing else is told from.

    Raises:
        InputError: If the bytes are of no known kind, or do not fit the model.
    """
    if as_text:
        return _of_text(content, manifest)
    batch = _batch_of(content, manifest, csv_header, notes or Notes())
    check_range(batch, manifest.input)
    return batch


def _of_text(content: bytes, manifest: Manifest) -> NDArray[np.float32]:
    if manifest.input.text is None:
        raise no_texts(manifest.name, "input")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError("this is not text in UTF-8", where="input", fix="send it as UTF-8") from None
    return batch_of(text, manifest.input)


def _batch_of(content: bytes, manifest: Manifest, csv_header: bool, notes: Notes) -> NDArray[np.float32]:
    entry = manifest.input
    if content.startswith(_PICTURES):
        if manifest.image is None:
            raise no_pictures(entry, manifest.name, "picture")
        return manifest.image.convert(decode_image(io.BytesIO(content)), entry.shape)[np.newaxis]
    if (kind := _other_kind(content)) is not None:
        raise InputError(f"lanner does not read {kind} files", where="input", fix="convert it to PNG or JPEG")
    if content.startswith((_NUMPY, _ZIP)):
        return as_batch(_arrays(content), entry, beyond=notes.beyond)
    is_json, table, header = content.lstrip()[:1] in (b"{", b"["), table_of(entry), csv_header or None
    if is_json and table is None:
        return as_batch(read_json(content.decode("utf-8-sig", "replace"), "input"), entry)
    try:
        text = content.decode("utf-8-sig", "replace" if is_json else "strict")
        if table is not None:
            values = read_table(text, table, "input", as_json=is_json, header=header, fixes=_HEADER_FIXES, notes=notes)
            return as_batch(values, entry, beyond=notes.beyond)
        rows = read_rows(io.StringIO(text, newline=""), "input", header, _HEADER_FIXES)
    except (UnicodeDecodeError, csv.Error):
        kinds = ".npy, .npz, JSON or CSV" if manifest.image is None else "PNG, JPEG, .npy, .npz, JSON or CSV"
        raise InputError(
            "this is neither a picture nor an array nor rows of numbers",
            where="input",
            fix=f"give a whole {kinds} file",
        ) from None
    return fit_rows(to_float32(rows, "input", missing=True), entry, "input")


def _other_kind(content: bytes) -> str | None:
    """The kind of a well-known picture that is not read, by how its bytes begin; None of anything else."""
    known = {
        "GIF": content.startswith((b"GIF87a", b"GIF89a")),
        "WebP": content.startswith(b"RIFF") and content[8:12] == b"WEBP",
        "BMP": content.startswith(b"BM") and content[6:10] == bytes(4),
        "TIFF": content.startswith((b"II*\0", b"MM\0*")),
        "DICOM": content[128:132] == b"DICM",
    }
    return next((kind for kind, is_it in known.items() if is_it), None)


def _check_size(archive: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        if sum(member.file_size for member in opened.infolist()) > _MOST_BYTES:
            raise InputError(f"it holds more than {_MOST_BYTES} bytes", where="input", fix="send fewer inputs")


def _arrays(content: bytes) -> Arrays:
    try:
        if content.startswith(_ZIP):
            _check_size(content)
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return to_float32(loaded, missing=True)
        with loaded:
            return {name: to_float32(loaded[name], f"input {name}", missing=True) for name in loaded.files}
    except InputError:
        # It is a ValueError, too, as NumPy's are.
        raise
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile):
        raise InputError(
            "cannot be read as a NumPy array", where="input", fix="write it with numpy.save or numpy.savez"
        ) from None
