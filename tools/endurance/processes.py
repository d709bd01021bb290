"""What Linux tells of a process, waits, and how fast a figure grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from lanner.benchmarks.machine import Usage, usage

__all__ = ["Usage", "await_that", "slope", "usage"]


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
