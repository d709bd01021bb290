"""lanner debug: one sample layer by layer, and where float, fixed point and both parties part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import lanner as library
from helpers.models import make_model, random_weights, tiny_classifier, tiny_samples
from helpers.processes import lanner
from lanner.divergence import diverge, parting
from lanner.errors import InputError


@pytest.mark.parametrize("mode", ["auto", "gazelle", "cheetah", "tabula"])
def test_parties_compute_the_reference_layer_by_layer(mode: str) -> None:
    model = library.compile(tiny_classifier(), tiny_samples(), mode=mode)
    found = model.debug(tiny_samples(1)[0])
    compared = [layer for layer in found.layers if layer.secure_differences is not None]
    assert len(compared) >= 3
    assert all(layer.secure_differences == 0 and layer.protocol for layer in compared)
    assert all(layer.error is not None and layer.relative_error < 0.05 for layer in compared if layer.relative_error)
    assert not found.departures


def perceptron() -> onnx.ModelProto:
    """Two dense layers with a ReLU between them, whose every value counts."""
    weights = random_weights(5, first=(64, 16), second=(16, 4))
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "first"], ["a"], name="fc1"),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("MatMul", ["b", "second"], ["y"], name="fc2"),
    ]
    return make_model(nodes, ["n", 1, 8, 8], weights)


def test_precision_that_is_missing_is_found() -> None:
    samples = tiny_samples()
    coarse = library.compile(perceptron(), samples, mode="tabula", kept_bits=3, allow_imprecise=True)
    (departure,) = diverge(coarse, samples[0], secure=False).departures
    assert (departure.kind, departure.layer) == ("precision", "relu1/rescale")
    assert "--kept-bits" in departure.fix
    fine = library.compile(perceptron(), samples, mode="cheetah", precision=12)
    assert not diverge(fine, samples[0], secure=False).departures
    # Without a departure the layer that is off most is named.
    assert "closer than that" in parting(fine, samples[0]).what


def test_a_clip_and_a_factor_of_a_rescale_are_no_errors() -> None:
    """The first part of a clip exceeds its bound, and a rescale may take a factor along."""
    bounds = {"low": np.array(0, np.float32), "high": np.array(0.3, np.float32), "half": np.array([0.37], np.float32)}
    weights = {**random_weights(5, first=(64, 16), second=(16, 16), third=(16, 4)), **bounds}
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "first"], ["a"], name="fc1"),
        helper.make_node("Clip", ["a", "low", "high"], ["b"], name="clip1"),
        helper.make_node("MatMul", ["b", "second"], ["c"], name="fc2"),
        helper.make_node("Sigmoid", ["c"], ["d"], name="gate"),
        helper.make_node("Mul", ["c", "half"], ["e"], name="factor"),
        helper.make_node("Mul", ["d", "e"], ["f"], name="gated"),
        helper.make_node("MatMul", ["f", "third"], ["y"], name="fc3"),
    ]
    model = library.compile(make_model(nodes, ["n", 1, 8, 8], weights), tiny_samples(), mode="cheetah", precision=14)
    layers = diverge(model, tiny_samples(1)[0], secure=False).layers
    clip = [layer for layer in layers if layer.name.startswith("clip1")]
    assert max(layer.high for layer in clip) > 0.6
    assert any(layer.name == "clip1/max" and layer.relative_error is not None for layer in clip)
    assert max(layer.relative_error or 0 for layer in layers) < 0.02


def test_an_input_beyond_calibration_is_found() -> None:
    proto = perceptron()
    samples = np.random.default_rng(1).uniform(-1, 1, (32, 1, 8, 8)).astype(np.float32)
    model = library.compile(proto, samples, mode="cheetah", input_range=(-2, 2))
    # Every product of a sum has the same sign, as those of no sample have.
    first = next(numpy_helper.to_array(tensor) for tensor in proto.graph.initializer if tensor.name == "first")
    extreme = 2 * np.sign(first[:, 0]).reshape(1, 8, 8).astype(np.float32)
    kinds = [departure.kind for departure in diverge(model, extreme, secure=False).departures]
    assert set(kinds) <= {"overflow", "calibration", "precision"}
    assert kinds


def test_results_that_are_not_exact_are_told_from_defects() -> None:
    model = library.compile(tiny_classifier(), tiny_samples(), mode="cheetah", rounding="faithful", output="label")
    found = [model.debug(sample) for sample in tiny_samples(8)]
    departures = [departure for one in found for departure in one.departures if departure.kind == "secure"]
    assert departures
    assert all("exact rounding" in departure.fix for departure in departures)


def test_one_sample_is_debugged(tmp_path: Path, tiny_onnx: Path) -> None:
    with pytest.raises(InputError, match="2 samples"):
        library.compile(tiny_classifier(), tiny_samples()).debug(tiny_samples(2))
    np.save(tmp_path / "x.npy", tiny_samples(3))
    calibration = tmp_path / "calibration.npy"
    np.save(calibration, tiny_samples())
    found = lanner("debug", tiny_onnx, tmp_path / "x.npy", "--calibration", calibration, "--index", "2")
    assert found.code == 0
    assert found.document["layers"][0]["name"] == "conv1"
    assert found.document["departures"] == []
    refused = lanner("debug", tiny_onnx, tmp_path / "x.npy", "--calibration", calibration, "--index", "3")
    assert (refused.code, "give 0 to 2" in refused.errors) == (2, True)


def test_evaluate_tells_where_samples_part(tmp_path: Path) -> None:
    samples = tiny_samples(64)
    model = library.compile(perceptron(), samples, mode="tabula", kept_bits=3, allow_imprecise=True)
    model.save(tmp_path / "tiny.lanner")
    truth = model.predict_float(samples).argmax(1)
    np.savez(tmp_path / "data.npz", x=samples, y=truth)
    found = lanner("evaluate", tmp_path / "tiny.lanner", "--data", tmp_path / "data.npz", "--debug")
    parted = found.document["parted"]
    differing = np.flatnonzero(model.predict_integers(samples)[0].argmax(1) != truth)
    assert [entry["index"] for entry in parted] == differing[:20].tolist()
    assert all(entry["float"] != entry["fixed"] and entry["layer"] for entry in parted)


@pytest.mark.parametrize("mode", ["auto", "tabula"])
def test_a_node_may_have_the_name_of_the_result(mode: str) -> None:
    weights = random_weights(6, first=(64, 4), second=(4, 4))
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "first"], ["a"], name="output"),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("MatMul", ["b", "second"], ["y"], name="z"),
    ]
    model = library.compile(make_model(nodes, ["n", 1, 8, 8], weights), tiny_samples(), mode=mode)
    found = model.debug(tiny_samples(1)[0])
    (named,) = (layer for layer in found.layers if layer.name == "output")
    assert (named.secure_differences, named.protocol is not None) == (0, True)
    assert not found.departures
