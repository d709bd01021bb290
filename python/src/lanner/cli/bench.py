"""``lanner bench``: time, bytes and rounds of layers, activations and networks on this machine."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanner.cli.arguments import add_protocol_options
from lanner.cli.on_ray import add_ray_option
from lanner.cli.output import Output, duration, size
from lanner.cli.written import Written
from lanner.errors import LannerError, MisuseError
from lanner.extras import require
from lanner.files import write_whole
from lanner.network import Network, read_network
from lanner.options import MODES, CompileOptions, Protocols
from lanner.precision import DEFAULT
from lanner.ray.cluster import LOCAL, cluster
from lanner.ray.tasks import on_each, whole_node
from lanner.wording import counted

if TYPE_CHECKING:
    from lanner.benchmarks.cases import Case
    from lanner.benchmarks.rows import Row

NAME = "bench"
HELP = "measure layers, activations and networks on this machine"

SUITES = ("layers", "activations", "networks", "trees", "transformers", "all")

#: What the parser adds to the options.
_OF_PARSER = ("command", "parser")

#: Finds the benchmarks of a suite for a mode; a folder of data may hold trained networks.
Finder = Callable[[str, str, Path | None], "list[Case]"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("suite", choices=SUITES, help="what to measure; all includes every suite except transformers")
    add_measuring_options(parser)


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """The options of what measures: for what networks are compiled, between whom, how often, and what is kept."""
    add_protocol_options(parser)
    parser.add_argument(
        "--precision",
        metavar="P",
        help=f"largest error of a score, as a percentage, or bits of all activations (default: {DEFAULT}% for trained"
        " weights, 8 bits for random ones)",
    )
    parser.add_argument(
        "--kept-bits",
        type=int,
        metavar="K",
        help="mode tabula: bits of a value that each lookup keeps",
    )
    parser.add_argument(
        "--network",
        action="append",
        metavar="NAME,...",
        help="networks between the parties: loopback, lan, wan or FILE.toml, one or several (default: loopback)",
    )
    parser.add_argument("--only", metavar="NAME,...", help="run only the benchmarks of these names")
    parser.add_argument(
        "--repeat",
        type=int,
        metavar="N",
        help="predictions to time (default: 9; 5 if one takes over 5 s, 3 if over 20 s)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with trained networks (default: $LANNER_DATA)")
    add_ray_option(parser, "measure each benchmark on a node of its own")
    parser.add_argument(
        "--save", type=Path, action=Written, metavar="FILE", help="also write the JSON document to this file"
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Measure a suite and show it beside what papers give; a benchmark that fails does not hide the others."""
    check_measuring_options(options)
    from lanner.benchmarks.cases import cases

    return measure_suite(options, cases, output)


def check_measuring_options(options: argparse.Namespace) -> None:
    """Check what `add_measuring_options` was given.

    Raises:
        MisuseError: If it does not go together, or with the suite.
    """
    if options.repeat is not None and options.repeat < 1:
        raise MisuseError(f"--repeat is {options.repeat}", fix="give 1 or more")
    require("onnx", "measuring benchmarks", "onnx", "demo")
    CompileOptions(
        name="bench",
        mode=options.mode,
        rounding=options.rounding,
        precision=options.precision,
        kept_bits=options.kept_bits,
    )
    if options.rounding in ("faithful", "stochastic") and options.suite in ("layers", "activations", "all"):
        raise MisuseError(
            f"{options.rounding} rounding goes with labels alone, and layers and activations have none",
            where="--rounding",
            fix="measure the suite networks, or round exactly",
        )


def measure_suite(options: argparse.Namespace, find: Finder, output: Output) -> int:
    """Measure the benchmarks of a suite that the options name, one prediction at a time; the exit code."""
    from lanner.benchmarks.machine import machine

    chosen, networks = chosen_cases(options, find), networks_between(options)
    document: dict[str, Any] = {"command": command_of(options), "machine": machine(), "rows": [], "failures": []}
    if options.ray is not None:
        document["machines"] = {}
    failures, rows = [], []
    with output.progress("measuring", len(chosen)) as advance:
        for case, measured in zip(chosen, _of_each(options, find, chosen, networks), strict=True):
            if measured.error is None:
                totals = (f"{row.network} {duration(row.seconds)}" for row in measured.rows if row.phase == "total")
                output.tell(f"{case.name}: {', '.join(totals)}")
                rows += measured.rows
            else:
                output.warn(f"{case.name} failed: {measured.error}")
                failed = {"suite": case.suite, "name": case.name, "error": measured.error.document()}
                document["failures"].append(failed)
                failures.append(measured.error)
            if options.ray is not None:
                document["machines"][case.name] = measured.machine
            advance(case.name)
    document["rows"] = [row.document() for row in rows]
    _show(rows, output)
    keep_document(document, options, output)
    if failures:
        output.warn(f"{len(failures)} of {counted(len(chosen), 'benchmark')} failed")
    return failures[0].exit_code if failures else 0


def keep_document(document: dict[str, Any], options: argparse.Namespace, output: Output) -> None:
    """Print the document, and write it where the options say."""
    if options.save is not None:
        write_whole(options.save, json.dumps(document, indent=1) + "\n", MisuseError)
    output.document(document)


