"""What the C library keeps of the memory that was freed."""

from __future__ import annotations

import ctypes
import platform


def give_back_freed() -> None:
    """Give memory that was freed back to the system, wherever in the heap it lies.

    glibc keeps what threads free, in up to eight places for each core, each of which grows to what the largest message
    took. Does nothing under another C library.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
