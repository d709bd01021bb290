"""What README.md shows works as shown."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from lanner.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: The same with each command on one line.
COMMANDS = re.sub(r" \\\n +", " ", README)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples speak of, as the working directory."""
    x, _ = load_digits("train")
    np.save(tmp_path / "inputs.npy", x[:64])
    np.save(tmp_path / "image.npy", x[0])
    shutil.copy(ROOT / "models" / "mnist_c.onnx", tmp_path / "digits.onnx")
    for name in ("models", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    description = lanner.ImageDescription.read(ROOT / "examples" / "pneumonia" / "image.toml")
    pictures = sorted((ROOT / "examples" / "pneumonia").glob("*.png"))
    np.save(tmp_path / "xrays.npy", np.stack([description.load(picture, (1, 28, 28)) for picture in pictures]))
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


@pytest.mark.parametrize("command", re.findall(r"^\.venv/bin/lanner (compile .*)$", COMMANDS, re.MULTILINE))
def test_compile_commands_run(folder: Path, command: str) -> None:
    words = command.split()
    subprocess.run([sys.executable, "-m", "lanner", *words], check=True, capture_output=True, timeout=120)
    assert (folder / words[words.index("-o") + 1]).exists()


def test_the_picture_gives_what_is_shown(folder: Path) -> None:
    (picture,) = re.findall(r"^\.venv/bin/lanner predict .* (\S+\.png)$", COMMANDS, re.MULTILINE)
    ((shown, probability),) = re.findall(rf"^{re.escape(picture)} +\d+ +(\w+) +([.\d]+)", README, re.MULTILINE)
    description = lanner.ImageDescription.read(folder / "examples" / "pneumonia" / "image.toml")
    keywords: dict[str, Any] = {"mode": "falcon", "image": description, "input_range": (0, 1)}
    model = lanner.compile("models/pneumonia.onnx", np.load("xrays.npy"), **keywords)
    x = description.load(folder / picture, (1, 28, 28))
    assert ["normal", "pneumonia"][model.predict_fixed(x).argmax()] == shown
    assert abs(float(model.predict_probability(x)[0]) - float(probability)) <= 0.01


def test_the_example_runs_and_errs_as_described(folder: Path) -> None:
    """The secure labels that the program prints: as many are wrong as the text says."""
    program = [sys.executable, "examples/pneumonia.py"]
    run = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
    told = dict(re.findall(r"^(\S+): (\w+, [.\d]+)$", run.stdout, re.MULTILINE))
    assert len(told) == 10
    answers = [(name, *answer.split(", ")) for name, answer in told.items()]
    wrong = [name for name, label, _ in answers if not name.startswith(label)]
    (shown,) = re.findall(r"(\w+) answers are wrong", README)
    assert len(wrong) == ["no", "one", "two", "three"].index(shown)
