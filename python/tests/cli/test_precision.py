"""--precision: found, said, stored, and never missed in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import make_model, tiny_classifier, tiny_samples
from lanner.cli import main

#: Less than 16 bits can give.
TOO_PRECISE = "0.0001%"


@pytest.fixture
def arguments(tmp_path: Path, tiny_onnx: Path) -> list[str]:
    calibration = tmp_path / "calibration.npy"
    np.save(calibration, tiny_samples())
    return ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]


def document_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = capsys.readouterr().out.splitlines()
    document: dict[str, Any] = json.loads(line)
    return document


@pytest.mark.parametrize(("digits", "is_told"), [("1", False), ("6", True)])
def test_digits_that_are_not_the_networks_are_told(
    digits: str, is_told: bool, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--output", "probability", "--digits", digits, "--json"]) == 0
    printed = capsys.readouterr()
    assert (f"probabilities have {digits} digits and are off by up to" in printed.err) == is_told
    difference = json.loads(printed.out)["calibration"]["probability_difference"]
    assert (difference > 10 ** -int(digits)) == is_told


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
def test_the_precision_asked_for_is_reached_and_kept_in_the_file(
    mode: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--precision", "0.2%", "--mode", mode, "--output", "logits", "--json"]) == 0
    reported = document_of(capsys)["report"]
    assert reported["precision"]["asked"] == "0.2%"
    assert reported["precision"]["is_met"]
    assert [layer["name"] for layer in reported["bits"]] == ["conv1", "fc1"]
    for layer in reported["bits"]:
        assert 6 <= layer["activations"] <= 16
        assert 6 <= layer["weights"] <= 16
    model = lanner.load(arguments[3])
    assert model.precision is not None
    assert model.precision.logit_error <= 0.002
    x = tiny_samples()
    exact = model.native.float(x)
    errors = np.abs(model.predict_fixed(x) - exact).max(1)
    ranges = exact.max(1) - exact.min(1)
    largest = (errors / np.maximum(ranges, np.sort(ranges)[len(ranges) // 2])).max()
    assert np.isclose(model.precision.logit_error, largest, rtol=1e-3)
    assert main(["inspect", arguments[3]]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "asked 0.2%" in shown
    assert f"at most {model.precision.reached} of their range" in shown


def test_the_public_half_says_nothing_of_what_is_reached(arguments: list[str], tmp_path: Path) -> None:
    assert main([*arguments, "--precision", "0.2%"]) == 0
    public = tmp_path / "public.json"
    lanner.load(arguments[3]).export_public(public)
    text = public.read_text()
    assert "labels_kept" not in text
    assert "reached" not in text


def test_bits_are_those_of_all_layers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--precision", "10", "--json"]) == 0
    reported = document_of(capsys)["report"]
    assert reported["precision"]["asked"] == "10 bits"
    assert all(layer["weights"] >= 10 for layer in reported["bits"])


def test_half_a_per_cent_is_the_default(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 0
    assert document_of(capsys)["report"]["precision"]["asked"] == "0.5%"
    model = lanner.compile(tiny_classifier(), tiny_samples())
    assert model.precision is not None
    assert model.precision.is_met


def test_a_precision_that_is_missed_is_refused_unless_allowed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--precision", TOO_PRECISE, "--json"]) == 3
    error = document_of(capsys)["error"]
    assert error["kind"] == "model"
    assert error["where"]
    assert TOO_PRECISE in error["what"]
    assert "--allow-imprecise" in error["fix"]
    assert not Path(arguments[3]).exists()
    assert main([*arguments, "--precision", TOO_PRECISE, "--allow-imprecise"]) == 0
    assert f"(target: {TOO_PRECISE}" in capsys.readouterr().err
    with pytest.warns(lanner.PrecisionWarning, match="target: "):
        lanner.compile(tiny_classifier(), tiny_samples(), precision=TOO_PRECISE, allow_imprecise=True)
    with pytest.raises(lanner.ModelError):
        lanner.compile(tiny_classifier(), tiny_samples(), precision=TOO_PRECISE)


@pytest.mark.parametrize("asked", ["0.5", "5", "200%"])
def test_what_is_no_precision_is_misuse(asked: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--precision", asked, "--json"]) == 2
    assert "percentage with its sign" in document_of(capsys)["error"]["fix"]


def test_a_compiled_model_keeps_its_precision(
    tiny_label: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tiny_label), arguments[5], "--allow-imprecise", "--json"]) == 2
    assert "--allow-imprecise" in document_of(capsys)["error"]["what"]


def scaled(factors: list[float], *, sigmoid: bool) -> tuple[onnx.ModelProto, NDArray[np.float32]]:
    """Products whose sizes differ by these factors, with samples."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((6, len(factors))).astype(np.float32), "f": np.array(factors, np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Mul", ["p", "f"], ["s"])]
    if sigmoid:
        nodes.append(helper.make_node("Sigmoid", ["s"], ["y"]))
    model = make_model(nodes, ("n", 6), weights, output="y" if sigmoid else "s")
    return model, rng.standard_normal((200, 6)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::lanner.PrecisionWarning")
def test_values_of_different_sizes_are_held_against_their_own_ranges() -> None:
    model, x = scaled([1000.0, 0.1], sigmoid=False)
    compiled = lanner.compile(model, x, output="value", allow_imprecise=True)
    assert compiled.precision is not None
    exact, fixed = compiled.predict_float(x), compiled.predict_fixed(x)
    errors = np.abs(exact - fixed).max(0) / np.ptp(exact, axis=0)
    assert np.isclose(compiled.precision.logit_error, errors.max(), rtol=1e-2)
    assert compiled.precision.is_met == (errors.max() <= 0.005)
    assert compiled.precision.labels_kept == compiled.precision.labels_lost == 0


@pytest.mark.filterwarnings("ignore::lanner.PrecisionWarning")
def test_labels_that_do_not_exclude_each_other_are_kept_each_by_its_sign() -> None:
    model, x = scaled([1000.0, 1.0, 0.01], sigmoid=True)
    compiled = lanner.compile(model, x, allow_imprecise=True)
    assert compiled.manifest.output == "labels"
    assert compiled.precision is not None
    exact, fixed = compiled.predict_float(x), compiled.predict_fixed(x)
    kept = ((exact > 0) == (fixed > 0)).all(1).sum()
    assert compiled.precision.labels_kept == kept
    assert compiled.precision.is_met or compiled.precision.logit_error > 0.005
