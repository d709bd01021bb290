"""Runs the same networks in other systems beside lanner: `make bench-peers`.

    python tools/peers/compare.py --python PYTHON [--only NAME,...] [--data DIR] --save FILE

PYTHON is that of an environment with requirements.txt. FILE is what `python -m bench.collect --peers`
takes. All systems of a network are up at the same time and predict by turns, so that a busy moment meets them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from networks import Compared, networks
from numpy.typing import NDArray
from systems import Run, System, lanner, spu

from bench.markdown import ratio, size_of, time_of
from lanner.benchmarks.machine import machine
from lanner.errors import LannerError

#: Turns, unless a prediction of the first takes more than so many seconds.
TURNS, SLOW_TURNS, SLOW = 5, 3, 5.0

#: Bits of our activations: those of a precision that users ask for, and as many as the other system's 18 fraction bits
#: keep of values of a few units.
BITS = (8, 12, 16)

#: Outputs further from the float network's than this part of the largest of them are not that network's.
FAR = 0.1


def compare(name: str, network: Compared, python: Path) -> dict[str, Any]:
    """One element of ``rows``, but for the load: what each system took for a network.

    Raises:
        LannerError: If a system fails, or its outputs are wrong.
    """
    with ExitStack() as stack:
        ours = [stack.enter_context(lanner(network, bits)) for bits in BITS]
        systems: list[System] = [*ours, stack.enter_context(spu(network, python))]
        for system in systems:
            system.predict()
        runs = [[system.predict()] for system in systems]
        slowest = max(run.seconds for (run,) in runs)
        for _ in range((SLOW_TURNS if slowest > SLOW else TURNS) - 1):
            for system, counted in zip(systems, runs, strict=True):
                counted.append(system.predict())
    measured = [_summary(system, counted, ours[0].expected) for system, counted in zip(systems, runs, strict=True)]
    return {"name": name, "weights": network.weights, "systems": measured}


def _summary(system: System, runs: Sequence[Run], expected: NDArray[np.float32]) -> dict[str, Any]:
    """What a system took, and how far its outputs were from the float network's."""
    largest = float(np.abs(expected).max())
    error = max(float(np.abs(run.outputs - expected).max()) for run in runs)
    if not error <= FAR * largest:
        raise LannerError(f"outputs differ by {error:.3g} from the float network's", where=system.name)
    seconds = [run.seconds for run in runs]
    return {
        "system": system.name,
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "bytes": statistics.median_low([run.bytes for run in runs]),
        "messages": statistics.median_low([run.messages for run in runs]),
        "repeat": len(runs),
        "error": error,
        "largest_output": largest,
    }


def _show(row: dict[str, Any]) -> None:
    peer = row["systems"][-1]
    print(f"{row['name']}, {row['weights']} weights")
    for system in row["systems"]:
        words = [
            f"  {system['system']:<18}{time_of(system['seconds']):>9}{size_of(system['bytes']):>10}",
            f"{system['messages']} messages, {system['repeat']} runs, largest error {system['error']:.2g}",
        ]
        if system is not peer:
            times = ratio(peer["seconds"], system["seconds"])
            words.append(f"{peer['system']} / ours: time {times}, bytes {ratio(peer['bytes'], system['bytes'])}")
        print(", ".join(words), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Compare, print and save; 1 if a network failed."""
    parser = argparse.ArgumentParser(prog="tools/peers/compare.py", description="Compare lanner with other systems.")
    parser.add_argument("--python", required=True, type=Path, metavar="PYTHON", help="the other system's interpreter")
    parser.add_argument("--only", metavar="NAME,...", help="the networks of these names")
    parser.add_argument("--data", type=Path, metavar="DIR", help="trained networks (default: $LANNER_DATA)")
    parser.add_argument("--save", required=True, type=Path, metavar="FILE", help="where the JSON document goes")
    options = parser.parse_args(arguments)
    named = options.data or os.environ.get("LANNER_DATA")
    available = networks(None if named is None else Path(named))
    only = list(available) if options.only is None else options.only.split(",")
    absent = [name for name in only if name not in available]
    if absent:
        parser.error(f"no network is named {absent[0]}; give some of {', '.join(available)}")
    document: dict[str, Any] = {"machine": machine(), "rows": [], "failures": []}
    words = "machine: {processor}, {cores} cores, {system}, lanner {lanner}; {load:.1f} processes of other work"
    print(words.format(**document["machine"]), flush=True)
    for name in only:
        _add(document, name, available[name], options.python)
        # What is measured stays, whatever becomes of the next.
        options.save.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if document["failures"] else 0


def _add(document: dict[str, Any], name: str, make: Callable[[], Compared], python: Path) -> None:
    """Compare a network; one that fails does not hide the others."""
    try:
        row = compare(name, make(), python)
    except LannerError as error:
        print(f"{name} failed: {error}", file=sys.stderr, flush=True)
        document["failures"].append({"suite": "peers", "name": name, "error": error.document()})
    else:
        _show(row)
        # The load before all: later, this comparison itself is in it.
        document["rows"].append({**row, "load": document["machine"]["load"]})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
