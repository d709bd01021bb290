"""The README's commands and Python work as they stand, pasted one after the other."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.processes import HUNG

ROOT = Path(__file__).parents[3]

#: Where the README's server listens.
ADDRESS = "127.0.0.1:7400"


def blocks(section: str) -> list[tuple[str, str]]:
    """The language and the text of each code block of the README's section."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w*)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as `make setup` leaves it: with ``.venv/bin``, ``models`` and ``examples``."""
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name, options in (("lanner", "-m lanner "), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {options}"$@"\n')
        (tools / name).chmod(0o755)
    for name in ("models", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return tmp_path


@pytest.fixture
def address() -> str:
    """A free address: another server may have the README's."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def paste(block: str, folder: Path) -> str:
    """Run a block in a shell, whose every command must succeed; returns what it printed."""
    result = subprocess.run(
        ["/bin/sh", "-e", "-c", block], cwd=folder, capture_output=True, text=True, timeout=HUNG, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextmanager
def pasted_server(block: str, folder: Path) -> Iterator[str]:
    """Run a block whose last command serves, until its end; yields the fingerprint that it prints."""
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(["/bin/sh", "-e", "-c", f"exec {block}"], cwd=folder, stdout=out)
    try:
        deadline = time.monotonic() + HUNG
        while not (found := re.findall(r"^fingerprint (sha256:\w+)", said.read_text(), re.MULTILINE)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield found[0]
    finally:
        process.terminate()
        process.wait(HUNG)


def test_quick_start(folder: Path, address: str) -> None:
    (_, setting_up), (_, estimate), (_, serve), (_, predict), (_, prepare), (language, program) = blocks("Quick start")
    assert language == "python"
    printed = paste(setting_up, folder)
    assert "What each party learns" in printed
    assert {"gazelle", "falcon", "cheetah", "tabula"} <= set(paste(estimate, folder).split())
    with pasted_server(serve.replace(ADDRESS, address), folder) as fingerprint:
        ahead, printed = (
            paste(command.replace(ADDRESS, address).replace("sha256:...", fingerprint), folder)
            for command in (prepare, predict)
        )
    assert "10 in stock" in ahead
    truth = re.findall(r"image\.npy +one digit to classify, a (\d)", paste(setting_up.splitlines()[0], folder))[0]
    assert printed.splitlines()[1].split() == ["image.npy", "0", truth]
    (folder / "program.py").write_text(program)
    assert paste(".venv/bin/python program.py", folder).strip() == truth


def test_second_example(folder: Path, address: str) -> None:
    (_, owner), (_, predict), (_, shown) = blocks("A second example: a chest X-ray")
    compiling, serve = owner.strip().splitlines()
    paste(compiling, folder)
    with pasted_server(serve.replace(ADDRESS, address), folder) as fingerprint:
        printed = paste(predict.replace(ADDRESS, address).replace("sha256:...", fingerprint), folder)
    # The header and the result; times and the last byte differ from run to run.
    assert printed.splitlines()[:2] == shown.splitlines()[:2]
