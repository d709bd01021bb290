"""Who shares kept keys and material with whom, in a state directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lanner import _native
from lanner.errors import native_errors


def pairings(state_dir: str | Path) -> list[dict[str, Any]]:
    """All pairings in a state directory, of its clients and its servers, the last used first.

    Of each: its ``id``, the ``party`` that this machine plays, the ``model`` and its ``commitment``, the ``peer`` (the
    server's fingerprint or address, or the client's address) and the client's ``certificate`` where it showed one, when
    it was ``created`` and last ``used`` (seconds since 1970), for how many ``predictions`` there is material, and the
    ``bytes`` of that and of keys.

    Raises:
        MisuseError: If the directory cannot be used.
    """
    with native_errors():
        found: list[dict[str, Any]] = json.loads(_native.pairings(str(state_dir)))
    return found


def revoke(state_dir: str | Path, pairing: str) -> bool:
    """Forget a pairing with its keys and material: what the other side has of it serves nobody any more.

    Returns whether there was one.

    Raises:
        MisuseError: If `pairing` is no name of one, or the directory cannot be used.
    """
    with native_errors():
        return _native.revoke(str(state_dir), pairing)
