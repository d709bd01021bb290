"""Which table of kernel times is used, where it is kept, and what is measured in a second."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from lanner import _native, kernel_times
from lanner.benchmarks.machine import Ticks, busy_cores, cores
from lanner.errors import LannerError, MisuseError
from lanner.kernel_times import KERNELS, LOCK, MEASURE, QUICK, SHIPPED, STORED, VARIABLE, measured_times, stored_times
from lanner.quick_times import Timed, fitted, scaled

SHIPPED_TABLE: dict[str, Any] = json.loads(_native.shipped_kernel_times())


class Measuring:
    """Stands in for the measurement: counts how often it is asked, and says that set-ups take as many seconds."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, origin: dict[str, Any], machine: str, cores: int) -> dict[str, Any]:
        self.count += 1
        rates = {"setup": {"sessions": float(self.count)}, "protocols": {}}
        return {**rates, "origin": origin, "machine": machine, "cores": cores}


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(kernel_times, "_NOT_KEPT", {})
    monkeypatch.setattr(Ticks, "others", lambda _, __: 0.0)
    found = Measuring()
    monkeypatch.setattr("lanner.quick_times.quick_table", found)
    return found


def calibrated(state: Path, **changes: object) -> Path:
    """A calibrated table of this machine, but for changes."""
    table = {
        "machine": "this one",
        "cores": cores(),
        "origin": kernel_times.origin("calibrated"),
        "setup": {"sessions": 9.0},
        "protocols": {},
    }
    state.mkdir(mode=0o700, exist_ok=True)
    (state / KERNELS).write_text(json.dumps({**table, **changes}), encoding="utf-8")
    return state / KERNELS


def test_the_first_estimate_measures_and_the_next_one_finds_it(tmp_path: Path, measuring: Measuring) -> None:
    first, second = (measured_times(None, tmp_path / "state") for _ in range(2))
    assert measuring.count == 1
    assert first == second
    assert (first.table, first.note, first.machine) == ("quick", None, kernel_times.machine_name())
    assert first.measured is not None
    assert {path.name for path in (tmp_path / "state").iterdir()} == {QUICK, LOCK}
    assert measured_times(MEASURE, tmp_path / "state").sha256 != first.sha256
    assert measuring.count == 2
    assert stored_times(None, tmp_path / "state") == measured_times(None, tmp_path / "state")


def test_times_of_a_busy_machine_are_not_kept(
    tmp_path: Path, measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ticks, "others", lambda _, __: 0.4)
    times = measured_times(None, tmp_path / "state")
    assert (times.table, times.note) == (
        "shipped",
        "other programs used 40% of this machine's cores while it was measured; estimate again when it is idle, for "
        "times of this machine",
    )
    # Nor measured again by each estimate of the process.
    assert measured_times(None, tmp_path / "state") == times
    assert measuring.count == 1
    assert not (tmp_path / "state" / QUICK).exists()
    asked = measured_times(MEASURE, tmp_path / "state")
    assert asked.table == "quick"
    assert asked.note is not None
    assert "too long" in asked.note


def test_what_others_compute_is_what_is_left_of_all() -> None:
    before = Ticks(wall=10.0, every=100.0, own=5.0, cores=4)
    assert Ticks(wall=12.0, every=103.0, own=6.0, cores=4).others(before) == pytest.approx(0.25)
    assert Ticks(wall=12.0, every=101.0, own=6.5, cores=4).others(before) == 0.0
    assert before.others(before) == 0.0
    now = Ticks.now()
    assert now is None or now.every >= now.own >= 0


def test_busy_cores_are_those_of_now_and_of_this_machine() -> None:
    assert 0.0 <= busy_cores() <= (os.cpu_count() or 1)


def test_compiling_takes_what_is_kept_and_measures_nothing(tmp_path: Path, measuring: Measuring) -> None:
    assert stored_times(None, tmp_path).table == "shipped"
    assert measuring.count == 0
    assert not list(tmp_path.iterdir())
    quick = measured_times(None, tmp_path)
    assert stored_times(None, tmp_path) == quick
    calibrated(tmp_path)
    assert stored_times(None, tmp_path).table == measured_times(None, tmp_path).table == "calibrated"
    assert measuring.count == 1


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("processor", lambda: "another processor"),
        ("cores", lambda: cores() + 1),
    ],
)
def test_a_table_of_another_machine_is_measured_anew(
    tmp_path: Path, measuring: Measuring, monkeypatch: pytest.MonkeyPatch, what: str, other: Callable[[], object]
) -> None:
    here = measured_times(None, tmp_path)
    monkeypatch.setattr(kernel_times, what, other)
    assert stored_times(None, tmp_path).table == "shipped"
    there = measured_times(None, tmp_path)
    assert measuring.count == 2
    assert there.machine != here.machine


