"""What `lanner estimate` tells before a run is what the run then takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lanner
from lanner.benchmarks.kernel_times import Measured, fitted
from lanner.embedded import compile_embedded
from lanner.estimate import KERNELS, PhaseEstimate, estimate
from lanner.options import MODES
from lanner.prediction import Phase

pytest.importorskip("sklearn")


def told(phase: PhaseEstimate | Phase) -> tuple[int, int]:
    return phase.bytes, phase.rounds


def embedded(mode: str) -> lanner.Model:
    if mode == "spectral":
        return compile_embedded("mnist_b", mode, output="logits")
    return compile_embedded("mnist_d", mode)


@pytest.mark.parametrize("mode", MODES)
def test_bytes_and_rounds_are_those_of_a_run(mode: str) -> None:
    from lanner.datasets import load_digits

    model = embedded(mode)
    found = model.estimate()
    prediction = lanner.run(model, load_digits("test")[0][0])
    for name, taken in prediction.phases.items():
        assert told(getattr(found, name)) == told(taken), name
    for phase in ("offline", "online"):
        steps = [step for step in prediction.layers if step.phase == phase]
        layers = [(layer.name, layer.protocol, getattr(layer, phase)) for layer in found.layers]
        assert [(name, protocol, of.bytes, of.rounds) for name, protocol, of in layers] == [
            (step.name, step.protocol, step.bytes, step.rounds) for step in steps
        ]


def test_a_slower_network_costs_its_round_trips_and_bytes(tmp_path: Path) -> None:
    model = embedded("cheetah")
    near, far = (model.estimate(name, state_dir=tmp_path) for name in ("loopback", "wan"))
    for name in ("setup", "offline", "online"):
        here, there = getattr(near, name), getattr(far, name)
        assert told(here) == told(there)
        assert there.seconds - here.seconds == pytest.approx(here.bytes * 8 / 100e6 + here.rounds * 0.04)


def test_every_protocol_of_the_package_has_times(tmp_path: Path) -> None:
    for mode in MODES:
        found = embedded(mode).estimate(state_dir=tmp_path)
        assert found.machine
        assert all(layer.timed for layer in found.layers), mode
        assert all(layer.offline.seconds + layer.online.seconds > 0 for layer in found.layers if layer.online.bytes), (
            mode
        )
        assert all(layer.reason for layer in found.layers)


def test_times_of_this_machine_come_before_those_of_the_package(tmp_path: Path) -> None:
    model = embedded("gazelle")
    table = {
        "machine": "abacus",
        "setup": {"sessions": 7.0},
        "protocols": {"gazelle.conv": {"offline": {}, "online": {"steps": 5.0}}},
    }
    (tmp_path / KERNELS).write_text(json.dumps(table), encoding="utf-8")
    found = model.estimate(state_dir=tmp_path)
    assert (found.machine, found.setup.seconds) == ("abacus", 7.0)
    assert [layer.online.seconds for layer in found.layers if layer.protocol == "gazelle.conv"] == [5.0, 5.0]
    assert all(layer.online.seconds < 1 for layer in found.layers if layer.protocol != "gazelle.conv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"machine": "", "setup": {"a": -1}, "protocols": {}}',
        '{"machine": "", "setup": {"a": 1e999}, "protocols": {}}',
    ],
)
def test_a_damaged_table_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / KERNELS).write_text(text, encoding="utf-8")
    with pytest.raises(lanner.MisuseError, match="--calibrate"):
        embedded("gazelle").estimate(state_dir=tmp_path)


def test_a_client_estimates_from_the_public_half(tmp_path: Path) -> None:
    from lanner.manifest import Manifest

    model = embedded("cheetah")
    model.export_public(tmp_path / "net.public")
    manifest = Manifest.read(tmp_path / "net.public")
    assert estimate(manifest, "lan").document == model.estimate("lan").document


def test_rates_are_found_again() -> None:
    rng = np.random.default_rng(1)
    true = {("a", "steps"): 1e-3, ("a", "products"): 2e-6, ("b", "gates"): 5e-9}

    def step(protocol: str, **counts: float) -> Measured:
        seconds = sum(true[protocol, name] * count for name, count in counts.items())
        return Measured(protocol, "online", counts, seconds)

    runs = [
        [step("a", steps=1, products=float(rng.integers(1, 5000))), step("b", gates=float(rng.integers(1, 10**7)))]
        for _ in range(30)
    ]
    table = fitted("this", runs)["protocols"]
    for (protocol, name), rate in true.items():
        assert table[protocol]["online"][name] == pytest.approx(rate, rel=1e-6)
