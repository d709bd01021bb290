"""Tables, times and sizes as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose first column stands to the left and whose others to the right; None is a dash."""
    alignment = ["---", *("---:" for _ in columns[1:])]
    lines = [columns, alignment, *([("-" if cell is None else str(cell)) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def filled(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table without the columns that are empty in every row."""
    kept = list(rows)
    places = [place for place in range(len(columns)) if any(row[place] is not None for row in kept)]
    return table([columns[place] for place in places], ([row[place] for place in places] for row in kept))


def time_of(seconds: float | None) -> str | None:
    """A time with three digits."""
    if seconds is None:
        return None
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds * 1e6)} µs"


def size_of(count: float | None) -> str | None:
    """A number of bytes with three digits, in powers of ten."""
    if count is None:
        return None
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{_three_digits(count / factor)} {unit}"
    return f"{count:.0f} B"


def ratio(theirs: float | None, ours: float | None) -> str | None:
    """How many times theirs is ours: above 1, ours is less; None where either is absent or nothing."""
    if not theirs or not ours:
        return None
    return f"{_three_digits(theirs / ours)}x"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
