"""What README.md shows works as shown."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lanner.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the quick start speaks of, as the working directory."""
    x, _ = load_digits("train")
    np.save(tmp_path / "inputs.npy", x[:64])
    np.save(tmp_path / "image.npy", x[0])
    shutil.copy(ROOT / "models" / "mnist_c.onnx", tmp_path / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANNER_HOME", str(tmp_path / "state"))
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_verbs_are_in_the_makefile() -> None:
    documents = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", documents, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {first or second for first, second in verbs}
    assert {"demo", "test"} <= named
    assert [verb for verb in named if not re.search(rf"^{verb}:", makefile, re.MULTILINE)] == []


def test_python_runs(folder: Path) -> None:
    (program,) = blocks("python")
    (folder / "program.py").write_text(f"import numpy\nx = numpy.load('inputs.npy')\n{program}")
    run = subprocess.run([sys.executable, "program.py"], check=True, capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() in {str(digit) for digit in range(10)}


def test_compile_command_runs(folder: Path) -> None:
    command = re.search(r"^\.venv/bin/lanner (compile .*)$", README, re.MULTILINE)
    assert command is not None
    lanner = [sys.executable, "-m", "lanner"]
    subprocess.run([*lanner, *command[1].split()], check=True, capture_output=True, timeout=120)
    assert (folder / "digits.lanner").exists()
