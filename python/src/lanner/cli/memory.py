"""What the C library keeps of the memory that a process frees which runs for long, a server or a gateway."""

from __future__ import annotations

import ctypes
import platform

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
