"""``lanner bench``: time, bytes and rounds of layers, activations and networks on this machine."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanner.cli.output import Output, duration, size
from lanner.errors import MisuseError
from lanner.options import MODES, CompileOptions

if TYPE_CHECKING:
    from lanner.benchmarks.measure import Row

NAME = "bench"
HELP = "measure layers, activations and networks on this machine"

SUITES = ("layers", "activations", "networks", "all")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--mode", choices=MODES, default="auto", help="the protocols (default: auto)")
    parser.add_argument("--only", metavar="NAME", help="the one benchmark of this name")
    parser.add_argument("--repeat", type=int, metavar="N", default=5, help="predictions timed (default: 5)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="trained networks (default: $LANNER_DATA)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="also write the JSON document to a file")


def run(options: argparse.Namespace, output: Output) -> int:
    """Measure a suite and show it beside the paper's figures."""
    if options.repeat < 1:
        raise MisuseError(f"--repeat is {options.repeat}", fix="give 1 or more")
    if importlib.util.find_spec("onnx") is None:
        raise MisuseError("benchmarks need the package onnx", fix="pip install 'lanner[onnx,demo]'")
    CompileOptions("bench", mode=options.mode)
    from lanner.benchmarks.cases import cases
    from lanner.benchmarks.measure import machine, measure

    named = options.data or os.environ.get("LANNER_DATA")
    data = None if named is None else Path(named)
    chosen = [case for case in cases(options.suite, data) if options.only in (None, case.name)]
    if not chosen:
        raise MisuseError(f"no benchmark of {options.suite} is named {options.only}", fix="leave --only out to see all")
    rows: list[Row] = []
    with output.progress("measuring", len(chosen)) as advance:
        for case in chosen:
            advance(case.name, 0)
            rows += measure(case, options.mode, options.repeat)
            advance()
    document = {"machine": machine(), "rows": [row.document() for row in rows]}
    _show(rows, output)
    if options.save is not None:
        options.save.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    output.document(document)
    return 0


def _show(rows: Sequence[Row], output: Output) -> None:
    columns = ("benchmark", "phase", "time", "bytes", "rounds", "GAZELLE's time", "GAZELLE's bytes")
    shown = []
    for row in rows:
        paper = row.paper or {}
        seconds, transferred = paper.get("seconds"), paper.get("bytes")
        shown.append(
            (
                row.name,
                row.phase,
                duration(row.seconds),
                size(row.bytes),
                row.rounds,
                None if seconds is None else duration(seconds),
                None if transferred is None else size(transferred),
            )
        )
    output.table(columns, shown)
    if rows:
        output.say(f"loopback, median of {rows[0].repeat}; the papers' figures are theirs, on their machines")
