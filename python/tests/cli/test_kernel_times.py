"""Which kernel times commands use, and where they say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner as library
from helpers.models import save_model, tiny_classifier, tiny_samples
from helpers.processes import lanner
from lanner import _native
from lanner.benchmarks.machine import cores
from lanner.cli import main
from lanner.kernel_times import KERNELS, STORED, VARIABLE, machine_name, origin


def times_of(machine: str, factor: float) -> str:
    """The package's table with all times multiplied, as one that was calibrated here."""
    table: dict[str, Any] = json.loads(_native.shipped_kernel_times())
    for rates in (
        table["setup"],
        *(of[phase] for of in table["protocols"].values() for phase in ("offline", "online")),
    ):
        for operation in rates:
            rates[operation] *= factor
    return json.dumps({**table, "machine": machine, "cores": cores(), "origin": origin("calibrated")})


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.json"
    path.write_text(times_of("a slow machine", 2.0), encoding="utf-8")
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / KERNELS).write_text(times_of(machine_name(), 3.0), encoding="utf-8")
    return folder


def test_a_table_of_twice_the_times_doubles_an_estimate(tmp_path: Path, slow: Path) -> None:
    library.compile(tiny_classifier(), tiny_samples(), mode="cheetah").save(tmp_path / "tiny.lanner")
    usual, twice = (
        lanner("estimate", tmp_path / "tiny.lanner", *options).document for options in ((), ("--kernel-times", slow))
    )
    assert (usual["kernel_times"]["table"], twice["kernel_times"]["table"]) == ("shipped", "calibrated")
    assert usual["kernel_times"].keys() == {"table", "machine", "measured", "sha256", "note"}
    assert usual["kernel_times"]["sha256"] != twice["kernel_times"]["sha256"]
    assert (usual["kernel_times"]["measured"], twice["machine"]) == (None, "a slow machine")
    for name, phase in usual["phases"].items():
        assert twice["phases"][name]["seconds"] == pytest.approx(2 * phase["seconds"])
        assert twice["phases"][name]["bytes"] == phase["bytes"]


def test_what_is_kept_comes_before_the_packages_table(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    onnx_file = save_model(tmp_path / "tiny.onnx", tiny_classifier())
    np.save(tmp_path / "x.npy", tiny_samples())
    given = ("--calibration", tmp_path / "x.npy", "--state-dir", state)
    compiled = lanner("compile", onnx_file, "-o", tmp_path / "tiny.lanner", *given)
    assert compiled.code == 0, compiled.errors
    told = lanner("estimate", tmp_path / "tiny.lanner", "--state-dir", state).document["kernel_times"]
    assert (told["table"], told["machine"], told["note"]) == ("calibrated", machine_name(), None)
    used = compiled.document["report"]["kernel_times"]
    assert used == {name: told[name] for name in ("table", "machine", "measured", "sha256")}
    # The owner's half has it, and the public half does not.
    assert library.load(tmp_path / "tiny.lanner").report()["kernel_times"] == used
    library.load(tmp_path / "tiny.lanner").export_public(tmp_path / "tiny.public")
    assert told["sha256"] not in (tmp_path / "tiny.public").read_text(encoding="utf-8")
    assert {path.name for path in state.iterdir()} == {KERNELS}


def test_a_plan_follows_from_its_table(tmp_path: Path, slow: Path) -> None:
    plans = [
        library.compile(tiny_classifier(), tiny_samples(), network="wan", kernel_times=slow).manifest.document["plan"]
        for _ in range(2)
    ]
    assert plans[0] == plans[1]
    by_another = library.compile(tiny_classifier(), tiny_samples(), kernel_times=STORED, state_dir=tmp_path / "none")
    assert by_another.report()["kernel_times"]["table"] == "shipped"
    assert not (tmp_path / "none").exists()


def test_a_table_for_a_mode_that_chooses_nothing_is_refused(
    tmp_path: Path, tiny_onnx: Path, slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", tiny_samples())
    given = ("--mode", "falcon", "--kernel-times", slow)
    compiling = ("compile", tiny_onnx, "-o", tmp_path / "tiny.lanner", "--calibration", tmp_path / "x.npy")
    for command in (compiling, ("demo",)):
        assert main([str(word) for word in (*command, *given, "--json")]) == 2
        assert "only mode auto chooses by kernel times" in json.loads(capsys.readouterr().out)["error"]["what"]


def test_doctor_tells_which_table_there_is(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    assert lanner("doctor", "--state-dir", state).document["kernel_times"]["table"] == "calibrated"
    (state / KERNELS).write_text(times_of("abacus", 1.0).replace(origin("quick")["processor"], "abacus"))
    told = lanner("doctor", "--state-dir", state)
    assert told.document["kernel_times"]["table"] == "shipped"
    assert "of another machine (abacus)" in told.errors
