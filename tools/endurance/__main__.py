"""Runs trials, saves what each found in a file of its own, and writes the page of all that are saved.

    python -m endurance [--only NAME,...] [--scale S] [--save FOLDER] [--page FILE.md]

A trial that misses a bound, or breaks, is told on the page and by exit code 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from endurance.page import page, saved
from endurance.trial import Trial
from endurance.trials import TRIALS
from lanner.benchmarks.machine import machine

ROOT = Path(__file__).resolve().parents[2]


def run(name: str, scale: float, commit: str, before: Mapping[str, Any] | None = None) -> dict[str, object]:
    """Run a trial at a commit; its document. That of the run before is given where there is one."""
    load, start, now = machine()["load"], time.monotonic(), datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix=f"lanner-{name}-") as folder:
        trial = Trial(Path(folder), scale, before=before)
        try:
            TRIALS[name].run(trial)
        except Exception as error:  # noqa: BLE001 - told as what it is: a trial that broke
            traceback.print_exc()
            trial.check("The trial runs to its end", f"{type(error).__name__}: {error}"[:300], "no error", held=False)
    told = {"name": name, "date": f"{now:%Y-%m-%d}", "commit": commit, "seconds": round(time.monotonic() - start, 1)}
    return {**told, "machine": machine() | {"load": load}, **trial.document()}


def _commit() -> str:
    """The commit of this checkout, with a plus sign where files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main(arguments: list[str]) -> int:
    """Run, save, and write the page; 1 if a bound was missed."""
    parser = argparse.ArgumentParser(prog="endurance", description="Run trials of processes over time and in trouble.")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(TRIALS)}")
    parser.add_argument("--scale", type=float, default=1.0, metavar="S", help="part of the full counts (default: 1)")
    parser.add_argument("--save", type=Path, default=ROOT / "docs" / "reliability", metavar="FOLDER")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="where to write the page")
    options = parser.parse_args(arguments)
    names = list(TRIALS) if not options.only else options.only.split(",")
    if unknown := [name for name in names if name not in TRIALS]:
        parser.error(f"there is no trial {unknown[0]}; there are {', '.join(TRIALS)}")
    options.save.mkdir(parents=True, exist_ok=True)
    # Before a record is written, which is a change of the checkout.
    verdicts, commit = [], _commit()
    for name in names:
        record = options.save / f"{name}.json"
        before = json.loads(record.read_text(encoding="utf-8")) if record.exists() else None
        document = run(name, options.scale, commit, before)
        record.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        verdicts.append(document["verdict"])
        print(f"{name}: {document['verdict']}, {document['seconds']} s", file=sys.stderr)
        for line in _told(document):
            print(f"  {line}", file=sys.stderr)
    if options.page is not None:
        options.page.write_text(page(saved(options.save)), encoding="utf-8")
    return 1 if "missed" in verdicts else 0


def _told(document: dict[str, object]) -> list[str]:
    """What somebody who waits wants to know: bounds that were missed, and what could not be run."""
    checks, left_out = document["checks"], document["left_out"]
    assert isinstance(checks, list)
    assert isinstance(left_out, list)
    missed = [
        f"MISSED {check['claim']}: {check['measured']}, not {check['bound']}" for check in checks if not check["held"]
    ]
    return [*missed, *(f"left out: {reason}" for reason in left_out)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
