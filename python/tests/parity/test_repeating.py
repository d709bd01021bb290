"""Recurrent layers of many steps: one step that repeats, as exact at the end as at the beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import lanner

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

#: As torch draws them: within one over the root of the units.
UNITS, INPUTS, SCORES = 4, 3, 2

FORMS: dict[str, dict[str, Any]] = {
    "lstm": {"operator": "LSTM"},
    "gru": {"operator": "GRU"},
    "gru that resets behind its weights": {"operator": "GRU", "linear_before_reset": 1},
    "rnn in reverse": {"operator": "RNN", "direction": "reverse"},
    "rnn in both directions": {"operator": "RNN", "direction": "bidirectional"},
}


def recurrent(steps: int, operator: str = "LSTM", *, layers: int = 1, **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401
    """Layers on sequences that come sample by sample, and a dense layer on the last state."""
    rng = np.random.default_rng(11)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    constants: dict[str, NDArray[Any]] = {
        "row": np.array([-1, directions * UNITS]),
        "second": np.array([1]),
        "F": rng.uniform(-1, 1, (SCORES, directions * UNITS)),
        "f": rng.uniform(-1, 1, SCORES),
    }
    nodes = [helper.make_node("Transpose", ["x"], ["steps0"], perm=[1, 0, 2])]
    for layer in range(layers):
        inputs = UNITS if layer else INPUTS
        for name, shape in {"W": (inputs,), "R": (UNITS,), "B": (2,)}.items():
            rows = GATES[operator] * UNITS
            drawn = rng.uniform(-1, 1, (directions, *((shape[0] * rows,) if name == "B" else (rows, *shape))))
            constants[f"{name}{layer}"] = drawn / np.sqrt(UNITS)
        names = [f"{name}{layer}" for name in ("steps", "W", "R", "B")]
        made = [f"all{layer}", f"last{layer}"]
        node = helper.make_node(operator, names, made, name=f"layer{layer}", hidden_size=UNITS, **attributes)
        nodes += [node, helper.make_node("Squeeze", [made[0], "second"], [f"steps{layer + 1}"])]
    if directions > 1:
        del nodes[-1]
    nodes += [
        helper.make_node("Transpose", [f"last{layers - 1}"], ["states"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["states", "row"], ["state"]),
        helper.make_node("Gemm", ["state", "F", "f"], ["y"], transB=1),
    ]
    kept = {name: value if name in ("row", "second") else value.astype(np.float32) for name, value in constants.items()}
    entry = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", steps, INPUTS])
    leave = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", SCORES])
    initializers = [numpy_helper.from_array(value, name) for name, value in kept.items()]
    graph = helper.make_graph(nodes, "recurrent", [entry], [leave], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples(steps: int, count: int, seed: int = 3) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, (count, steps, INPUTS)).astype(np.float32)


def compiled(proto: onnx.ModelProto, steps: int) -> lanner.Model:
    return lanner.compile(proto, samples(steps, 4), input_range=(-1, 1), output="logits", mode="cheetah", precision=8)


def expected(proto: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    return scores


#: Operations of a step, at least.
_A_STEP = 6


def loops(model: lanner.Model) -> list[int]:
    """How often the parts of the plan that repeat do so."""
    items = model.manifest.document["plan"]["items"]
    return [item["repeat"]["times"] for item in items if "repeat" in item]


def counts(model: lanner.Model) -> list[int]:
    """How many nodes are written, and how many steps of the plan, of those that say more than where they read."""
    document = model.manifest.document
    items = document["plan"]["items"]
    moves = sum(item.get("step", {}).get("protocol") == "move" for item in items)
    return [len(document["network"]["nodes"]), len(items) - moves]


@pytest.mark.parametrize("name", FORMS)
def test_longer_sequences_add_no_operation(name: str) -> None:
    short, long = (compiled(recurrent(steps, **FORMS[name]), steps) for steps in (16, 32))
    # The first steps, and where an iteration is cut, differ a little.
    assert all(abs(few - many) < _A_STEP for few, many in zip(counts(short), counts(long), strict=True))
    assert max(loops(long)) >= 20
    proto, x = recurrent(32, **FORMS[name]), samples(32, 6, seed=8)
    scores = expected(proto, x)
    assert np.abs(long.predict_fixed(x) - scores).max() < 0.03 * np.abs(scores).max()


def test_layers_on_each_other_repeat_one_by_one() -> None:
    proto = recurrent(20, "GRU", layers=2)
    model = compiled(proto, 20)
    assert sum(times >= 10 for times in loops(model)) >= 2
    x = samples(20, 6, seed=8)
    scores = expected(proto, x)
    assert np.abs(model.predict_fixed(x) - scores).max() < 0.03 * np.abs(scores).max()


@pytest.mark.parametrize("operator", ["RNN", pytest.param("LSTM", marks=pytest.mark.slow)])
def test_a_layer_of_300_steps_compiles_and_does_not_drift(operator: str) -> None:
    proto = recurrent(300, operator)
    model = compiled(proto, 300)
    x = samples(300, 8, seed=8)
    scores = expected(proto, x)
    # As after a few steps: what is rounded in one is forgotten in the next ones.
    off = np.abs(model.predict_fixed(x) - scores).max()
    assert off < 0.02 * np.abs(scores).max()


def test_a_layer_that_repeats_computes_the_same_in_private_and_is_one_in_reports(tmp_path: Path) -> None:
    steps = 12
    path = tmp_path / "model.lanner"
    compiled(recurrent(steps), steps).save(path)
    model = lanner.load(path)
    x = samples(steps, 1, seed=8)
    with lanner.Server(model) as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        prediction = client.predict(x[0])
    assert prediction.integers == model.predict_integers(x)[0][0].tolist()
    names = [layer.name for layer in prediction.layers]
    assert any(".." in name for name in names)
    report = model.report()["steps"]
    repeated = [step["name"] for step in report if step.get("times", 1) > 1]
    assert repeated
    assert all(".." in name for name in repeated)
    assert sum(step.get("output_ciphertexts", 0) for step in report) == steps + 1
    told = model.estimate("lan").layers
    assert {layer.name for layer in told} == set(names)
    foreseen = sum(layer.offline.bytes + layer.online.bytes for layer in told)
    # TLS adds to each of many small messages.
    assert foreseen < sum(layer.bytes for layer in prediction.layers) < 1.2 * foreseen


def test_each_iteration_is_compared_by_itself() -> None:
    steps = 12
    model = compiled(recurrent(steps), steps)
    rows = {row["name"]: row for row in model.debug(samples(steps, 1)[0], secure=True).document["layers"]}
    for step in range(steps):
        assert rows[f"layer0/t{step}/h"]["secure_differences"] == 0
