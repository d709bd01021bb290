"""The comparison with an older build: what tools/against.py saves, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.markdown import ratio, size_of, table, time_of

Document = dict[str, Any]


def versions_table(rows: list[Document]) -> str:
    """A line for each benchmark, before and now."""
    columns = (
        *("benchmark", "precision", "weights", "before", "now", "now / before", "fastest before", "fastest now"),
        *("bytes before", "bytes now", "rounds before", "rounds now", "runs"),
    )
    return table(columns, map(tuple, map(_cells, rows)))


def _cells(row: Document) -> Iterator[object]:
    before, now = row["before"], row["now"]
    yield from (row["name"], row["precision"], row["weights"])
    yield from (time_of(before["seconds"]), time_of(now["seconds"]), ratio(now["seconds"], before["seconds"]))
    yield from (time_of(before["fastest"]), time_of(now["fastest"]))
    yield from (size_of(before["bytes"]), size_of(now["bytes"]), before["rounds"], now["rounds"], now["repeat"])
