"""Trained recurrent networks, which a folder of data holds: float against onnxruntime and their authors' scores."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import lanner
from bench.recurrent import NETWORKS, Recurrent, load_recurrent
from lanner.errors import InputError

DATA = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data")

#: Inputs that networks are calibrated on, and of these, compared with onnxruntime.
CALIBRATED, COMPARED = 32, 8

FLOAT_TOLERANCE = 1e-5


def load(name: str) -> Recurrent:
    if not (DATA / "rnn").is_dir():
        pytest.skip(f"recurrent networks are not in {DATA}; set LANNER_DATA to a folder that holds them")
    return load_recurrent(name, DATA)


def scores_of(model: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    scores: NDArray[np.float32] = session.run(None, {session.get_inputs()[0].name: x})[0]
    return scores


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_written_from_weights_score_as_their_authors_programs(name: str) -> None:
    network = load(name)
    if network.scores is not None:
        computed = scores_of(network.model, network.samples)
        assert np.allclose(computed, network.scores, rtol=0, atol=FLOAT_TOLERANCE * np.abs(network.scores).max())


def test_sirnns_network_scores_its_input_as_integers_of_8_bits_do() -> None:
    network = load("fastgrnn_google30")
    (scores,) = scores_of(network.model, network.samples[-1:])
    with np.load(DATA / "rnn" / "fastgrnn_google30_int8.npz") as file:
        assert np.array_equal(network.samples[-1], file["x"])
        assert np.allclose(scores, file["scores_float_sim"], rtol=0, atol=1e-4)
        assert np.abs(scores - file["scores_reference"]).max() < 8
        assert scores.argmax() == file["scores_reference"].argmax()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_reach_the_default_precision(name: str) -> None:
    network = load(name)
    samples = network.samples[-CALIBRATED:]
    compared = samples[-COMPARED:]
    expected = scores_of(network.model, compared)
    model = lanner.compile(network.model, samples, mode="cheetah", output="logits", name=name)
    assert model.precision is not None
    assert model.precision.is_met
    floats, fixed = model.native.float(compared), model.predict_fixed(compared)
    assert np.allclose(floats, expected, rtol=0, atol=FLOAT_TOLERANCE * np.abs(expected).max())
    assert (fixed.argmax(1) == expected.argmax(1)).all()
    if name == "fastgrnn_google30":
        with np.load(DATA / "rnn" / "fastgrnn_google30_int8.npz") as file:
            reference = file["scores_reference"]
        # As far as float scores are from those of its authors' 8-bit integers.
        assert fixed[-1].argmax() == reference.argmax()
        assert np.abs(fixed[-1] - reference).max() < 8


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        load_recurrent("srnn_google13", tmp_path)
    assert caught.value.where == str(tmp_path)
