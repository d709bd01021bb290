"""Compares predictions of a wheel for another processor or system, run by an emulator, with those of the package here.

    python tools/foreign_wheel.py WHEEL MODEL INPUT --packages FOLDER --python COMMAND...

The server runs here, and each client connects to it over TLS and loopback. COMMAND starts a Python for that machine,
such as ``qemu-aarch64 -L ROOT ROOT/usr/bin/python3.11`` or ``wine python.exe``; FOLDER has the packages that the wheel
requires, which ``pip install --target FOLDER --platform ... --only-binary :all:`` puts there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lanner.cli.process import ServerProcess

#: What starts ``lanner``, whatever an emulator makes of environment variables.
PROGRAM = (
    "import runpy, sys; sys.path[:0] = {paths}; sys.argv[0] = 'lanner'; runpy.run_module('lanner', run_name='__main__')"
)

#: Seconds that a command may take: emulators are slow.
PATIENCE = 1800


def main() -> int:
    """Print which machine the wheel runs on, and whether its predictions are the same; return 1 if they are not."""
    parser = argparse.ArgumentParser(description="Compare the predictions of a wheel for another machine.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--python", nargs=argparse.REMAINDER, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(options.wheel) as archive:
            archive.extractall(Path(folder) / "wheel")
        foreign = [*options.python, "-c", PROGRAM.format(paths=[f"{folder}/wheel", str(options.packages.resolve())])]
        state = ["--state-dir", f"{folder}/state"]
        machine = lanner(foreign, "doctor", *state)["native"]
        print(f"{options.wheel.name}: {machine['system']}, {machine['architecture']}, {machine.get('kernels', '')}")
        with ServerProcess([str(options.model)]) as server:
            trusted = ["--pin", str(server.trusted()["pin"]), "--timeout", str(PATIENCE), *state]
            asked = ["predict", server.address, str(options.input.resolve()), *trusted]
            here, there = (lanner(command, *asked) for command in ([sys.executable, "-m", "lanner"], foreign))
    same = here["predictions"] == there["predictions"]
    print(f"{'the same' if same else 'other'} predictions as here, of {len(there['predictions'])} inputs")
    return 0 if same else 1


def lanner(command: Sequence[str], *arguments: str) -> dict[str, Any]:
    """The document that a command prints."""
    done = subprocess.run(
        [*command, *arguments, "--json"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode != 0:
        sys.exit(f"foreign_wheel: {' '.join(command[:1])} failed: {done.stderr or done.stdout}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


if __name__ == "__main__":
    sys.exit(main())
