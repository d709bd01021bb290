"""What a data owner's commands load: nothing of what compiles, trains, draws or answers HTTP, even if installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from helpers.models import tiny_samples
from helpers.processes import HUNG, serving

#: Packages of the extras.
OPTIONAL = {
    "onnx",
    "onnxruntime",
    "sklearn",
    "skl2onnx",
    "scipy",
    "matplotlib",
    "torch",
    "fastapi",
    "uvicorn",
    "opentelemetry",
}

PROGRAM = """
import json, sys
from lanner.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def loaded(*arguments: object) -> set[str]:
    """The top-level packages that a command has loaded at its end."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=True)
    code, packages = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return set(packages)


#: What Windows does not have.
ELSEWHERE = """
import os, sys
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios", "tty")))
for name in ("fork", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "getuid", "geteuid"):
    delattr(os, name)
"""


def test_commands_run_where_a_system_is_no_unix(tiny_label: Path, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    np.save(x, tiny_samples(1, seed=5))
    with serving(tmp_path / "server", tiny_label) as server:
        for command in (
            ("--help",),
            ("doctor", "--state-dir", tmp_path / "state"),
            ("inspect", tiny_label),
            ("predict", server.address, x, *server.pin),
        ):
            program = [sys.executable, "-c", ELSEWHERE + PROGRAM, *map(str, command)]
            done = subprocess.run(program, capture_output=True, text=True, timeout=HUNG, check=False)
            assert done.returncode == 0, (command, done.stderr)


def test_commands_of_compiled_models_load_no_optional_package(tiny_label: Path, tmp_path: Path) -> None:
    x, public, keys = tmp_path / "x.npy", tmp_path / "tiny.public", tmp_path / "tiny.keys"
    np.save(x, tiny_samples(1, seed=5))
    for command in (
        ("export", tiny_label, "-o", public),
        ("inspect", tiny_label),
        ("estimate", public),
        ("keygen", public, "-o", keys),
        ("run", tiny_label, x),
        ("pairings",),
    ):
        assert not loaded(*command) & OPTIONAL, command
    with serving(tmp_path / "server", tiny_label) as server:
        assert not loaded("prepare", server.address, "--count", 1, *server.pin) & OPTIONAL
        assert not loaded("predict", server.address, x, *server.pin) & OPTIONAL


def test_compiling_loads_onnx(tiny_onnx: Path, tmp_path: Path) -> None:
    # What the test above looks at does tell.
    x = tmp_path / "x.npy"
    np.save(x, tiny_samples(8, seed=5))
    assert "onnx" in loaded("compile", tiny_onnx, "-o", tmp_path / "tiny.lanner", "--calibration", x)
