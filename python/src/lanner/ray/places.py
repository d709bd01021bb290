"""State directories of workers: one for each worker on a node, found again by whoever comes after it.

A worker takes the first directory below a base that no other process holds, and holds it for its life: two workers
never share material, and one that starts in the place of a lost one has that one's pairing, and what was kept for it.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from lanner.errors import MisuseError
from lanner.state import state_directory


class Place:
    """A state directory that this process holds until it ends. The base must be on a local file system.

    Args:
        base: The folder of all workers' directories on this node; made for its owner alone where it is new.

    Attributes:
        path: The directory, for its owner alone.

    Raises:
        MisuseError: If the base or the directory cannot be used, or others can read what is in it; or on a system
            that has no such locks.
    """

    def __init__(self, base: Path) -> None:
        try:
            import fcntl
        except ImportError:
            raise MisuseError(
                "workers hold their state directories by locks that this system does not have",
                where=str(base),
                fix="let workers run on Linux, or predict without Ray",
            ) from None
        state_directory(base)
        for number in count():
            path = state_directory(base / f"worker-{number}")
            lock = os.open(path / "held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
            else:
                # For whoever wonders who holds it.
                os.ftruncate(lock, 0)
                os.write(lock, f"{os.getpid()}\n".encode())
                self.path, self._lock = path, lock
                return

    def leave(self) -> None:
        """Let the next worker have it. The end of the process does the same."""
        os.close(self._lock)
