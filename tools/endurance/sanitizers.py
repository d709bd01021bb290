"""Runs tests under Miri, which finds undefined behaviour, and the address sanitizer, which finds misused memory.

Miri tests crates that neither open a file nor call the C library, with portable code in place of vector kernels. The
address sanitizer tests crates with `unsafe` code, and those that pass bytes to them, unchanged.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from endurance.trial import Trial

ROOT = Path(__file__).resolve().parents[2]

#: Crates whose unit tests Miri can run in minutes.
MIRI = ("wire", "primitives", "ring")

#: Random cases of each property under Miri, which takes a thousand times as long as the machine.
MIRI_CASES = "2"

#: Crates with `unsafe` code, and those that hand bytes to them; SANITIZED=NAME,... says which crates are run.
ADDRESS = ("wire", "primitives", "ring", "coefficient", "gc", "dpf", "bfv", "ot", "network", "graph")

#: Of these, crates whose tests are beside them alone, in `tests/`.
BESIDE = ("dpf",)


def run(trial: Trial) -> None:
    """Run both, each where it is installed."""
    cargo = shutil.which("cargo")
    if cargo is None or not _succeeds([cargo, "+nightly", "--version"]):
        trial.left_out.append("both: they need a nightly toolchain")
        return
    chosen = trial.chosen(ADDRESS, "SANITIZED")
    test = ["test", "--locked", "--target-dir", str(ROOT / "target" / "sanitizers")]
    if _succeeds([cargo, "+nightly", "miri", "--version"]):
        # Without isolation tests see the clock and the environment, which says how many cases they draw.
        flags = {"MIRIFLAGS": "-Zmiri-disable-isolation", "PROPTEST_CASES": MIRI_CASES}
        _check(trial, "Miri", [cargo, "+nightly", "miri", *test], [crate for crate in MIRI if crate in chosen], flags)
    else:
        trial.left_out.append("Miri is not installed (rustup component add --toolchain nightly miri rust-src)")
    target = subprocess.run([cargo, "+nightly", "-vV"], capture_output=True, text=True, check=True).stdout
    host = re.findall(r"^host: (\S+)$", target, re.MULTILINE)[0]
    flags = {"RUSTFLAGS": "-Zsanitizer=address", "ASAN_OPTIONS": "detect_leaks=1"}
    _check(trial, "the address sanitizer", [cargo, "+nightly", *test, "--target", host], chosen, flags)


def _check(trial: Trial, name: str, command: Sequence[str], crates: Sequence[str], flags: Mapping[str, str]) -> None:
    """Run the tests of crates, the first ones of them where the scale is small."""
    for crate in crates[: trial.scaled(len(crates))]:
        ended = subprocess.run(
            [*command, "--tests" if crate in BESIDE else "--lib", "-p", f"lanner-{crate}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, **flags},
        )
        passed = sum(map(int, re.findall(r"(\d+) passed", ended.stdout)))
        trial.counts[f"{crate}: tests under {name}"] = passed
        held = ended.returncode == 0 and passed > 0
        trial.check(f"{crate}: tests under {name}", _told(ended, passed), "all pass, and there are some", held)


def _told(ended: subprocess.CompletedProcess[str], passed: int) -> str:
    if ended.returncode == 0:
        return f"{passed} pass"
    found = re.findall(
        r"^.*(?:ERROR: AddressSanitizer|Undefined Behavior|FAILED|^error).*$", ended.stdout + ended.stderr, re.M
    )
    return "; ".join(found[:3])[:300] or ended.stderr[-300:]


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
