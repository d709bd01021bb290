"""Random small networks at every opset from 7 on: float equals onnxruntime, fixed point is near, others are refused.

The seeds are fixed, so that a failure is found again by its seed.
"""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import lanner
from helpers.random_graphs import POISONS, RandomNetwork, random_network
from helpers.times import marked
from lanner._native import run_in_memory
from lanner.errors import UnsupportedOpError
from lanner.options import INTERACTIVE_MODES

#: The newest opset that the onnxruntime of the lock file takes.
NEWEST = 26

OPSETS = range(7, NEWEST + 1)
SEEDS = range(80)

#: Those before them are two of each opset.
LONG = SEEDS[40:]

#: Of the largest score: twice the precision that is aimed at, which few of these networks miss.
FIXED_TOLERANCE = 0.01


def opset_of(seed: int) -> int:
    return OPSETS[seed % len(OPSETS)]


@pytest.mark.parametrize("seed", marked(SEEDS, LONG, int))
def test_random_networks_compute_what_onnxruntime_does(seed: int) -> None:
    network = random_network(seed, opset_of(seed))
    expected = reference(network)
    model = lanner.compile(network.model, network.x, output="logits", allow_imprecise=True)
    computed = model.native.float(network.x)
    largest = float(np.abs(computed).max())
    scores = softmax(computed) if network.model.graph.node[-1].op_type == "Softmax" else computed
    assert np.allclose(scores, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max()))
    assert np.allclose(model.predict_float(network.x), computed, rtol=1e-4, atol=1e-4 * largest)
    assert np.abs(model.predict_fixed(network.x) - computed).max() <= FIXED_TOLERANCE * largest
    assert model.predict_integers(network.x)[1] == 0


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
@pytest.mark.parametrize("seed", marked(SEEDS[::5], LONG, int))
def test_every_mode_runs_what_the_importer_takes(mode: str, seed: int) -> None:
    network = random_network(seed, opset_of(seed))
    rounding = "exact" if mode == "cheetah" else None
    model = lanner.compile(
        network.model, network.x, mode=mode, rounding=rounding, output="logits", allow_imprecise=True
    )
    prediction = json.loads(run_in_memory(model.native, network.x[:1]))[0]
    assert prediction["integers"] == list(model.predict_integers(network.x[:1])[0][0])


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("seed", range(100, 103))
def test_what_is_not_supported_is_refused_by_name_wherever_it_stands(poison: str, seed: int) -> None:
    network = random_network(seed, opset_of(seed), poison)
    with pytest.raises(UnsupportedOpError) as caught:
        lanner.compile(network.model, network.x, output="logits")
    assert network.poison in caught.value.where
    assert poison in caught.value.what


def reference(network: RandomNetwork) -> NDArray[np.float32]:
    """onnxruntime's outputs, sample by sample: a constant joined to the batch has a batch of one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Its optimiser makes pools of pads that it then refuses.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(network.model.SerializeToString(), options)
    return np.concatenate([session.run(None, {"x": sample[np.newaxis]})[0] for sample in network.x])


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    scores: NDArray[np.float32] = exponentials / exponentials.sum(1, keepdims=True)
    return scores
