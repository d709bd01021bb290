"""The state directory: the server's key and one-time material. Never copy it: material would be used twice."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

from lanner.errors import MisuseError, spelled


def state_path(given: str | Path | None = None) -> Path:
    """Where the state directory is or would be: `given`, else ``$LANNER_HOME``, else the platform's place for it.

    Raises:
        MisuseError: If a file is there.
    """
    path = Path(given or os.environ.get("LANNER_HOME") or _platform_directory()).expanduser()
    if path.is_file():
        raise MisuseError("this is a file, and the state directory is a folder", where=str(path), fix="give a folder")
    return path


def state_directory(given: str | Path | None = None) -> Path:
    """The state directory, made for its owner alone (mode 0700) where it is new.

    It is where `state_path` says.

    Raises:
        MisuseError: If it cannot be made, or others can read what is in it.
    """
    path = state_path(given)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path)
    except OSError as error:
        raise MisuseError(
            f"the state directory cannot be used ({error.strerror})",
            where=str(path),
            fix=spelled("give another ⟦state_dir⟧"),
        ) from None
    return path


def _check_private(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "nt" or mode & 0o077 == 0:
        return
    if any(path.iterdir()):
        raise MisuseError(
            f"the state directory has mode {mode:04o}, so that others may read keys in it",
            where=str(path),
            fix=f"run chmod 700 {shlex.quote(str(path))}, or give another {spelled('⟦state_dir⟧')}",
        )
    path.chmod(0o700)


def _platform_directory() -> str:
    home = Path.home()
    if sys.platform == "darwin":
        return str(home / "Library" / "Application Support" / "lanner")
    if sys.platform == "win32":
        return str(Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "lanner")
    return str(Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "lanner")
