"""lanner bench, and the server's counters."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from helpers.processes import lanner, serving
from lanner.benchmarks.cases import cases

FIELDS = {
    "suite",
    "name",
    "network",
    "mode",
    "phase",
    "seconds",
    "bytes",
    "rounds",
    "repeat",
    "weights",
    "paper",
}


@pytest.mark.parametrize(
    ("suite", "name", "phases"),
    [
        ("layers", "fc_128x16", ["offline", "online"]),
        ("activations", "relu_1000", ["offline", "online"]),
        ("networks", "mnist_c", ["setup", "offline", "online"]),
    ],
)
def test_bench_measures_a_row_per_phase(tmp_path: Path, suite: str, name: str, phases: list[str]) -> None:
    result = lanner("bench", suite, "--only", name, "--repeat", 1, "--save", tmp_path / "rows.json")
    assert result.code == 0, result.errors
    rows = result.document["rows"]
    assert [row["phase"] for row in rows] == phases
    for row in rows:
        assert set(row) == FIELDS
        assert (row["suite"], row["name"], row["network"], row["repeat"]) == (suite, name, "loopback", 1)
        assert row["weights"] == ("trained" if suite == "networks" else "random")
    assert rows[-1]["seconds"] > 0
    assert rows[-1]["bytes"] > 0
    assert result.document["machine"]["cores"] >= 1
    assert json.loads((tmp_path / "rows.json").read_text()) == result.document


def test_names_are_unique_and_suites_complete() -> None:
    names = [case.name for case in cases("all")]
    assert len(set(names)) == len(names)
    assert {case.suite for case in cases("all")} == {"layers", "activations", "networks"}
    assert lanner("bench", "layers", "--only", "absent").code == 2


def test_metrics_count_predictions(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        metrics = f"127.0.0.1:{probe.getsockname()[1]}"
    with serving(tmp_path / "state", tiny_label, "--metrics", metrics) as server:
        assert lanner("predict", server.address, samples_file, *server.pin).code == 0
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{metrics}/", timeout=10)
    assert lines
    assert all(line.startswith("lanner_") for line in lines)
