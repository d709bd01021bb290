"""compile, inspect and export: documents, files, and the exit code of each thing that can be wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import lanner
from helpers.models import make_model, random_weights, save_model, tiny_classifier, tiny_samples
from lanner.cli import main
from lanner.manifest import Manifest


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.npy"
    np.save(path, tiny_samples())
    return path


def document_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = capsys.readouterr().out.splitlines()
    document: dict[str, Any] = json.loads(line)
    return document


def test_compile_writes_a_model_that_loads(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "classes.txt").write_text("ant\nbee\ncat\ndog\n")
    (tmp_path / "image.toml").write_text("channels = 1\nsize = [8, 8]\n")
    target = tmp_path / "net.lanner"
    arguments = ["compile", str(tiny_onnx), "-o", str(target), "--calibration", str(calibration)]
    arguments += ["--classes", str(tmp_path / "classes.txt"), "--image", str(tmp_path / "image.toml")]
    assert main([*arguments, "--output", "logits", "--json"]) == 0
    document = document_of(capsys)
    assert document["calibration"]["samples"] == 32
    assert document["calibration"]["labels_agree"] >= 31
    model = lanner.load(target)
    assert model.commitment == document["commitment"]
    assert model.manifest.classes == ("ant", "bee", "cat", "dog")
    assert model.manifest.output == "logits"
    assert model.manifest.image is not None
    assert model.manifest.input.shape == (1, 8, 8)
    assert np.allclose(model.predict_fixed(tiny_samples(2)), model.predict_float(tiny_samples(2)), atol=0.1)


def test_few_calibration_samples_are_noted(tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "one.npy", tiny_samples(1))
    target = tmp_path / "net.lanner"
    assert main(["compile", str(tiny_onnx), "-o", str(target), "--calibration", str(tmp_path / "one.npy")]) == 0
    output = capsys.readouterr()
    assert "1 sample" in output.err
    assert "32" in output.err
    assert "agree on 1 of 1 sample; logits differ by at most" in output.out
    assert "% of their range" in output.out


def test_same_model_has_another_commitment_each_time() -> None:
    first, second = (lanner.compile(tiny_classifier(), tiny_samples()) for _ in range(2))
    assert first.commitment != second.commitment


@pytest.mark.parametrize(
    ("mode", "rounding"),
    [
        ("cheetah", None),
        ("cheetah", "exact"),
        ("cheetah", "faithful"),
        ("tabula", None),
        ("tabula", "exact"),
        ("tabula", "stochastic"),
    ],
)
def test_compile_and_inspect_say_how_a_mode_rounds_and_what_that_leaks(
    tmp_path: Path,
    tiny_onnx: Path,
    calibration: Path,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    rounding: str | None,
) -> None:
    target = str(tmp_path / "net.lanner")
    given = [] if rounding is None else ["--rounding", rounding]
    arguments = ["compile", str(tiny_onnx), "-o", target, "--calibration", str(calibration), "--mode", mode]
    assert main([*arguments, *given, "--json"]) == 0
    report = document_of(capsys)["report"]
    chosen = rounding or "exact"
    assert lanner.load(target).manifest.rounding == chosen
    assert report["rounding"].startswith(chosen)
    leak = report["leakage"].get("rounding")
    assert (leak is None) == (chosen == "exact")
    assert main(["inspect", target]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"rounding {report['rounding']}" in told
    assert leak is None or f"rounding {leak}" in told


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
def test_inspect_says_what_the_ciphertexts_of_many_predictions_tell_and_what_security_rests_on(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    target = str(tmp_path / "net.lanner")
    assert main(["compile", str(tiny_onnx), "-o", target, "--calibration", str(calibration), "--mode", mode]) == 0
    capsys.readouterr()
    assert main(["inspect", target, "--json"]) == 0
    report = document_of(capsys)["report"]
    distance = report["statistical_distance"]
    count = distance["ciphertexts_per_prediction"]
    assert (count > 0, distance["predictions"]) == (True, 1 << 20)
    told = report["leakage"]["ciphertexts"]
    if mode in ("cheetah", "tabula"):
        assert (distance["bits"], distance["ciphertext_bits"]) == (None, None)
        assert told.startswith(f"Each prediction sends the client {count} ciphertexts, masked uniformly")
    else:
        assert 40 <= distance["bits"] <= distance["ciphertext_bits"] - 10
        assert told.startswith(f"Each prediction sends the client {count} ciphertexts. Over 2^20 predictions")
        assert told.endswith(f"2^-{distance['bits']:g}.")
    security = {part["name"]: part["bits"] for part in report["security"]}
    assert security["encryption"] == 128
    assert security.get("garbling", 124) == 124
    assert security["transfers' hash"] == 116
    assert security["transfers' checks"] == 119
    assert security.get("comparison keys") == (115 if mode == "tabula" else None)


@pytest.mark.parametrize(("mode", "rounding"), [("cheetah", "faithful"), ("tabula", "stochastic")])
@pytest.mark.parametrize("output", ["probability", "top-k", "logits"])
def test_rounding_that_is_not_exact_goes_with_labels_alone(
    tmp_path: Path,
    tiny_onnx: Path,
    calibration: Path,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    rounding: str,
    output: str,
) -> None:
    target = tmp_path / "net.lanner"
    arguments = ["compile", str(tiny_onnx), "-o", str(target), "--calibration", str(calibration), "--mode", mode]
    assert main([*arguments, "--rounding", rounding, "--output", output, "--json"]) == 2
    error = document_of(capsys)["error"]
    assert (error["kind"], error["where"]) == ("misuse", "rounding")
    assert output in error["what"]
    assert error["fix"] == "compile with rounding exact, or with output label"
    assert not target.exists()


def test_inspect_shows_onnx_and_compiled(tiny_onnx: Path, tiny_label: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tiny_onnx), "--json"]) == 0
    document = document_of(capsys)
    assert document["operators"] == {"Conv": 1, "Flatten": 1, "Gemm": 1, "MaxPool": 1, "Relu": 1}
    assert document["parameters"] == 3 * 9 + 3 + 4 * 27 + 4
    assert main(["inspect", str(tiny_label), "--json"]) == 0
    document = document_of(capsys)
    assert document["manifest"]["output"] == "label"
    assert "steps" in document["report"]
    for path in (tiny_onnx, tiny_label):
        assert main(["inspect", str(path)]) == 0
        output = capsys.readouterr()
        assert output.err == ""
        assert "conv1" in output.out


@pytest.mark.parametrize(("mode", "policy"), [("gazelle", "label"), ("falcon", "probability"), ("cheetah", "logits")])
def test_inspect_reads_well_in_80_columns(
    tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str], mode: str, policy: str
) -> None:
    model = lanner.compile(tiny_onnx, tiny_samples(), mode=mode, output=policy, input_range=(0, 1))
    model.save(tmp_path / "net.lanner")
    assert main(["inspect", str(tmp_path / "net.lanner")]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert "_" not in told
    assert not set("{}[]") & set(told)
    assert "values from 0 to 1" in told
    (entry,) = (line.split() for line in told.splitlines() if line.startswith("x "))
    assert entry[-1] == "proved"
    for value in model.report()["values"]:
        low, high = (f"{value[end] * value['scale']:.3g}" for end in ("low", "high"))
        assert f"{low} to {high}" in told
    for title in ("What each party learns", "Security", "Memory"):
        assert f"\n{title}\n" in told
    assert re.search(r"server +[\d.]+ [KM]B for the model", told)


def test_export_writes_the_public_half(tmp_path: Path, tiny_label: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "net.public"
    assert main(["export", str(tiny_label), "-o", str(target), "--json"]) == 0
    document = document_of(capsys)
    public = Manifest.read(target)
    assert public.commitment == document["commitment"]
    assert public.input.shape == (1, 8, 8)


def test_calibration_of_another_shape_exits_6(
    tmp_path: Path, tiny_onnx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((4, 8, 8)))
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner")]
    assert main([*arguments, "--calibration", str(tmp_path / "wrong.npy"), "--json"]) == 6
    assert "(1, 8, 8)" in document_of(capsys)["error"]["fix"]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04", b"not a zip file"])
def test_damaged_model_exits_3(tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.lanner"
    if content is not None:
        path.write_bytes(content)
    assert main(["inspect", str(path), "--json"]) == 3
    error = document_of(capsys)["error"]
    assert error["kind"] == "model"
    assert "net.lanner" in error["where"]


def test_every_truncation_of_a_model_exits_3(
    tmp_path: Path, tiny_label: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tiny_label.read_bytes()
    for length in range(0, len(whole), len(whole) // 23):
        (tmp_path / "net.lanner").write_bytes(whole[:length])
        assert main(["inspect", str(tmp_path / "net.lanner"), "--json"]) == 3
    capsys.readouterr()


def test_unsupported_operator_exits_3_naming_it(
    tmp_path: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["a"], name="flat"),
        helper.make_node("Tan", ["a"], ["y"], name="odd"),
    ]
    path = save_model(tmp_path / "net.onnx", make_model(nodes, ["n", 1, 8, 8], {}))
    arguments = ["compile", str(path), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    assert main([*arguments, "--json"]) == 3
    error = document_of(capsys)["error"]
    assert error["kind"] == "unsupported"
    assert error["where"] == "node odd"
    assert "Tan" in error["what"]


def test_range_overflow_exits_3_naming_the_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A weight times the sum of 2.4 million inputs of full size fits no ring.
    shape = (1, 1, 1200, 2000)
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["a"], name="mean"),
        helper.make_node("Conv", ["a", "w"], ["y"], name="huge"),
    ]
    path = save_model(tmp_path / "net.onnx", make_model(nodes, shape, {"w": np.ones((4, 1, 1, 1), np.float32)}))
    np.save(tmp_path / "ones.npy", np.ones(shape, np.float32))
    arguments = ["compile", str(path), "-o", str(tmp_path / "net.lanner"), "--output", "logits", "--mode", "gazelle"]
    arguments += ["--calibration", str(tmp_path / "ones.npy"), "--precision", "16"]
    assert main([*arguments, "--json"]) == 3
    error = document_of(capsys)["error"]
    assert error["kind"] == "model"
    assert error["where"] == "huge"
    assert "ring" in error["what"]


def test_activation_that_is_no_polynomial_exits_3_in_mode_spectral(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    assert main([*arguments, "--mode", "spectral", "--output", "logits", "--json"]) == 3
    error = document_of(capsys)["error"]
    assert error["kind"] == "unsupported"
    assert "square" in error["fix"]


@pytest.mark.parametrize(
    "option",
    [
        ["--output", "top-k", "--k", "5"],
        ["--output", "top-k", "--k", "0"],
        ["--output", "probability", "--digits", "0"],
        ["--output", "probability", "--digits", "7"],
        ["--input-range", "1"],
        ["--input-range", "0,one"],
        ["--input-range=0.5,1"],
    ],
)
def test_option_that_does_not_fit_exits_2(
    tmp_path: Path,
    tiny_onnx: Path,
    calibration: Path,
    option: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)]
    assert main([*arguments, *option, "--json"]) == 2
    assert document_of(capsys)["error"]["kind"] == "misuse"


def test_probability_without_a_softmax_is_noted(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "net.lanner"
    arguments = ["compile", str(tiny_onnx), "-o", str(target), "--calibration", str(calibration)]
    assert main([*arguments, "--output", "probability", "--digits", "3"]) == 0
    assert "does not end in a softmax" in capsys.readouterr().err
    model = lanner.load(target)
    assert (model.manifest.output, model.manifest.digits) == ("probability", 3)
    largest = model.predict_probability(tiny_samples(3))
    assert largest.shape == (3,)
    assert ((largest > 0.25) & (largest <= 1.0)).all()


def test_the_input_range_can_be_stated(
    tmp_path: Path, tiny_onnx: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "net.lanner"
    arguments = ["compile", str(tiny_onnx), "-o", str(target), "--calibration", str(calibration)]
    assert main([*arguments, "--input-range=-4,4.5"]) == 0
    assert "values from -4 to 4.5" in capsys.readouterr().out
    entry = lanner.load(target).manifest.input
    assert (entry.low, entry.high) == (-4.0, 4.5)


def test_compiled_model_cannot_be_changed_by_run(
    tiny_label: Path, calibration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tiny_label), str(calibration), "--output", "logits", "--json"]) == 2
    assert "--output" in document_of(capsys)["error"]["what"]


def wavy_model(path: Path) -> Path:
    """A sine and a cosine around a convolution."""
    nodes = [
        helper.make_node("Tan", ["x"], ["a"], name="first"),
        helper.make_node("Conv", ["a", "w"], ["b"], name="conv"),
        helper.make_node("Atan", ["b"], ["y"], name="second"),
    ]
    return save_model(path, make_model(nodes, ["n", 1, 8, 8], random_weights(1, w=(2, 1, 3, 3))))


@pytest.mark.parametrize("command", ["compile", "run"])
def test_every_reason_is_printed_in_one_line_each(
    tmp_path: Path, calibration: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path = wavy_model(tmp_path / "net.onnx")
    arguments = {
        "compile": ["compile", str(path), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration)],
        "run": ["run", str(path), str(calibration), "--calibration", str(calibration)],
    }
    assert main(arguments[command]) == 3
    sentence, first, second = capsys.readouterr().err.splitlines()[-3:]
    assert sentence.startswith("error: node first: operator Tan is not supported")
    assert "(and 1 more reason)" in sentence
    assert first.startswith("  node first: operator Tan")
    assert second.startswith("  node second: operator Atan")


def test_inspect_reports_every_reason_and_what_runs_and_exits_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(wavy_model(tmp_path / "net.onnx"))
    assert main(["inspect", path, "--json"]) == 3
    document = document_of(capsys)
    assert document["compiles"] is False
    assert [(entry["operator"], entry["node"]) for entry in document["refusals"]] == [
        ("Tan", "first"),
        ("Atan", "second"),
    ]
    share = document["share"]
    assert (share["nodes"], share["refused"], share["all_nodes"]) == (1, 2, 3)
    assert share["multiply_accumulates"] == share["all_multiply_accumulates"] == 2 * 36 * 9
    assert main(["inspect", path]) == 3
    told = capsys.readouterr().out
    assert "what to do" in told
    assert "net.onnx cannot be compiled: 1 of 3 nodes run, 2 are refused" in told


def test_inspect_tells_of_sizes_and_fixed_point_without_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], name="wide", pads=[1] * 4)
    weights = {"w": np.zeros((256, 256, 3, 3), np.float32)}
    path = save_model(tmp_path / "net.onnx", make_model([conv], ["n", 256, 64, 64], weights))
    limited = ["inspect", str(path), "--max-seconds", "1"]
    assert main([*limited, "--json"]) == 3
    (refusal,) = document_of(capsys)["refusals"]
    assert refusal["node"] == "wide"
    assert "seconds" in refusal["reason"]
    assert main(limited) == 3
    assert "net.onnx cannot be compiled: lanner knows all operators" in capsys.readouterr().out


def test_inspect_of_a_model_that_compiles_exits_0(tiny_onnx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tiny_onnx), "--json"]) == 0
    document = document_of(capsys)
    assert document["compiles"] is True
    assert document["refusals"] == []
    assert document["share"]["nodes"] == document["share"]["all_nodes"] == 5


def test_sizes_are_refused_before_samples_are_run() -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], name="wide", pads=[1] * 4)
    weights = {"w": np.zeros((256, 256, 3, 3), np.float32)}
    model = make_model([conv], ["n", 256, 64, 64], weights)
    stages: list[str] = []
    samples = np.ones((1, 256, 64, 64), np.float32)
    with pytest.raises(lanner.ModelError, match="seconds"):
        lanner.compile(model, samples, output="logits", progress=stages.append, max_seconds=1)
    assert "calibrating" not in stages


def test_compiling_tells_its_stages(tiny_onnx: Path) -> None:
    stages: list[str] = []
    lanner.compile(tiny_onnx, tiny_samples(), progress=stages.append)
    begun = [stage for stage in stages if ":" not in stage]
    assert begun == ["checking operators and sizes", "comparing modes", "calibrating"]
    assert any(re.fullmatch(r"comparing modes: tabula, 2 of \d", stage) for stage in stages)
    assert any(re.fullmatch(r"calibrating: \d+ bits, \d+ samples", stage) for stage in stages)
    stages.clear()
    lanner.compile(tiny_onnx, tiny_samples(), mode="cheetah", progress=stages.append)
    begun = [stage for stage in stages if ":" not in stage]
    assert begun == ["checking operators and sizes", "calibrating", "planning"]


def test_every_operator_that_is_taken_is_listed_by_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    operators = document_of(capsys)["operators"]
    assert {"Conv", "QLinearConv", "Softmax", "ai.onnx.ml.Scaler", "com.microsoft.QGemm"} <= set(operators)
