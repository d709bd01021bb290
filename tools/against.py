"""Times an older build and this one by turns, so that a busy moment meets both alike: `make bench-against`.

    python tools/against.py --before FOLDER [--only NAME,...] [--turns N] --save FILE

FOLDER is a checkout of the older build in which `make install` was run. FILE is what
`python -m bench.collect --versions` takes. Benchmarks are those of `lanner bench` in mode `cheetah`, exact,
which the two builds must have by the same names; every result is compared with the fixed-point reference outside the
clock. Those of transfers alone are the medians of `relu_bench`, of both parties in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lanner.benchmarks.machine import machine

#: Suite, benchmark, and what `lanner bench --precision` is given, if anything.
BENCHMARKS = (
    ("networks", "mnist_d", None),
    ("networks", "cifar10_minionn", None),
    ("networks", "cifar10_minionn", "16"),
    ("networks", "resnet20", None),
    ("networks", "resnet32", None),
    ("layers", "conv_16x16x128_3x3x128", None),
    ("activations", "maxpool_relu_2x2_of_10000", None),
    ("activations", "relu_100000", None),
)

#: Turns, and predictions that are timed in each.
TURNS, REPEATS = 3, 3

ROOT = Path(__file__).resolve().parents[1]


def measure(folder: Path, suite: str, name: str, precision: str | None) -> dict[str, Any]:
    """The row of all phases together that `lanner bench` measures in a checkout."""
    with tempfile.TemporaryDirectory() as made:
        saved = Path(made) / "rows.json"
        command: list[str | Path] = [
            folder / ".venv" / "bin" / "lanner",
            "bench",
            suite,
            "--mode",
            "cheetah",
            "--rounding",
            "exact",
        ]
        command += ["--only", name, "--repeat", str(REPEATS), "--save", saved]
        command += [] if precision is None else ["--precision", precision]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows: list[dict[str, Any]] = json.loads(saved.read_text(encoding="utf-8"))["rows"]
    return next(row for row in rows if row["phase"] == "total")


def compare(before: Path, benchmark: tuple[str, str, str | None], turns: int) -> dict[str, Any]:
    """One element of ``rows``."""
    load = os.getloadavg()[0]
    runs = [(measure(before, *benchmark), measure(ROOT, *benchmark)) for _ in range(turns)]
    olds, news = ([pair[side] for pair in runs] for side in (0, 1))
    _, name, _ = benchmark
    told = {"name": name, "precision": news[0]["precision"], "weights": news[0]["weights"], "load": load}
    return told | {"before": _summary(olds), "now": _summary(news)}


def relu_rows(before: Path, turns: int) -> list[dict[str, Any]]:
    """As `compare`, of the rows of `relu_bench`."""
    programs = [_built(folder) for folder in (before, ROOT)]
    load = os.getloadavg()[0]
    runs: list[list[dict[str, dict[str, Any]]]] = [[], []]
    for _ in range(turns):
        for program, found in zip(programs, runs, strict=True):
            printed = subprocess.run([program, "5"], check=True, capture_output=True, text=True).stdout
            found.append(_read_relu(printed))
    return [
        {"name": name, "precision": "-", "weights": "-", "load": load}
        | {"before": _summary([run[name] for run in runs[0]]), "now": _summary([run[name] for run in runs[1]])}
        for name in runs[1][0]
    ]


def _built(folder: Path) -> Path:
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--example", "relu_bench", "-p", "lanner-protocol"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "target" / "release" / "examples" / "relu_bench"


def _read_relu(printed: str) -> dict[str, dict[str, Any]]:
    """Rows of values, bits, milliseconds offline and online, and megabytes."""
    found = {}
    for line in printed.splitlines():
        cells = line.split()
        if len(cells) == 5 and cells[0].isdecimal():
            values, bits, offline, online, megabytes = cells
            seconds = (float(offline) + float(online)) / 1e3
            size = round(float(megabytes) * 1e6)
            row = {"seconds": seconds, "fastest": seconds, "bytes": size, "rounds": None, "repeat": 5}
            found[f"relu_{values} of {bits} bits"] = row
    return found


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "seconds": statistics.median(row["seconds"] for row in rows),
        "fastest": min(row["fastest"] for row in rows),
        "bytes": statistics.median_low([row["bytes"] for row in rows]),
        "rounds": rows[0]["rounds"],
        "repeat": sum(row["repeat"] for row in rows),
    }


def _commit(folder: Path) -> str:
    command = ["git", "log", "-1", "--format=%h of %cs"]
    return subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True).stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Compare, and save the document."""
    parser = argparse.ArgumentParser(prog="tools/against.py", description="Times an older build and this one by turns.")
    parser.add_argument("--before", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--only", metavar="NAME,...")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N")
    parser.add_argument("--save", required=True, type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    before: Path = options.before.resolve()
    if not (before / ".venv" / "bin" / "lanner").is_file():
        sys.stderr.write(f"{before} has no build; run 'make install' there\n")
        return 1
    only = None if options.only is None else options.only.split(",")
    document: dict[str, Any] = {"machine": machine(), "before": _commit(before), "now": _commit(ROOT), "rows": []}
    document["machine"].pop("load")
    for benchmark in BENCHMARKS:
        if only is None or benchmark[1] in only:
            row = compare(before, benchmark, options.turns)
            document["rows"].append(row)
            sys.stderr.write(f"{row['name']}: {row['before']['seconds']:.3g} s, now {row['now']['seconds']:.3g} s\n")
    if only is None or "relu" in only:
        document["rows"] += relu_rows(before, options.turns)
    options.save.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
