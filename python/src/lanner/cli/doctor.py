"""``lanner doctor``: versions, what this CPU offers, and what is missing."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lanner import _native
from lanner.cli.build import build_facts
from lanner.cli.inspect import show_report
from lanner.cli.output import Output
from lanner.errors import MisuseError
from lanner.extras import OPTIONAL, advice, is_installed, require
from lanner.files import write_whole
from lanner.kernel_times import KERNELS, machine_name, origin, stored_times
from lanner.pairings import pairings
from lanner.state import state_directory, state_path

NAME = "doctor"
HELP = "show versions, CPU features and optional packages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="measure this machine's kernel times first, for lanner estimate; takes some minutes on an idle machine",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Print what there is and what is missing."""
    if options.calibrate:
        _calibrate(state_directory(options.state_dir), output)
    native: dict[str, Any] = json.loads(_native.doctor())
    packages = {name: _version(name) for name in ("lanner", "numpy", "pillow", "rich", *OPTIONAL)}
    missing = [
        {"package": name, "needed_for": package.purpose, "fix": advice(package.extra)}
        for name, package in OPTIONAL.items()
        if packages[name] is None
    ]
    operators = _operators()
    stock = _stock(state_path(options.state_dir))
    build = build_facts()
    times = stored_times(None, options.state_dir)
    document = {
        "build": build,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "native": native,
        "stock": stock,
        "kernel_times": times.document(),
        "operators": operators,
        "missing": missing,
    }
    output.table(("package", "version"), [("python", document["python"]), *packages.items()])
    show_report({name: value for name, value in native.items() if name != "rings"}, output)
    output.section("Build", [("wheel", build["wheel"])])
    output.section("Stock", [(name.replace("_", " "), str(value)) for name, value in stock.items()])
    output.section("ONNX operators", [("", ", ".join(operators) or "none without the package onnx")])
    if build["native_version"] != build["version"]:
        output.warn(f"the native module is of version {build['native_version']}: install the package again")
    told = [("table", times.table), ("machine", times.machine), ("measured", times.measured)]
    output.section("Kernel times", [(name, value) for name, value in told if value is not None])
    if times.note is not None:
        output.warn(times.note)
    for lack in missing:
        output.say(f"not installed: {lack['package']}, needed only for {lack['needed_for']}: {lack['fix']}")
    output.document(document)
    return 0


def _calibrate(state: Path, output: Output) -> None:
    """Measure, and keep the table in the state directory."""
    for package in ("onnx", "scipy"):
        require(package, "--calibrate", "onnx", "demo")
    from lanner.benchmarks.kernel_times import calibration_cases, measure, table

    name = machine_name()
    with output.progress("measuring", len(calibration_cases())) as advance:
        kernels = measure(name, advance)
    path = state / KERNELS
    write_whole(path, table({**kernels, "origin": origin("calibrated")}), MisuseError)
    output.say(f"kernel times of {name} are in {path}")


def _stock(state: Path) -> dict[str, Any]:
    """What this machine's clients and servers keep on disk; see ``lanner pairings``."""
    found = pairings(state)
    kept = {
        party: sum(entry["predictions"] for entry in found if entry["party"] == party) for party in ("client", "server")
    }
    return {
        "directory": str(state),
        "pairings": len(found),
        "predictions_as_client": kept["client"],
        "predictions_as_server": kept["server"],
        "bytes": sum(entry["bytes"] for entry in found),
    }


def _version(name: str) -> str | None:
    try:
        # An extra of the package is no part of its name.
        return version(OPTIONAL[name].distribution.partition("[")[0] if name in OPTIONAL else name)
    except PackageNotFoundError:
        return None


def _operators() -> list[str]:
    if not is_installed("onnx"):
        return []
    from lanner.onnx.ending import ENDINGS
    from lanner.onnx.registry import supported_operators

    return sorted({*supported_operators(), *ENDINGS, "Constant"})
