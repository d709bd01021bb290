"""What the C library keeps of the memory that a server or a gateway frees, and when it gives that back."""

from __future__ import annotations

import ctypes
import platform

from lanner.heap import give_back_freed

#: The parameters of glibc's mallopt, and what they are set to in bytes: from which size on a buffer is given back as
#: soon as it is freed, and how much of the rest may stay with each thread. Left alone, glibc lets both grow with the
#: largest message seen, to 32 and 64 MiB.
SETTINGS = {-3: 4 << 20, -1: 8 << 20}


def give_back_large_buffers() -> None:
    """Give large buffers back to the system, so that every further thread does not cost what its longest message took.

    Programs of one's own do the same by the environment: docs/how-to/keep-a-client-running.md.

    Does nothing under another C library than glibc.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        for parameter, size in SETTINGS.items():
            library.mallopt(parameter, size)


class EndedSessions:
    """Gives back what sessions held once none has ended for a while; those that follow at once take it again.

    Args:
        looks: After how many looks without an end.
    """

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self._left = 0

    def look(self, ended: int) -> None:
        """Hear how many sessions have ended since the last look."""
        if ended:
            self._left = self._looks
        elif self._left:
            self._left -= 1
            if self._left == 0:
                give_back_freed()
