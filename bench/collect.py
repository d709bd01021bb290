"""Puts the parts of a run together and writes the pages.

python -m bench.collect [PART...] [--keep] [--elsewhere PART...] [--peers FILE] [--versions FILE]
    --json FILE.json --page FILE.md [--summary FILE.md]

A part is a document that ``lanner bench --save`` wrote, or lines that a Rust example printed with ``--json``. FILE is
what tools/peers/compare.py saved, or tools/against.py; the page is docs/benchmarks-data.md, with docs/benchmarks.json
beside it, and the summary docs/benchmarks.md. What is not given stays as the JSON document has it already, and so do
its ``notes``: sentences that somebody wrote into it about figures of an older build, which a run of all parts leaves
out. With --keep the rows and lines that the parts do not measure stay too, and the notes. The parts of --elsewhere
are of another machine: they have a section of their own, in place of what it said of that machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.page import page
from bench.peers import merge
from bench.summary import summary


def collect(parts: Sequence[Path]) -> dict[str, Any]:
    """One document of several: rows, failures and lines one after another.

    Raises:
        ValueError: If the parts were not measured on one machine, or there is no document among them.
    """
    documents = [json.loads(part.read_text(encoding="utf-8")) for part in parts if part.suffix == ".json"]
    texts = [part.read_text(encoding="utf-8") for part in parts if part.suffix == ".jsonl"]
    machines = [{**document["machine"], "load": None} for document in documents]
    if not machines or machines.count(machines[0]) < len(machines):
        raise ValueError("the parts must be documents of one machine")
    return {
        "commands": [document["command"] for document in documents],
        "machine": {name: value for name, value in machines[0].items() if name != "load"},
        "loads": [document["machine"]["load"] for document in documents],
        "rows": [row for document in documents for row in document["rows"]],
        "failures": [failure for document in documents for failure in document["failures"]],
        "lines": [json.loads(line) for text in texts for line in text.splitlines()],
    }


def kept_beside(kept: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What was measured now, with all of before that it leaves out.

    Raises:
        ValueError: If the two were not measured on one machine.
    """
    if kept["machine"] != now["machine"]:
        raise ValueError("what is kept must be of the machine that the parts are of")
    rows, lines = {_row(row) for row in now["rows"]}, {_line(line) for line in now["lines"]}
    again = {(entry["suite"], entry["name"]) for entry in (*now["rows"], *now["failures"])}
    return {
        **now,
        "commands": list(dict.fromkeys([*kept["commands"], *now["commands"]])),
        "loads": [*kept["loads"], *now["loads"]],
        "rows": [row for row in kept["rows"] if _row(row) not in rows] + now["rows"],
        "lines": [line for line in kept["lines"] if _line(line) not in lines] + now["lines"],
        "failures": [old for old in kept["failures"] if (old["suite"], old["name"]) not in again] + now["failures"],
        "notes": kept.get("notes", []),
    }


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row measures, whatever came out."""
    return tuple(row.get(name) for name in ("suite", "name", "mode", "rounding", "network", "phase"))


def _line(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in ("bench", "name", "mode", "backend", "n", "kernel"))


def main(arguments: Sequence[str]) -> int:
    """Write the document and the page; 1 if a benchmark failed that was given."""
    parser = argparse.ArgumentParser(prog="bench.collect", description="Write the page of a run.")
    parser.add_argument("parts", nargs="*", type=Path, metavar="PART")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--elsewhere", nargs="+", type=Path, default=(), metavar="PART")
    parser.add_argument("--peers", type=Path, metavar="FILE")
    parser.add_argument("--versions", type=Path, metavar="FILE")
    parser.add_argument("--json", required=True, type=Path, metavar="FILE")
    parser.add_argument("--page", required=True, type=Path, metavar="FILE")
    parser.add_argument("--summary", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    kept = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else {}
    document = collect(options.parts) if options.parts or not kept else kept
    if options.keep and options.parts and kept:
        document = kept_beside(kept, document)
    document["peers"], failed = kept.get("peers"), bool(options.parts and document["failures"])
    if options.peers is not None:
        peers = json.loads(options.peers.read_text(encoding="utf-8"))
        document["peers"], failed = merge(document["peers"], peers), failed or bool(peers["failures"])
    document["versions"] = kept.get("versions")
    document["elsewhere"] = kept.get("elsewhere") or []
    if options.elsewhere:
        again = collect(options.elsewhere)
        others = [other for other in document["elsewhere"] if other["machine"] != again["machine"]]
        document["elsewhere"], failed = [*others, again], failed or bool(again["failures"])
    if options.versions is not None:
        document["versions"] = json.loads(options.versions.read_text(encoding="utf-8"))
    options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(page(document), encoding="utf-8")
    if options.summary is not None:
        options.summary.write_text(summary(document), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
