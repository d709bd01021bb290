"""Compares the times of operations on two pools of secrets by dudect's method, Welch's t-test.

Two operations differ on purpose, which checks that a run can find a difference. The machine should be idle.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endurance.trial import Trial

ROOT = Path(__file__).resolve().parents[2]

#: Measurements of each operation.
MEASUREMENTS = 20_000


def run(trial: Trial) -> None:
    """Measure all operations."""
    cargo = shutil.which("cargo")
    if cargo is None:
        trial.left_out.append("it needs cargo")
        return
    count = trial.scaled(MEASUREMENTS, 1000)
    command = [cargo, "run", "--quiet", "--locked", "--release", "-p", "lanner-research", "--example", "constant_time"]
    ended = subprocess.run([*command, "--", "--json", str(count)], capture_output=True, text=True, check=True, cwd=ROOT)
    judge(trial, [json.loads(line) for line in ended.stdout.splitlines()])


def judge(trial: Trial, operations: Sequence[dict[str, Any]]) -> None:
    """Hold what was measured of operations against what they should do."""
    trial.counts["operations"] = len(operations)
    trial.counts["measurements of each"] = sum(operation["measurements"] for operation in operations[:1])
    planted = [operation for operation in operations if operation["leaks"]]
    trial.check("Operations that differ on purpose are among them", len(planted), "above 0", bool(planted))
    for operation in operations:
        name, t, limit = operation["operation"], abs(operation["t"]), operation["limit"]
        if operation["leaks"]:
            trial.check(f"{name}: differs, on purpose", f"|t| = {t:.4g}", f"above {limit}", t > limit)
        else:
            trial.check(f"{name}: does not differ", f"|t| = {t:.4g}", f"at most {limit}", t <= limit)
