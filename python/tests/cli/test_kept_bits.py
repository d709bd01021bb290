"""--kept-bits of compile, and --bits of evaluate: what lookups keep, and what accuracy that leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.models import tiny_samples
from lanner.cli import main
from lanner.local import run


@pytest.fixture
def compiled(tmp_path: Path, tiny_onnx: Path) -> Path:
    """A model of another mode, beside its typical samples."""
    np.save(tmp_path / "calibration.npy", tiny_samples())
    arguments = ["compile", str(tiny_onnx), "-o", str(tmp_path / "net.lanner")]
    assert main([*arguments, "--calibration", str(tmp_path / "calibration.npy"), "--mode", "cheetah"]) == 0
    return tmp_path / "net.lanner"


def data_of(model: Path) -> Path:
    """Samples whose truth is what the float network says of them."""
    x = tiny_samples()
    path = model.parent / "data.npz"
    np.savez(path, x=x, y=lanner.load(model).predict_float(x).argmax(1))
    return path


def document_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = capsys.readouterr().out.splitlines()
    document: dict[str, Any] = json.loads(line)
    return document


def sweep(model: Path, *more: str) -> list[str]:
    samples = str(model.parent / "calibration.npy")
    return ["evaluate", str(model), "--data", str(data_of(model)), "--bits", "3..10", "--calibration", samples, *more]


def test_accuracy_is_told_for_each_number_of_bits(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([*sweep(compiled), "--json"]) == 0
    document = document_of(capsys)
    assert document["float"]["accuracy"] == 1.0
    assert [row["bits"] for row in document["bits"]] == list(range(3, 11))
    errors = []
    for row in document["bits"]:
        model = lanner.load(compiled).keeping(row["bits"], tiny_samples())
        scores, exact = model.predict_fixed(tiny_samples()), model.predict_float(tiny_samples())
        labels = scores.argmax(1)
        agreeing = int((labels == exact.argmax(1)).sum())
        errors.append(float(np.abs(scores - exact).max()))
        assert (row["labels_agree"], row["overflows"]) == (agreeing, 0)
        assert row["accuracy"] == agreeing / len(labels)
        assert row["lookups"] == model.report()["lookups"]
        assert len(row["lookups"]) > 0
    assert all(lookup["kept"] <= 10 for lookup in document["bits"][-1]["lookups"])
    assert document["bits"][-1]["accuracy"] == 1.0
    assert errors[-1] < errors[0] / 4


def test_the_table_and_the_plot_are_drawn(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    plots = [compiled.parent / name for name in ("a.svg", "b.svg")]
    for plot in plots:
        capsys.readouterr()
        assert main(sweep(compiled, "--plot", str(plot))) == 0
    shown = capsys.readouterr().out
    assert "kept by lookups" in shown
    assert "overflows" in shown
    assert plots[0].read_bytes() == plots[1].read_bytes() != b""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bits", "4..12"], "typical samples"),
        (["--calibration", "calibration.npy"], "--calibration goes with --bits"),
        (["--plot", "a.png"], "--plot goes with --bits"),
        (["--bits", "8", "--calibration", "calibration.npy", "--secure"], "--kept-bits"),
        (["--bits", "8", "--calibration", "calibration.npy", "--plot", "none/a.png"], "no such folder"),
    ],
)
def test_what_does_not_go_together_is_misuse(
    arguments: list[str], said: str, compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    if "--plot" in arguments and "--bits" in arguments:
        pytest.importorskip("matplotlib")
    assert main(["evaluate", str(compiled), "--data", str(data_of(compiled)), *arguments, "--json"]) == 2
    error = document_of(capsys)["error"]
    assert said in f"{error['what']} {error['fix']}"


@pytest.mark.parametrize("bits", ["2..9", "9..8", "17", "4-9", "many"])
def test_bits_that_cannot_be_kept_are_refused(bits: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "none.lanner", "--data", "none.npz", "--bits", bits]) == 2
    assert "FIRST..LAST" in capsys.readouterr().err


def test_a_model_keeps_the_bits_asked_for_and_is_exact(tiny_onnx: Path) -> None:
    x = tiny_samples()
    model = lanner.compile(tiny_onnx, x, mode="tabula", kept_bits=7, output="logits")
    assert all(lookup["kept"] <= 7 for lookup in model.report()["lookups"])
    for sample, (integers, overflows) in ((sample, model.predict_integers(sample)) for sample in x[:2]):
        assert overflows == 0
        assert run(model, sample).logits == pytest.approx((integers[0] / model.logits_scale).tolist(), abs=1e-12)


@pytest.mark.parametrize(("mode", "bits"), [("cheetah", 8), ("auto", 8), ("tabula", 2), ("tabula", 17)])
def test_bits_are_kept_by_lookups_alone(mode: str, bits: int, tiny_onnx: Path) -> None:
    with pytest.raises(lanner.MisuseError, match="bits are"):
        lanner.compile(tiny_onnx, tiny_samples(), mode=mode, kept_bits=bits)
