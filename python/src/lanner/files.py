"""Files that a user names: what is wrong with a path, or with what is there, in words."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from lanner.errors import LannerError, ModelError


def check_file(path: str | Path, error: type[LannerError]) -> None:
    """Check that there is a file.

    Raises:
        LannerError: Of the class `error`, if there is none, or something else in its place.
    """
    path = Path(path)
    try:
        if path.is_file():
            return
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as reason:
        raise error(f"cannot be read ({why(reason)})", where=str(path), fix="check who may read it") from None
    if is_folder:
        raise error("this is a folder, and a file is needed", where=str(path), fix="name a file")
    if is_there:
        raise error(f"{_NO_FILE}, and a file is needed", where=str(path), fix="name a file")
    raise error("no such file", where=str(path), fix="check the path")


def check_exported(path: Path) -> None:
    """Check that a model's file is not one of a library that trains models, by its suffix.

    Raises:
        ModelError: If it is; it says how to get a model out of it.
    """
    fix = _EXPORTS.get(path.suffix.lower())
    if fix is not None:
        raise ModelError(f"lanner reads no {path.suffix} files, only ONNX", where=str(path), fix=fix)


_FROM_ESTIMATOR = (
    "load it and call lanner.compile(estimator, calibration=X) in Python, or export it with skl2onnx.to_onnx"
)
_FROM_MODULE = "load it and call lanner.compile(module, calibration=x) in Python, or export it with torch.onnx.export"

#: What to do about files of libraries that are not ONNX.
_EXPORTS = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), _FROM_ESTIMATOR),
    **dict.fromkeys((".pt", ".pth", ".safetensors"), _FROM_MODULE),
}


def check_target(path: str | Path, error: type[LannerError]) -> None:
    """Check, before work is done for it, that a file can be written: its folder is there, and nothing but a file in it.

    Raises:
        LannerError: Of the class `error`, if that is not so.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        folder = place_of(path).parent
        if not folder.is_dir():
            raise error("there is no such folder to write to", where=str(folder), fix="create it first") from None
        return
    except OSError as reason:
        raise error(f"cannot be written ({why(reason)})", where=str(path), fix="name another file") from None
    if stat.S_ISDIR(mode):
        raise error("this is a folder", where=str(path), fix="name the file to write")
    if not stat.S_ISREG(mode):
        raise error(f"{_NO_FILE}, and a file is written", where=str(path), fix="name a file")


def place_of(path: str | Path) -> Path:
    """Where a file of a path is written: a symbolic link stays, and the file that it leads to is written."""
    path = Path(path)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def write_whole(path: str | Path, content: str | bytes, error: type[LannerError]) -> None:
    """Write a file of text or bytes, which takes its name once all is written: what had the name is there until then.

    Raises:
        LannerError: Of the class `error`, if it cannot be written.
    """
    check_target(path, error)
    place = place_of(path)
    draft = place.with_name(f".lanner-{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except OSError as reason:
        raise error(f"cannot be written ({why(reason)})", where=str(path), fix="name another file") from None
    finally:
        draft.unlink(missing_ok=True)


def why(error: Exception) -> str:
    """Why a file is not read, without Python's own words for what systems and texts are."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not text in UTF-8"
    return (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split())


_NO_FILE = "this is a device, a pipe or a socket"
