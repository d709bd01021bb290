"""The comparison with other systems: what tools/peers/compare.py saves, put together and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.markdown import ratio, size_of, table, time_of

Document = dict[str, Any]


def merge(before: Document | None, now: Document) -> Document:
    """A comparison, with the networks of one before that it left out, if that was of the same machine."""
    machine = {name: value for name, value in now["machine"].items() if name != "load"}
    kept = before if before is not None and before["machine"] == machine else {"rows": [], "failures": []}
    measured = {entry["name"] for entry in (*now["rows"], *now["failures"])}
    new = {row["name"]: row for row in now["rows"]}
    failed = {entry["name"] for entry in now["failures"]}
    rows = {row["name"]: row for row in kept["rows"] if row["name"] not in failed} | new
    failures = [entry for entry in kept["failures"] if entry["name"] not in measured]
    return {"machine": machine, "rows": list(rows.values()), "failures": failures + now["failures"]}


def peers_table(rows: list[Document]) -> str:
    """A line for each system and network."""
    columns = (
        *("network", "weights", "system", "wait", "fastest", "bytes", "messages", "runs", "error"),
        *("largest output", "theirs / ours, time", "theirs / ours, bytes"),
    )
    return table(columns, (line for row in rows for line in _lines(row)))


def _lines(row: Document) -> Iterator[tuple[object, ...]]:
    *ours, peer = row["systems"]
    for system in ours:
        ratios = (ratio(peer["seconds"], system["seconds"]), ratio(peer["bytes"], system["bytes"]))
        yield *_cells(row, system), *ratios
    yield *_cells(row, peer), None, None


def _cells(row: Document, system: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        *(row["name"], row["weights"], system["system"], time_of(system["seconds"]), time_of(system["fastest"])),
        *(size_of(system["bytes"]), system["messages"], system["repeat"]),
        *(f"{system['error']:.2g}", f"{system['largest_output']:.3g}"),
    )
