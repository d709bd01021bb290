"""What a prediction may take of memory and time, beyond which a model is refused before any work is done for it."""

from __future__ import annotations

import re

from lanner.errors import MisuseError, option_named

#: What `Limits` are where nothing else is said.
DEFAULT_MEMORY = "8 GiB"
DEFAULT_SECONDS = 1800

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def limits_document(max_memory: str | int | None, max_seconds: int | None) -> dict[str, int | None]:
    """Limits as the native module takes them.

    Args:
        max_memory: Bytes that either party may hold for a session with one prediction, the server's model included: a
            number, or text such as ``"12GB"``; None for `DEFAULT_MEMORY`.
        max_seconds: Seconds that both parties together may compute on one core, very roughly; None for
            `DEFAULT_SECONDS`.

    Raises:
        MisuseError: If one is not positive, or not a size.
    """
    if max_seconds is not None and max_seconds < 1:
        raise MisuseError(f"{option_named('max_seconds')} is {max_seconds}", fix="give 1 or more")
    return {"memory": None if max_memory is None else parse_bytes(max_memory), "seconds": max_seconds}


def parse_bytes(size: str | int) -> int:
    """The bytes of a size such as ``12GB``, ``500 MiB`` or ``4096``.

    Raises:
        MisuseError: If it is none, or not positive.
    """
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,3})?) ?([kMG]B|[KMG]iB|)", str(size).strip())
    count = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if count < 1 or count >= 2**63:
        raise MisuseError(f"{size!r} is not a size of memory", fix="give bytes, as in 12GB or 12884901888")
    return count