@dataclass(frozen=True, slots=True)
class _Measured:
    """What became of a benchmark.

    Attributes:
        rows: What it took.
        error: Why it failed, if it did.
        machine: Where it was measured.
    """

    rows: list[Row]
    error: LannerError | None
    machine: dict[str, Any]


def _of_each(
    options: argparse.Namespace, find: Finder, chosen: Sequence[Case], networks: Sequence[Network]
) -> Iterator[_Measured]:
    """What became of each benchmark, in order; on a cluster several are measured at once, on a node each."""
    if options.ray is None:
        yield from (_tried(case, options, networks) for case in chosen)
        return
    # The parser's functions are of no use elsewhere.
    sent = argparse.Namespace(**{name: value for name, value in vars(options).items() if name not in _OF_PARSER})
    with cluster(options.ray):
        yield from on_each(_as_task, [case.name for case in chosen], sent, find, networks, cpus=whole_node())


def _as_task(name: str, options: argparse.Namespace, find: Finder, networks: Sequence[Network]) -> _Measured:
    options.only = name
    (case,) = chosen_cases(options, find)
    return _tried(case, options, networks)


def _tried(case: Case, options: argparse.Namespace, networks: Sequence[Network]) -> _Measured:
    from lanner.benchmarks.machine import machine

    try:
        return _Measured(_measure(case, options, networks), None, machine())
    except LannerError as error:
        return _Measured([], error, machine())


def _measure(case: Case, options: argparse.Namespace, networks: Sequence[Network]) -> list[Row]:
    from lanner.benchmarks.measure import measure

    # Mode auto plans for the network that it is measured over.
    planned = [[network] for network in networks] if options.mode == "auto" else [networks]
    return [
        row
        for alike in planned
        for row in measure(
            case,
            Protocols(options.mode, options.rounding, options.precision, options.kept_bits, alike[0]),
            alike,
            options.repeat,
        )
    ]


def chosen_cases(options: argparse.Namespace, find: Finder, suite: str | None = None) -> list[Case]:
    """The benchmarks of a suite that the options name; their own suite's where none is given."""
    suite = suite or options.suite
    named = options.data or os.environ.get("LANNER_DATA")
    data = None if named is None else Path(named)
    if data is not None and not data.is_dir():
        raise MisuseError("there is no such folder", where=str(data), fix="check --data or $LANNER_DATA")
    available = {case.name: case for case in find(suite, options.mode, data)}
    if not available:
        able = " or ".join(mode for mode in MODES if find(suite, mode, data))
        raise MisuseError(f"{suite} are not measured in mode {options.mode}", fix=f"give --mode {able}")
    if options.only is None:
        return list(available.values())
    absent = [name for name in options.only.split(",") if name not in available]
    if absent:
        fix = f"give some of {', '.join(available)}"
        raise MisuseError(f"no benchmark of {suite} is named {absent[0]}", fix=fix)
    return [available[name] for name in options.only.split(",")]


def networks_between(options: argparse.Namespace) -> list[Network]:
    """What lies between the parties, by the options."""
    return [read_network(name) for text in options.network or ["loopback"] for name in text.split(",")]


def command_of(options: argparse.Namespace) -> str:
    """The command that measures the same again; where files lie on this machine, and a cluster is, is left out."""
    words = [*options.parser.prog.split(), options.suite, "--mode", options.mode]
    given = {
        "rounding": options.rounding,
        "precision": options.precision,
        "kept-bits": options.kept_bits and str(options.kept_bits),
        "network": options.network and ",".join(options.network),
        "only": options.only,
        "sessions": getattr(options, "sessions", None) and str(options.sessions),
    }
    for name, value in given.items():
        words += [] if value is None else [f"--{name}", value]
    if options.ray is not None:
        words += ["--ray", LOCAL if options.ray == LOCAL else "ADDRESS"]
    words += [] if options.repeat is None else ["--repeat", str(options.repeat)]
    return shlex.join(words)


def _show(rows: Sequence[Row], output: Output) -> None:
    columns = (
        "benchmark",
        "network",
        "rounding",
        "phase",
        "time",
        "server",
        "bytes",
        "rounds",
        "n",
        "paper",
        "public code",
    )
    shown = [
        (
            row.name,
            row.network,
            row.rounding,
            row.phase,
            duration(row.seconds),
            None if row.server_seconds is None else duration(row.server_seconds),
            size(row.bytes),
            row.rounds,
            row.repeat,
            _figures(row.paper),
            _figures(row.public_code),
        )
        for row in rows
    ]
    output.table(columns, shown)
    output.say("time: what the client waits; server: what the server computes; medians of n, TLS on, both parties here")


def _figures(given: dict[str, Any] | None) -> str:
    """Seconds and bytes for people, as far as they are given."""
    seconds, transferred = (given or {}).get("seconds"), (given or {}).get("bytes")
    told = (None if seconds is None else duration(seconds), None if transferred is None else size(transferred))
    return ", ".join(text for text in told if text is not None)
