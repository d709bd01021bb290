"""The programs in docs/how-to/use-the-gateway.md, run as they stand there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.processes import HUNG, Serving
from lanner.datasets import load_digits

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "use-the-gateway.md"

TRITON, PLAIN = re.findall(r"^```python\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def printed(program: str, gate: Serving, folder: Path) -> str:
    """Run a program beside ``image.npy``, against a gateway at another port than the text's."""
    np.save(folder / "image.npy", load_digits("test")[0][0])
    address = gate.document["url"].removeprefix("http://")
    assert "127.0.0.1:8080" in program
    command = [sys.executable, "-c", program.replace("127.0.0.1:8080", address)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HUNG, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(importlib.util.find_spec("tritonclient") is None, reason="tritonclient[http] is not installed")
def test_triton_program(gate: Serving, tmp_path: Path) -> None:
    assert re.fullmatch(r"\[\[b'0\.\d+:2:two'\]\]\n", printed(TRITON, gate, tmp_path))


def test_plain_program(gate: Serving, tmp_path: Path) -> None:
    lines = printed(PLAIN, gate, tmp_path).splitlines()
    assert "label [2]" in lines
    assert "'online_bytes_sent':" in lines[-1]
