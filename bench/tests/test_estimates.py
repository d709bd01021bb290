"""Estimates beside measurements: factors, and mode auto beside the best single mode."""

from __future__ import annotations

import pytest

from bench.estimates import Closeness, beside_best
from bench.throughput import throughput
from lanner.benchmarks.cases import cases
from lanner.network import LOOPBACK
from lanner.options import Protocols


def row(mode: str, latency: float, network: str = "lan", estimated: float = 1.0, measured: float = 1.0) -> Closeness:
    return Closeness("net", mode, network, "online", estimated, measured, latency)


def test_a_factor_is_the_same_either_way() -> None:
    assert row("auto", 1.0, estimated=3.0, measured=2.0).factor == pytest.approx(1.5)
    assert row("auto", 1.0, estimated=2.0, measured=3.0).factor == pytest.approx(1.5)
    # What a scheduler decides is no difference.
    assert row("auto", 1.0, estimated=1e-6, measured=9e-4).factor == 1


def test_auto_is_held_against_the_best_of_the_others() -> None:
    rows = [
        row("auto", 0.9),
        row("cheetah", 1.0),
        row("gazelle", 3.0),
        row("auto", 2.0, "wan"),
        row("falcon", 1.0, "wan"),
    ]
    assert beside_best(rows) == {("net", "lan"): 0.9, ("net", "wan"): 2.0}
    assert beside_best([row("auto", 1.0)]) == {}


def test_clients_at_once_get_what_the_reference_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.throughput.CLIENTS", (1, 3))
    monkeypatch.setattr("bench.throughput.INPUTS", (2,))
    monkeypatch.setattr("bench.throughput.BATCHES", (2,))
    (case,) = (case for case in cases("networks", "cheetah") if case.name == "mnist_c")
    one, three, in_turn, packed = throughput(case, Protocols("cheetah"), LOOPBACK)
    found = [(each.clients, each.inputs, each.in_turn, each.batch) for each in (one, three, in_turn, packed)]
    assert found == [(1, 2, False, 1), (3, 2, False, 1), (1, 2, True, 1), (1, 2, False, 2)]
    # Samples of one request share the ciphertexts of its layers.
    assert packed.bytes_per_image < one.bytes_per_image
    # Every session has its own set-up, and costs the same.
    assert one.bytes_per_image == pytest.approx(three.bytes_per_image, rel=0.01)
    assert one.images_per_second == pytest.approx(2 / one.seconds)