@pytest.mark.parametrize("changed", ["features", "build"])
def test_so_is_one_of_other_instructions_or_another_build(tmp_path: Path, measuring: Measuring, changed: str) -> None:
    measured_times(None, tmp_path)
    table = json.loads((tmp_path / QUICK).read_text())
    table["origin"][changed] = ["none"] if changed == "features" else "0.0.1"
    (tmp_path / QUICK).write_text(json.dumps(table))
    measured_times(None, tmp_path)
    assert measuring.count == 2


def test_a_calibrated_table_of_another_machine_is_told_and_not_used(tmp_path: Path, measuring: Measuring) -> None:
    own = kernel_times.origin("calibrated")
    foreign: tuple[dict[str, object], ...] = (
        {"cores": cores() + 1},
        {"origin": {**own, "processor": "abacus"}},
        {"origin": {**own, "features": ["beads"]}},
        # As earlier versions wrote them.
        {"origin": None, "machine": "abacus, 2 cores"},
    )
    for changes in foreign:
        path = calibrated(tmp_path, **changes)
        for times in (stored_times(None, tmp_path), measured_times(None, tmp_path)):
            assert times.table != "calibrated"
            assert times.note is not None
            assert str(path) in times.note
            assert "--calibrate" in times.note
    # Of another build it is of this machine still, and so is one of an earlier version with its name.
    for kept in ({"origin": {**own, "build": "0.0.1"}}, {"origin": None, "machine": kernel_times.machine_name()}):
        calibrated(tmp_path, **kept)
        assert measured_times(None, tmp_path).table == "calibrated"
    assert measuring.count == 1


def test_a_damaged_quick_table_is_measured_anew(tmp_path: Path, measuring: Measuring) -> None:
    for text in ("", "{}", "[]", '{"machine": "m", "setup": {}, "protocols": {}}', "\udcff"):
        (tmp_path / QUICK).write_bytes(text.encode("utf-8", "surrogateescape"))
        assert measured_times(None, tmp_path).table == "quick"
    assert measuring.count == 5


def test_where_nothing_can_be_kept_it_is_measured_once_and_said(tmp_path: Path, measuring: Measuring) -> None:
    (tmp_path / "file").write_text("")
    state = tmp_path / "file" / "state"
    first, second = (measured_times(None, state) for _ in range(2))
    assert measuring.count == 1
    assert first == second
    assert first.table == "quick"
    assert first.note is not None
    assert first.note.startswith(f"what was measured is not kept in {state}: ")


def test_what_cannot_be_measured_is_estimated_by_the_packages_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LannerError("no address is left")

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(kernel_times, "_NOT_KEPT", {})
    monkeypatch.setattr("lanner.quick_times.quick_table", fail)
    times = measured_times(None, tmp_path)
    assert (times.table, times.note) == ("shipped", "this machine was not measured: no address is left")
    assert not (tmp_path / QUICK).exists()


