"""What a plan says that parties hold is what two processes have resident, as Linux tells."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import lanner
from bench.imagenet import imagenet_model
from helpers.processes import Serving, serving

SIDE = 160

#: What a process of Python has resident beside what a plan counts, and what the C library keeps of freed memory, at
#: most.
PROCESS = 128 << 20


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells of memory")
def test_plans_account_for_what_processes_have_resident(tmp_path: Path) -> None:
    x = np.random.default_rng(5).random((3, 3, SIDE, SIDE), dtype=np.float32)
    model = lanner.compile(
        imagenet_model("resnet18", SIDE, 10), x, mode="cheetah", output="logits", precision=8, input_range=(0, 1)
    )
    path, sample = tmp_path / "net.lanner", tmp_path / "x.npy"
    model.save(path)
    np.save(sample, x[0])
    memory = model.report()["memory"]
    of_prediction = memory["client_bytes_per_prediction"] + memory["client_bytes_at_work"]
    client = of_prediction + memory["layout_bytes"]
    server = memory["server_bytes_per_prediction"] + memory["server_bytes_at_work"]
    with serving(tmp_path / "state", path) as server_process:
        before = _resident(server_process, "VmRSS")
        assert before < memory["server_bytes"] + memory["layout_bytes"] + PROCESS
        grown, predicted = _peak_of_prediction(server_process, sample), _resident(server_process, "VmHWM") - before
    assert client / 2 < grown < client + PROCESS
    assert server / 2 < predicted < server + PROCESS


def _peak_of_prediction(server: Serving, sample: Path) -> int:
    """The most bytes that a client's process had resident beyond those of one that does nothing."""
    nothing = _peak([sys.executable, "-m", "lanner", "--version"])
    words = ["predict", server.address, str(sample), *server.pin, "--json"]
    return _peak([sys.executable, "-m", "lanner", *words]) - nothing


def _peak(words: list[str]) -> int:
    """The most bytes that a process has resident, looked at while it runs: what it leaves has its parent's in it."""
    peak = 0
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, _told(process.pid, "VmHWM") or 0)
            time.sleep(0.01)
    assert process.returncode == 0
    return peak


def _resident(server: Serving, what: str) -> int:
    told = _told(server.process.pid, what)
    assert told is not None
    return told


def _told(pid: int, what: str) -> int | None:
    """What Linux tells of a process's memory, in bytes; None of one that has ended."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(rf"^{what}:\s*(\d+) kB$", status, re.MULTILINE)
    return None if found is None else int(found[1]) * 1024
