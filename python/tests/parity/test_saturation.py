"""Accepted inputs far from the calibration samples: a result is the model's, or it is told to be saturated."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import make_model, random_weights, save_model
from lanner import _native
from lanner.cli import main
from lanner.cli.output import Output
from lanner.cli.report import show_known
from lanner.embedded import compile_embedded
from lanner.gateway.outputs import outputs_of

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


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula", "auto"])
def test_corners_of_the_range_are_right_or_told(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    asked = mode not in ("gazelle", "falcon")
    model = lanner.compile(table_network(3), x, mode=mode, output="logits", proved_ranges=asked)
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
    # Whoever runs both parties is told where.
    assert prediction.saturated == saturated[place]
    assert lanner.run(model, x[0]).saturated == {}


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
    assert "1 of 2 inputs exceeded the network's limits" in shown.err


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
def test_one_bit_is_revealed_where_the_owner_asks(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    model = lanner.compile(
        table_network(3), x, mode=mode, output="logits", reveal_saturation=True, proved_ranges=mode == "cheetah"
    )
    far = corners(model, x)
    integers, _, saturated = model.predict_saturating(far)
    chosen = [next(place for place, layers in enumerate(saturated) if bool(layers) is told) for told in (False, True)]
    predictions = [lanner.run(model, far[place]) for place in chosen]
    assert [prediction.saturated for prediction in predictions] == [False, True]
    assert [prediction.integers for prediction in predictions] == integers[chosen].tolist()
    assert [prediction.document()["saturated"] for prediction in predictions] == [False, True]
    # What it takes does not depend on it.
    costs = [
        {name: (phase.bytes_sent, phase.bytes_received, phase.rounds) for name, phase in prediction.phases.items()}
        for prediction in predictions
    ]
    assert costs[0]["online"] == costs[1]["online"]
    leakage = model.report()["leakage"]
    assert "one bit per input" in leakage["client"]
    assert "whether a hidden value reached a limit" in leakage["saturation"]
    assert model.manifest.reveals_saturation
    assert [output.name for output in outputs_of(model.manifest)] == ["logits", "label", "saturated"]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        show_known(model.report(), Output(json=False))
    assert "whether a hidden value reached a limit" in " ".join(shown.getvalue().split())


def leaky_network(layers: int) -> onnx.ModelProto:
    """Layers with slopes below zero, behind which sums have no upper bound but that of all before."""
    names = [f"w{layer}" for layer in range(layers)]
    weights = random_weights(5, **{name: (16, 8 if name == "w0" else 16) for name in names}, last=(2, 16))
    nodes, value = [], "x"
    for name in names:
        nodes.append(helper.make_node("Gemm", [value, name], [f"{name}y"], transB=1))
        nodes.append(helper.make_node("LeakyRelu", [f"{name}y"], [f"{name}z"], alpha=0.3))
        value = f"{name}z"
    nodes.append(helper.make_node("Gemm", [value, "last"], ["y"], transB=1))
    return make_model(nodes, ("batch", 8), weights)


def test_what_is_not_proved_is_refused_where_the_owner_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    assert lanner.compile(leaky_network(8), x, mode="cheetah", precision=8).report()["unproved"]
    assert not lanner.compile(leaky_network(8), x, mode="cheetah", precision=8, proved_ranges=True).report()["unproved"]
    with pytest.raises(lanner.ModelError, match="may overflow on some accepted input"):
        lanner.compile(leaky_network(40), x, mode="cheetah", precision=8, proved_ranges=True)
    with pytest.raises(lanner.MisuseError, match="leave no room for proofs"):
        lanner.compile(table_network(3), x, mode="spectral", replace_relu=True, proved_ranges=True)
    with pytest.raises(lanner.MisuseError, match="leave no room for proofs"):
        lanner.compile(table_network(3), x, mode="tabula", kept_bits=8, proved_ranges=True)
    path, calibration = tmp_path / "net.onnx", tmp_path / "x.npy"
    save_model(path, table_network(3))
    np.save(calibration, x)
    arguments = [str(path), "-o", str(tmp_path / "net.lanner"), "--calibration", str(calibration), "--json"]
    for given, unproved in ((["--proved-ranges"], False), ([], True)):
        assert main(["compile", *arguments, "--mode", "cheetah", *given]) == 0
        capsys.readouterr()
        assert bool(lanner.load(tmp_path / "net.lanner").report()["unproved"]) is unproved


def test_nothing_is_revealed_unasked() -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    model = lanner.compile(table_network(3), x, mode="gazelle", output="logits")
    far = corners(model, x)
    place = next(place for place, layers in enumerate(model.predict_saturating(far)[2]) if layers)
    assert json.loads(_native.run_in_memory(model.native, far[place : place + 1]))[0]["saturated"] is None
    assert "saturation" not in model.report()["leakage"]
    assert "saturation" not in json.dumps(model.manifest.document)


def test_a_client_prints_the_bit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    network, calibration, path, inputs = (tmp_path / name for name in ("n.onnx", "x.npy", "n.lanner", "far.npy"))
    save_model(network, table_network(1))
    np.save(calibration, x)
    arguments = ["--mode", "gazelle", "--output", "value", "--reveal-saturation", "--calibration", str(calibration)]
    assert main(["compile", str(network), "-o", str(path), *arguments]) == 0
    model = lanner.load(path)
    far = corners(model, x)
    saturated = model.predict_saturating(far)[2]
    chosen = [next(place for place, layers in enumerate(saturated) if bool(layers) is told) for told in (False, True)]
    np.save(inputs, far[chosen])
    with lanner.Server(model, "127.0.0.1:0") as server:
        trust = ["--pin", str(server.fingerprint), "--state-dir", str(tmp_path / "state")]
        capsys.readouterr()
        assert main(["predict", server.address, str(inputs), *trust, "--json"]) == 0
        predictions = json.loads(capsys.readouterr().out)["predictions"]
        assert [prediction["saturated"] for prediction in predictions] == [False, True]
        assert main(["predict", server.address, str(inputs), *trust]) == 0
        header, *rows = (line.split() for line in capsys.readouterr().out.splitlines() if line.strip())
        place = header.index("saturated")
        assert [row[place] for row in rows[:2]] == ["no", "yes"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"output": "label"}, "beside logits or values alone, and the output is label"),
        ({"output": "probability"}, "the output is probability"),
        ({"output": "top-k"}, "the output is top-k"),
        ({"output": "logits", "mode": "spectral"}, "mode spectral computes on ciphertexts"),
    ],
)
def test_other_outputs_refuse_the_bit(options: dict[str, Any], reason: str) -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    with pytest.raises(lanner.MisuseError, match=reason):
        lanner.compile(table_network(3), x, **({"mode": "gazelle"} | options), reveal_saturation=True)


def test_what_cannot_saturate_or_may_wrap_refuses_the_bit() -> None:
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    weights = random_weights(3, a=(3, 8))
    linear = make_model([helper.make_node("Gemm", ["x", "a"], ["y"], transB=1)], ("batch", 8), weights)
    options: dict[str, Any] = {"mode": "gazelle", "output": "logits", "reveal_saturation": True}
    with pytest.raises(lanner.UnsupportedOpError, match="no activation of this network can saturate"):
        lanner.compile(linear, x, **options)
    square = [
        helper.make_node("Gemm", ["x", "a", "ab"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "b", "bb"], ["i"], transB=1),
        helper.make_node("Mul", ["i", "i"], ["s"]),
        helper.make_node("Gemm", ["s", "c", "cb"], ["t"], transB=1),
        helper.make_node("Mul", ["t", "t"], ["u"]),
        helper.make_node("Gemm", ["u", "d"], ["y"], transB=1),
    ]
    weights = random_weights(3, a=(24, 8), b=(16, 24), c=(16, 16), d=(3, 16), ab=(24,), bb=(16,), cb=(16,))
    with pytest.raises(lanner.UnsupportedOpError, match=r"may leave their rings, .*no bit would reveal that"):
        lanner.compile(make_model(square, ("batch", 8), weights), x, **options, allow_imprecise=True)


def test_proofs_cost_no_precision() -> None:
    # No ring has room for proofs behind two squares: a lookup that is calibrated reaches what is asked.
    model = compile_embedded("mnist_a", mode="tabula", output="logits")
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
