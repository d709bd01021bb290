"""What accuracy is left with each number of bits that lookups keep."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanner.precision import KEPT_BITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """A number of bits, and what a network reaches with them.

    Attributes:
        bits: What lookups are asked to keep.
        value: The metric.
    """

    bits: int
    value: float


def read_bits(text: str) -> range:
    """Numbers of bits as the command line gives them: ``9``, or the first and the last as in ``4..12``.

    Raises:
        argparse.ArgumentTypeError: If they are none, or lookups cannot keep so many.
    """
    ends = re.fullmatch(r"([0-9]{1,3})(?:\.\.([0-9]{1,3}))?", text)
    first, last = (0, 0) if ends is None else (int(ends[1]), int(ends[2] or ends[1]))
    if not KEPT_BITS[0] <= first <= last <= KEPT_BITS[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not BITS or FIRST..LAST, {KEPT_BITS[0]} to {KEPT_BITS[1]}")
    return range(first, last + 1)


def draw_curve(drawn: Figure, name: str, metric: str, points: Sequence[Point], exact: float | None) -> None:
    """Draw a network's metric over the bits kept, with the float network's as a line where it is known."""
    axes = drawn.subplots()
    bits = [point.bits for point in points]
    if exact is not None:
        axes.axhline(exact, color="#888888", linestyle="--", label="float")
    axes.plot(bits, [point.value for point in points], "o-", color="#1f77b4", label="fixed-point")
    axes.set_xticks(bits)
    axes.set_xlabel("bits that each lookup keeps")
    axes.set_ylabel(metric)
    axes.set_title(name)
    axes.grid(visible=True, color="#dddddd")
    axes.legend(loc="lower right")


#: Inches of the curve.
SIZE = (6.0, 4.0)
