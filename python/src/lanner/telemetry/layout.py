"""Where steps of known length lie within a known stretch of time, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time: its ends, in nanoseconds since 1970."""

    start: int
    end: int

    @classmethod
    def before(cls, time: float, seconds: float) -> Self:
        """So many seconds up to a time, in seconds since 1970."""
        return cls(round((time - seconds) * _NANOSECONDS), round(time * _NANOSECONDS))


def laid_out(seconds: Sequence[float], within: Stretch, *, at_end: bool = False) -> list[Stretch]:
    """Steps one behind the other, from the start of a stretch on or up to its end.

    Steps that are longer than the stretch together are all shortened by the same factor.
    """
    ends = [0.0, *accumulate(seconds)]
    room = (within.end - within.start) / _NANOSECONDS
    factor = min(1.0, room / ends[-1]) if ends[-1] > 0 else 1.0
    begin = within.end - ends[-1] * factor * _NANOSECONDS if at_end else float(within.start)
    # Rounding must not carry a step beyond the stretch.
    at = [min(max(round(begin + end * factor * _NANOSECONDS), within.start), within.end) for end in ends]
    return [Stretch(start, end) for start, end in pairwise(at)]
