"""What `lanner estimate` tells before a run is what the run then takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lanner
from helpers.times import marked
from lanner.benchmarks.kernel_times import Measured, fitted, shares
from lanner.capacity import Machine
from lanner.embedded import compile_embedded
from lanner.estimate import PhaseEstimate, estimate
from lanner.kernel_times import KERNELS, STORED, machine_name
from lanner.options import MODES
from lanner.prediction import Phase

pytest.importorskip("sklearn")


def told(phase: PhaseEstimate | Phase) -> tuple[int, int]:
    return phase.bytes, phase.rounds


def embedded(mode: str) -> lanner.Model:
    if mode == "spectral":
        return compile_embedded("mnist_b", mode=mode, output="logits")
    return compile_embedded("mnist_d", mode=mode)


@pytest.mark.parametrize("mode", marked(MODES, {"spectral", "hardened"}))
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


@pytest.mark.slow
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
        "machine": machine_name(),
        "setup": {"sessions": 7.0},
        "protocols": {"gazelle.conv": {"offline": {}, "online": {"steps": 5.0}}},
    }
    (tmp_path / KERNELS).write_text(json.dumps(table), encoding="utf-8")
    found = model.estimate(state_dir=tmp_path, kernel_times=STORED)
    assert (found.machine, found.kernel_times.table, found.setup.seconds) == (machine_name(), "calibrated", 7.0)
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
        embedded("gazelle").estimate(state_dir=tmp_path, kernel_times=STORED)


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
    table = fitted("this", 2, runs)["protocols"]
    for (protocol, name), rate in true.items():
        assert table[protocol]["online"][name] == pytest.approx(rate, rel=1e-6)


def test_whose_the_time_is_and_what_of_it_is_parallel() -> None:
    # Of 10 s the client computes 2 and the server 5; half of what they compute is divided among two cores.
    step = Measured("a", "online", {}, 10.0, 2.0, 5.0, 10.0 + 7.0 / 2)
    assert shares([step], 2) == pytest.approx({"client": 0.2, "server": 0.5, "parallel": 0.5})
    # On four cores the same slowing down is of a smaller part.
    assert shares([step], 4)["parallel"] == pytest.approx(1 / 6)
    # Both at once: no more than the whole.
    both = Measured("a", "online", {}, 1.0, 0.75, 0.75, 5.0)
    assert shares([both, both], 2) == {"client": 0.75, "server": 0.25, "parallel": 1.0}
    for unknown in (Measured("a", "online", {}, 0.0), Measured("a", "online", {}, 1.0)):
        assert shares([unknown], 2)["parallel"] == 0.0
    assert shares([step], 1)["parallel"] == 0.0


def test_more_cores_of_the_party_that_computes_make_it_faster() -> None:
    model = embedded("gazelle")
    usual = model.estimate()
    cores = usual.document["cores"]["server"]
    assert cores >= 1
    same = model.estimate(server=Machine(cores=cores), client=Machine(cores=cores))
    assert same.online == usual.online
    many = model.estimate(server=Machine(cores=8 * cores))
    assert many.document["cores"] == {"client": cores, "server": 8 * cores}
    assert many.online.seconds < usual.online.seconds
    assert (many.online.bytes, many.setup) == (usual.online.bytes, usual.setup)
    one = model.estimate(client=Machine(cores=1), server=Machine(cores=1))
    assert one.online.seconds > usual.online.seconds


def test_memory_of_each_side_says_whether_it_fits_and_for_how_many() -> None:
    model = embedded("gazelle")
    usual = model.estimate().fits
    assert (usual.client, usual.server, usual.sessions) == (True, True, None)
    tight = model.estimate(client=Machine(memory=usual.client_bytes), server=Machine(memory=usual.server_bytes))
    assert (tight.fits.client, tight.fits.server, tight.fits.sessions) == (True, True, 1)
    low = model.estimate(client=Machine(memory=usual.client_bytes - 1), server=Machine(memory=usual.server_bytes - 1))
    assert (low.fits.client, low.fits.server, low.fits.sessions) == (False, False, 0)
    assert low.document["fits"]["sessions"] == 0
