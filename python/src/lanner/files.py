"""Files that a user names: what is wrong with a path, or with what is there, in words."""

from __future__ import annotations

from pathlib import Path

from lanner.errors import LannerError


def check_file(path: str | Path, error: type[LannerError]) -> None:
    """Check that there is a file.

    Raises:
        LannerError: Of the class `error`, if there is none, or a folder in its place.
    """
    path = Path(path)
    try:
        if path.is_file():
            return
        is_folder = path.is_dir()
    except OSError as reason:
        raise error(f"cannot be read ({why(reason)})", where=str(path), fix="check who may read it") from None
    if is_folder:
        raise error("this is a folder, and a file is needed", where=str(path), fix="name a file")
    raise error("no such file", where=str(path), fix="check the path")


def why(error: Exception) -> str:
    """Why a file is not read, without Python's own words for what systems and texts are."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no text in UTF-8"
    return (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split())
