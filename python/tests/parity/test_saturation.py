"""Accepted inputs far from the calibration samples: a result is the model's, or it is told to be saturated."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import make_model, random_weights, save_model
from lanner.cli import main
from lanner.cli.output import Output
from lanner.cli.report import show_known
from lanner.embedded import compile_embedded

#: Of scores, relative to the range of the model's own.
TOLERANCE = 0.01


def table_network(outputs: int) -> onnx.ModelProto:
    """Three layers on eight columns."""
    weights = random_weights(3, a=(24, 8), b=(16, 24), c=(outputs, 16), ab=(24,), bb=(16,), cb=(outputs,))
    nodes = [
        helper.make_node("Gemm", ["x", "a", "ab"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "b", "bb"], ["i"], transB=1),
        helper.make_node("Relu", ["i"], ["s"]),
        helper.make_node("Gemm", ["s", "c", "cb"], ["y"], transB=1),
    ]
    return make_model(nodes, ("batch", 8), weights)


def corners(model: lanner.Model, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Corners of the accepted range, and samples at twice their size."""
    ends = [[low, high] for low, high in zip(-2 * np.abs(x).max(0), 2 * np.abs(x).max(0), strict=True)]
    drawn = np.random.default_rng(1).permutation(list(itertools.product(*ends)))[:40]
    return model.manifest.input.clip(np.concatenate([drawn, 2 * x]).astype(np.float32))


@pytest.mark.parametrize("mode", ["gazelle", "falcon"])
def test_corners_of_the_range_are_right_or_told(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    model = lanner.compile(table_network(3), x, mode=mode, output="logits")
    report = model.report()
    assert all(value["evidence"] == "proved" for value in report["values"])
    assert report["unproved"] == []
    far = corners(model, x)
    integers, overflows, saturated = model.predict_saturating(far)
    assert overflows == 0
    exact, fixed = model.predict_float(far), integers / np.float64(model.logits_scale)
    errors = np.abs(fixed - exact).max(1) / np.ptp(exact)
    told = np.array([bool(layers) for layers in saturated])
    assert errors[~told].max() <= TOLERANCE
    assert (~told).sum() > 0
    # What saturates is the same for both parties.
    place = int(told.argmax())
    prediction = lanner.run(model, far[place])
    assert prediction.integers == integers[place].tolist()


def test_run_tells_where_values_saturate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    path, calibration, inputs = tmp_path / "net.onnx", tmp_path / "x.npy", tmp_path / "far.npy"
    save_model(path, table_network(1))
    model = lanner.compile(path, x, mode="gazelle", output="value")
    far = corners(model, x)
    saturated = model.predict_saturating(far)[2]
    chosen = [next(place for place, layers in enumerate(saturated) if bool(layers) is told) for told in (False, True)]
    np.save(calibration, x)
    np.save(inputs, far[chosen])
    arguments = ["--mode", "gazelle", "--output", "value", "--calibration", str(calibration)]
    assert main(["run", str(path), str(inputs), *arguments, "--json"]) == 0
    shown = capsys.readouterr()
    within, beyond = json.loads(shown.out)["predictions"]
    assert within["saturated"] == {}
    assert beyond["saturated"] == saturated[chosen[1]]
    assert "beyond what the network has room for" in shown.err


def test_proofs_cost_no_precision() -> None:
    # No ring has room for proofs behind two squares: a lookup that is calibrated reaches what is asked.
    model = compile_embedded("mnist_a", "tabula", "logits")
    assert model.precision is not None
    assert model.precision.is_met
    # It says so.
    report = model.report()
    unproved = [value["name"] for value in report["values"] if value["evidence"] != "proved"]
    assert report["unproved"] == unproved
    assert unproved
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        show_known(report, Output(json=False))
    assert f"{len(unproved)} of {len(report['values'])} values are not proved" in " ".join(shown.getvalue().split())
