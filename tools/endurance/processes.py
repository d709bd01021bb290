"""What Linux tells of a process: memory and open files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has.

    Attributes:
        resident: Bytes of memory that are its own: of files that are mapped and shared, none.
        descriptors: Open files and sockets.
        threads: Its threads.
    """

    resident: int
    descriptors: int
    threads: int


def usage(pid: int) -> Usage:
    """What a process has now."""
    entries = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
    status = {name: value.strip() for name, value in entries}
    resident = int(status["RssAnon"].removesuffix(" kB")) * 1024
    return Usage(resident, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()), int(status["Threads"]))


def await_that(condition: Callable[[], bool], seconds: float) -> float:
    """Wait until a condition holds; the seconds that it took, more than `seconds` if it did not."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            break
        time.sleep(0.02)
    return time.monotonic() - start


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line that fits points best: ordinates per abscissa."""
    count = len(points)
    mean_x, mean_y = (sum(point[axis] for point in points) / count for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