def test_a_table_can_be_named(tmp_path: Path, measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    path = calibrated(tmp_path)
    other = path.rename(tmp_path / "other.json")
    assert stored_times(other).table == stored_times(str(other)).table == "calibrated"
    # Whoever names a file knows whose it is.
    other.write_text(other.read_text().replace("this one", "that one"))
    assert measured_times(other).machine == "that one"
    monkeypatch.setenv(VARIABLE, str(other))
    assert measured_times().machine == "that one"
    assert measured_times(SHIPPED).table == "shipped"
    assert measured_times(stored_times(other)) == stored_times(other)
    assert stored_times(STORED, tmp_path).table == "shipped"
    with pytest.raises(MisuseError, match="no such file"):
        stored_times("calibratd")
    assert measuring.count == 0


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a file as another process that measures does."""
    fcntl = pytest.importorskip("fcntl")
    with path.open("w") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def test_who_comes_while_another_measures_waits_for_what_it_finds(
    tmp_path: Path, measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_times(None, tmp_path)
    text = (tmp_path / QUICK).read_text()
    (tmp_path / QUICK).unlink()
    # Threads of this process stand for processes: the lock of the file alone is between them.
    monkeypatch.setattr(kernel_times, "_THREADS", nullcontext())
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(measured_times(None, tmp_path).table))
    with held(tmp_path / LOCK):
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        (tmp_path / QUICK).write_text(text)
    waiting.join(10)
    assert (found, measuring.count) == (["quick"], 1)


def test_threads_that_come_at_once_measure_once(tmp_path: Path, measuring: Measuring) -> None:
    threads = [threading.Thread(target=measured_times, args=(None, tmp_path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert measuring.count == 1
    assert kernel_times.KernelTimes.of_text((tmp_path / QUICK).read_text()).table == "quick"


def runs(factor: Callable[[str], float], names: Sequence[str] = tuple(SHIPPED_TABLE["protocols"])) -> list[list[Timed]]:
    """A run for each of these protocols, which takes what the package's table says times a factor."""

    def timed(name: str, phase: str) -> Timed:
        rates = SHIPPED_TABLE["protocols"][name][phase]
        counts = {operation: 1e-2 / rate for operation, rate in rates.items()}
        return Timed(name, phase, counts, factor(name) * 1e-2 * len(counts))

    return [[timed(name, phase) for phase in ("offline", "online")] for name in names]


def test_a_machine_of_half_the_speed_has_rates_of_twice_the_size() -> None:
    setup = Timed("setup", "setup", {"sessions": 1.0}, 2 * SHIPPED_TABLE["setup"]["sessions"])
    table = scaled(SHIPPED_TABLE, [*runs(lambda _: 2.0), [setup]])
    for name, rates in SHIPPED_TABLE["protocols"].items():
        for phase in ("offline", "online"):
            for operation, rate in rates[phase].items():
                assert table["protocols"][name][phase][operation] == pytest.approx(2 * rate)
        assert table["protocols"][name]["shares"] == rates["shares"]
    for operation, rate in SHIPPED_TABLE["setup"].items():
        assert table["setup"][operation] == pytest.approx(2 * rate)


def test_protocols_that_are_not_measured_change_as_those_of_their_family() -> None:
    factors = {"cheetah.conv": 4.0, "yao.activation": 8.0, "ot.activation": 2.0}
    table = scaled(SHIPPED_TABLE, runs(factors.__getitem__, tuple(factors)))["protocols"]
    for name, factor in (
        ("cheetah.fc", 4.0),
        ("yao.argmax", 8.0),
        ("falcon.softmax", 8.0),
        ("ot.function", 2.0),
        # Of families of which nothing is measured: as all together.
        ("hardened.network", 4.0),
        ("gazelle.conv", 4.0),
    ):
        for operation, rate in SHIPPED_TABLE["protocols"][name]["online"].items():
            if operation != "steps":
                assert table[name]["online"][operation] == pytest.approx(factor * rate, rel=0.2), name
    for name, of in scaled(SHIPPED_TABLE, [])["protocols"].items():
        assert of == SHIPPED_TABLE["protocols"][name]


def test_what_each_step_takes_and_what_it_computes_have_factors_of_their_own() -> None:
    rates = SHIPPED_TABLE["protocols"]["ot.activation"]["offline"]
    # Waiting as long as elsewhere, computing four times as long.
    true = {operation: rate if operation == "steps" else 4 * rate for operation, rate in rates.items()}

    def step(size: float) -> Timed:
        counts = {operation: 1.0 if operation == "steps" else size for operation in rates}
        return Timed(
            "ot.activation", "offline", counts, sum(true[operation] * count for operation, count in counts.items())
        )

    found = scaled(SHIPPED_TABLE, [[step(100.0), step(100_000.0)], [step(1000.0)]])["protocols"]["ot.activation"]
    for operation, rate in true.items():
        assert found["offline"][operation] == pytest.approx(rate, rel=0.2), operation


def test_factors_are_found_again_in_phases_of_several_protocols() -> None:
    true = {"a": 3.0, "b": 0.5, "c": 10.0}

    def run(**parts: float) -> list[tuple[dict[tuple[str, bool | str], float], float]]:
        return [({(name, False): part}, part * true[name]) for name, part in parts.items()]

    found = fitted([run(a=0.1, b=0.01), run(b=0.2, a=0.01), run(c=0.05, a=0.01), run(a=0.03, c=0.03)])
    for name, factor in true.items():
        assert found[name, False] == pytest.approx(factor, rel=0.1), name


def test_a_part_that_is_next_to_nothing_follows_the_others() -> None:
    found = fitted([[({("a", False): 0.1}, 0.2), ({("b", False): 1e-8}, 1e-6)]])
    assert found["a", False] == pytest.approx(2.0, rel=0.01)
    # By itself it would be 100.
    assert found["b", False] == pytest.approx(2.0, rel=0.3)


def test_this_machine_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(Ticks, "others", lambda _, __: 0.0)
    times = measured_times(None, tmp_path)
    assert (times.table, times.note) == ("quick", None)
    assert times.text is not None
    table = json.loads(times.text)
    assert table["cores"] == len(os.sched_getaffinity(0))
    assert set(table["protocols"]) == set(SHIPPED_TABLE["protocols"])
    changed = {
        name
        for name, rates in SHIPPED_TABLE["protocols"].items()
        if rates["offline"] != table["protocols"][name]["offline"] and rates["offline"]
    }
    assert {"gazelle.conv", "falcon.fc", "cheetah.conv", "delphi.fc", "yao.activation", "ot.softmax"} <= changed
    assert {"tabula.lookup", "spectral.encrypt", "yao.argmax"} <= changed
