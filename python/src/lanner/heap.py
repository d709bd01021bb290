"""Memory of this process as the C library keeps it: what is allocated, and what was freed and is not given back."""

from __future__ import annotations

import ctypes
import platform
from typing import ClassVar


class _Counts(ctypes.Structure):
    """What glibc's ``mallinfo2`` returns: of its ten numbers, bytes in buffers of their own and bytes in use."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def give_back_freed() -> None:
    """Give memory that was freed back to the system, wherever in the heap it lies.

    glibc keeps what threads free, in up to eight places for each core, each of which grows to what the largest message
    took. Does nothing under another C library.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def live_bytes() -> int | None:
    """Bytes that were allocated and not freed, by all threads; None where the C library does not tell.

    glibc tells from 2.33 on. What lies in the small caches of threads counts as allocated: some 100 kB for each.
    """
    try:
        counted = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    counted.restype = _Counts
    counts = counted()
    return int(counts.hblkhd + counts.uordblks)
