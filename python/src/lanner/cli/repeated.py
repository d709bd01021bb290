"""Names that differ in numbers alone, as those of a recurrent network's steps, told as one."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: So many names of one pattern are told one by one.
FEW = 3

_NUMBER = re.compile(r"\d+")


def together(names: Sequence[str], kinds: Sequence[str] = ()) -> list[tuple[str, list[int]]]:
    """Put names that differ in numbers alone together, where they are more than `FEW`.

    Args:
        names: The names.
        kinds: What each is of, where names of different kinds are to stay apart.

    Returns:
        What is said of each group in the order of its first name, and the places of its names.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (name, kind) in enumerate(zip(names, kinds or [""] * len(names), strict=True)):
        groups.setdefault((_NUMBER.sub("#", name), kind), []).append(place)
    told: list[tuple[str, list[int]]] = []
    for places in groups.values():
        if len(places) > FEW:
            told.append((_joined([names[place] for place in places]), places))
        else:
            told.extend((names[place], [place]) for place in places)
    return sorted(told, key=lambda group: group[1][0])


def _joined(names: Sequence[str]) -> str:
    """The names as one, each number that differs as the smallest and the largest."""
    columns = zip(*(map(int, _NUMBER.findall(name)) for name in names), strict=True)
    ends = iter([(min(column), max(column)) for column in columns])

    def said(number: re.Match[str]) -> str:
        low, high = next(ends)
        return number.group() if low == high else f"{low}..{high}"

    return _NUMBER.sub(said, names[0])
