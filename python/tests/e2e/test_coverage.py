"""Calibration on samples that cover little of a stated range: right elsewhere too, or said not to be."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner as library
from helpers.models import make_model, random_weights, save_model
from helpers.processes import lanner
from lanner.coverage import SPARSE, covered, sentence_on
from lanner.errors import ModelError
from lanner.precision import PrecisionWarning

LIMITS = (-4.0, 4.0)
FEATURES = 8


def perceptron(features: int = FEATURES, factors: NDArray[np.float32] | None = None) -> onnx.ModelProto:
    """Two layers with three scores, behind a scaler if there are factors."""
    weights = random_weights(2, w1=(12, features), b1=(12,), w2=(3, 12), b2=(3,))
    nodes = [
        helper.make_node("Gemm", ["x" if factors is None else "s", "w1", "b1"], ["a"], name="fc1", transB=1),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Gemm", ["b", "w2", "b2"], ["y"], name="fc2", transB=1),
    ]
    if factors is not None:
        weights["factors"] = factors
        nodes.insert(0, helper.make_node("Mul", ["x", "factors"], ["s"], name="scaler"))
    return make_model(nodes, ["n", features], weights)


def pixels() -> onnx.ModelProto:
    weights = random_weights(3, conv=(3, 1, 3, 3), conv_bias=(3,), fc=(4, 108), fc_bias=(4,))
    nodes = [
        helper.make_node("Conv", ["x", "conv", "conv_bias"], ["a"], name="conv1"),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Flatten", ["b"], ["c"], name="flat"),
        helper.make_node("Gemm", ["c", "fc", "fc_bias"], ["y"], name="fc1", transB=1),
    ]
    return make_model(nodes, ["n", 1, 8, 8], weights)


def drawn(count: int, *shape: int, low: float = -1.0, high: float = 1.0) -> NDArray[np.float32]:
    return np.random.default_rng(4).uniform(low, high, (count, *shape)).astype(np.float32)


def error_on(model: library.Model, x: NDArray[np.float32]) -> float:
    """The largest error of a score, relative to the range of all."""
    exact = model.predict_float(x)
    return float(np.abs(model.predict_fixed(x) - exact).max() / (exact.max() - exact.min()))


NEARLY = drawn(1, FEATURES, low=-0.5, high=0.5)
GIVEN = {
    "one sample": NEARLY,
    "forty nearly equal": np.repeat(NEARLY, 40, 0) + 0.01 * drawn(40, FEATURES),
    "zeros": np.zeros((4, FEATURES), np.float32),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("mode", ["gazelle", "cheetah"])
def test_results_are_right_in_all_of_a_range_that_samples_cover_little_of(given: str, mode: str) -> None:
    model = library.compile(perceptron(), GIVEN[given], mode=mode, output="logits", input_range=LIMITS)
    x = drawn(40, FEATURES, low=LIMITS[0], high=LIMITS[1])
    assert error_on(model, x) < 0.01
    assert model.predict_integers(x)[1] == 0
    (note,) = model.notes
    assert "of its own making; give samples from all of the range" in note
    made = model.report()["calibration"]["inputs_made"]
    assert f"added {made} inputs" in note
    assert model.precision is not None
    assert model.precision.samples == len(GIVEN[given])


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_pictures_of_one_brightness_calibrate_pictures_of_others(value: float) -> None:
    given = np.full((8, 1, 8, 8), value, np.float32)
    model = library.compile(pixels(), given, mode="cheetah", output="logits", input_range=(0, 1))
    assert "cover 0% of the input range 0 to 1" in model.notes[0]
    assert error_on(model, drawn(40, 1, 8, 8, low=0.0)) < 0.01


def test_samples_that_cover_the_range_are_used_alone() -> None:
    for keywords, given in (({"input_range": LIMITS}, drawn(32, FEATURES, low=-3.0, high=3.0)), ({}, NEARLY)):
        model = library.compile(perceptron(), given, mode="cheetah", output="logits", **keywords)  # type: ignore[arg-type]
        assert model.notes == ()
        assert model.report()["calibration"]["inputs_made"] == 0


def table(count: int) -> NDArray[np.float32]:
    """Five columns whose values differ by a factor of a thousand."""
    sizes = np.array([1, 10, 100, 500, 1000], np.float32)
    return drawn(count, 5, low=0.0) * sizes


def test_a_range_for_columns_of_different_sizes_is_no_worse_than_before() -> None:
    proto, x = perceptron(5, 1 / table(200).max(0)), table(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        model = library.compile(proto, x, mode="cheetah", output="logits", input_range=(0, 1200))
    assert error_on(model, x) < 0.01
    assert model.predict_integers(x)[1] == 0
    # Far wider, one unit for all has too few steps for the narrowest column, whatever is calibrated.
    with pytest.raises(ModelError) as refused:
        library.compile(proto, x, mode="cheetah", output="logits", input_range=(0, 400_000))
    assert "omit input_range" in str(refused.value.fix)
    assert error_on(library.compile(proto, x, mode="cheetah", output="logits"), x) < 0.01


def test_what_has_no_room_for_the_whole_range_says_so() -> None:
    # At the ends of the range the exponential is beyond what any ring holds, and no sample comes near.
    weights = random_weights(2, w1=(4, 4), b1=(4,), w2=(3, 4), b2=(3,))
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], name="fc1", transB=1),
        helper.make_node("Exp", ["a"], ["b"], name="exp"),
        helper.make_node("Gemm", ["b", "w2", "b2"], ["y"], name="fc2", transB=1),
    ]
    proto, given = make_model(nodes, ["n", 4], weights), drawn(32, 4, low=-0.5, high=0.5)
    with pytest.warns(PrecisionWarning, match="may be wrong"):
        model = library.compile(proto, given, mode="cheetah", output="logits", input_range=(-20, 20), precision=10)
    assert model.report()["calibration"]["inputs_made"] == 0
    assert error_on(model, given) < 0.05
    assert "Give samples from the whole range" in model.notes[0]


def test_commands_say_how_much_samples_cover(tmp_path: Path) -> None:
    path = save_model(tmp_path / "net.onnx", perceptron())
    np.save(tmp_path / "one.npy", NEARLY)
    compiled = lanner(
        *("compile", path, "-o", tmp_path / "net.lanner", "--calibration", tmp_path / "one.npy"),
        *("--mode", "cheetah", "--input-range=-4,4"),
    )
    assert compiled.code == 0, compiled.errors
    assert "the calibration samples cover 0% of the input range -4 to 4" in compiled.errors
    # The owner's half keeps it.
    inspected = lanner("inspect", tmp_path / "net.lanner")
    assert inspected.document["report"]["calibration"]["inputs_made"] > 0


def test_the_share_is_an_average_over_elements() -> None:
    samples = np.array([[-1, 0, 2], [3, 2, 2], [0, 1, 2]], np.float32)
    assert covered(samples, (-1.0, 3.0)) == pytest.approx(0.5)
    assert covered(samples[:1], (-1.0, 3.0)) == 0
    assert sentence_on(samples, (-1.0, 3.0), 16) is None
    tiny = sentence_on(samples / np.float32(1e4), (-1.0, 3.0), 16)
    assert tiny is not None
    assert "cover less than 1% of" in tiny
    assert SPARSE == 0.25
