"""What a network computes is counted by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lanner
from lanner.benchmarks.machine import forget_peaks, peak_memory
from lanner.benchmarks.work import counted_work, multiply_accumulates, rectified
from lanner.datasets import load_digits
from lanner.embedded import compile_embedded

NETWORK = {
    "input": {"shape": [4, 8, 8]},
    "nodes": [
        {"op": {"Conv2d": {"kernel": [3, 3], "groups": 2}}, "inputs": [0], "shape": [6, 4, 4]},
        {"op": "Relu", "inputs": [1], "shape": [6, 4, 4]},
        {"op": "Reshape", "inputs": [2], "shape": [96]},
        {"op": {"Linear": {"outputs": 10}}, "inputs": [3], "shape": [10]},
    ],
}


def test_products_of_weights_and_values_are_counted_by_output() -> None:
    assert multiply_accumulates(NETWORK) == 6 * 4 * 4 * 2 * 9 + 10 * 96


def test_values_of_relus_are_counted() -> None:
    assert rectified(NETWORK) == 6 * 4 * 4


def test_a_part_that_repeats_counts_as_often_as_it_does() -> None:
    step = [
        {"op": {"Linear": {"outputs": 5}}, "inputs": [1], "shape": [5]},
        {"op": "Relu", "inputs": [2], "shape": [5]},
    ]
    last = {"op": {"Linear": {"outputs": 3}}, "inputs": [9], "shape": [3]}
    network = {
        "input": {"shape": [7]},
        "nodes": [{"op": {"Linear": {"outputs": 5}}, "inputs": [0], "shape": [5]}, *step, last],
        "repeats": [{"first": 1, "times": 4, "advances": [[2], [2]]}],
    }
    assert multiply_accumulates(network) == 7 * 5 + 4 * 5 * 5 + 5 * 3
    assert rectified(network) == 4 * 5


@pytest.mark.parametrize("mode", ["cheetah", "tabula"])
def test_steps_are_those_of_layers_or_of_activations_by_their_protocols(mode: str) -> None:
    model = compile_embedded("mnist_d", mode=mode, output="logits")
    layers = lanner.run(model, load_digits("test")[0][0]).layers
    work = counted_work(model, [layers])
    linear = [layer for layer in layers if layer.protocol.endswith((".conv", ".fc"))]
    assert work["linear"]["bytes"] == sum(layer.bytes for layer in linear) > 0
    assert work["linear"]["bytes"] + work["activation"]["bytes"] == sum(layer.bytes for layer in layers)
    assert work["relu"]["count"] == 16 * 12 * 12 + 16 * 4 * 4 + 100


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells of memory")
def test_peaks_of_memory_are_of_both_processes_and_forgotten() -> None:
    mine = bytearray(os.urandom(1 << 10) * (96 << 10))
    with_mine = peak_memory(os.getpid())
    del mine
    forget_peaks(os.getpid())
    without = peak_memory(os.getpid())
    assert with_mine is not None
    assert without is not None
    assert with_mine - without > 2 * (64 << 20)
