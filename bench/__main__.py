"""Measures what ``lanner bench`` does not: suites that take minutes for each network, and servers of many clients.

    python -m bench imagenet|recurrent|throughput|sessions|estimates|browser [OPTION...]

The options are those of ``lanner bench``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from bench.cases import cases
from bench.other_ways import run_browser, run_estimates, run_sessions, run_throughput
from lanner.benchmarks.machine import machine
from lanner.cli.bench import (
    add_measuring_options,
    check_measuring_options,
    chosen_cases,
    command_of,
    keep_document,
    measure_suite,
    networks_between,
)
from lanner.cli.command import run_command
from lanner.cli.output import Output
from lanner.cli.parser import Parser, add_common
from lanner.errors import MisuseError

#: Suites that measure networks in another way than one prediction at a time: what measures them, and the networks if
#: none is named.
OTHER_WAYS = {
    "throughput": (run_throughput, "mnist_d"),
    "sessions": (run_sessions, "mnist_d"),
    "estimates": (run_estimates, "mnist_a,mnist_c,mnist_d,pneumonia,lenet"),
    "browser": (run_browser, "mnist_d,cifar10_minionn,trees_xgboost_100x6"),
}

SUITES = ("imagenet", "recurrent", *OTHER_WAYS)


def main(arguments: Sequence[str]) -> int:
    """Measure one suite; the exit code."""
    return run_command(list(arguments), parse)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; the result's `command` measures.

    Raises:
        MisuseError: If they are not understood.
        SystemExit: After printing the help.
    """
    parser = Parser(prog="python -m bench", description="Measure networks in long suites.", allow_abbrev=False)
    parser.add_argument(
        "suite",
        choices=SUITES,
        help="imagenet takes minutes for each network, recurrent a folder of data, throughput has several clients at "
        "once, sessions tells what they cost a server, estimates holds estimates and mode auto against every mode, and "
        "browser has the client in headless Chromium",
    )
    add_measuring_options(parser)
    parser.add_argument(
        "--sessions", type=int, metavar="N", help="idle sessions at once of the suite sessions (default: 50)"
    )
    add_common(parser, top=True)
    parser.set_defaults(command=run, parser=parser)
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, output: Output) -> int:
    """Measure the suite that the options name."""
    check_measuring_options(options)
    _check(options)
    if options.suite not in OTHER_WAYS:
        return measure_suite(options, cases, output)
    measure, usual = OTHER_WAYS[options.suite]
    options.only = options.only or usual
    document: dict[str, Any] = {"command": command_of(options), "machine": machine()}
    chosen = chosen_cases(options, cases, "all" if options.suite == "browser" else "networks")
    code, document["rows"] = measure(options, chosen, networks_between(options), output)
    keep_document(document, options, output)
    return code


def _check(options: argparse.Namespace) -> None:
    """Check that the options go with the suite.

    Raises:
        MisuseError: If they do not.
    """
    if options.sessions is not None and options.suite != "sessions":
        raise MisuseError("--sessions goes with the suite sessions", fix="leave it out")
    if options.ray is None:
        return
    if options.suite in ("estimates", "sessions", "browser"):
        raise MisuseError(f"the suite {options.suite} is of this machine", where="--ray", fix="leave it out")
    if options.suite == "throughput" and options.network is not None:
        raise MisuseError("the network of a cluster is what it is", where="--network", fix="leave it out with --ray")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
