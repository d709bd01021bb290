"""Compares predictions of a wheel for another processor or system, run by an emulator, with those of the package here.

    python tools/foreign_wheel.py WHEEL MODEL INPUT --packages FOLDER --python COMMAND...

The server runs here, and each client connects to it over TLS and loopback. COMMAND starts a Python for that machine,
such as ``qemu-aarch64 -L ROOT ROOT/usr/bin/python3.11`` or ``wine python.exe``; FOLDER has the packages that the wheel
requires, which ``pip install --target FOLDER --platform ... --only-binary :all:`` puts there.

What a server tells must be the same here and there, with the same bytes and rounds offline and online, and its logits
those of the fixed-point reference, bit for bit, if the model rounds exactly and tells logits.
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

import numpy as np

import lanner as package
from lanner.cli.process import ServerProcess
from lanner.inputs import fit_sources, read_sources

#: What starts ``lanner``, whatever an emulator makes of environment variables.
PROGRAM = (
    "import runpy, sys; sys.path[:0] = {paths}; sys.argv[0] = 'lanner'; runpy.run_module('lanner', run_name='__main__')"
)

#: A prediction as the command prints it.
Prediction = dict[str, Any]

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
            here, there = (
                lanner(command, *asked)["predictions"] for command in ([sys.executable, "-m", "lanner"], foreign)
            )
    complaints = differences(here, there) + from_reference(options.model, options.input, there)
    for one, other in zip(here, there, strict=False):
        print(f"here {cost_of(one)}; there {cost_of(other)}")
    print("\n".join(complaints) or f"{len(there)} predictions, the same as here and as the fixed-point reference")
    return 1 if complaints else 0


def differences(here: Sequence[Prediction], there: Sequence[Prediction]) -> list[str]:
    """Sentences about what is not the same, which also none at all are, and more or fewer there than here."""
    if not here or len(here) != len(there):
        return [f"{len(here)} predictions here, {len(there)} there"]
    return [
        f"prediction {index}: {what} here {one.get(what)}, there {other.get(what)}"
        for index, pair in enumerate(zip(here, there, strict=True))
        for one, other in [tuple(map(repeatable, pair))]
        for what in sorted(one.keys() | other.keys())
        if one.get(what) != other.get(what)
    ]


def repeatable(prediction: Prediction) -> Prediction:
    """What is the same whenever an input is predicted: no times, and no bytes of the set-up, which has signatures.

    Nor how a system writes the input's path.
    """
    told = {name: value for name, value in prediction.items() if name not in {"phases", "layers", "input"}}
    costs = {
        f"{what} {name}": prediction["phases"][name][what]
        for name in ("offline", "online")
        for what in ("bytes_sent", "bytes_received", "rounds")
    }
    return told | costs


def from_reference(model: Path, given: Path, there: Sequence[Prediction]) -> list[str]:
    """A sentence if the logits are told and are not those of the fixed-point reference."""
    loaded = package.load(model)
    if loaded.secure_error != 0 or any(prediction["logits"] is None for prediction in there):
        return ["the model rounds otherwise than its reference, or does not tell logits: compare one that does"]
    samples = fit_sources(read_sources([given]), loaded.manifest)
    expected, _ = loaded.predict_integers(np.stack([sample.values for sample in samples]))
    units = loaded.reals(np.ones_like(expected))
    told = np.rint(np.array([prediction["logits"] for prediction in there]) / units)
    return [] if np.array_equal(told, expected) else [f"integer logits of the reference {expected}, there {told}"]


def cost_of(prediction: Prediction) -> str:
    """Seconds and bytes of each phase."""
    return ", ".join(
        f"{name} {cost['seconds']:.2f} s {cost['bytes_sent'] + cost['bytes_received']} bytes"
        for name, cost in prediction["phases"].items()
    )


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
