"""Models with several inputs and outputs, integers and masks: against onnxruntime, and in private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import lanner
from helpers.several import (
    Arrays,
    attention,
    drawn,
    expected,
    first,
    model_of,
    node,
    off_by,
    tokens,
    two_floats,
)
from lanner.errors import InputError, MisuseError, ModelError
from lanner.named import decode_inputs, encode_inputs


def test_inputs_of_different_sizes_and_outputs_by_name() -> None:
    proto, arrays = two_floats()
    model = lanner.compile(proto, arrays, output_name=["y", "z"])
    assert model.manifest.output == "value"
    sample = first(arrays)
    prediction = lanner.run(model, sample)
    assert isinstance(prediction.values, dict)
    assert prediction.shape == {"y": [3], "z": [5]}
    for name in ("y", "z"):
        exact = expected(proto, arrays, name)
        assert np.abs(np.asarray(prediction.values[name]) - exact[0]).max() < 0.01 * np.ptp(exact)
    assert prediction.reals is not None
    assert np.allclose(model.predict_fixed(sample)[0], prediction.reals)
    columns = np.concatenate([expected(proto, sample, name) for name in ("y", "z")], axis=1)
    assert np.allclose(model.predict_float(sample), columns, atol=1e-4)


def test_one_of_the_outputs_needs_the_inputs_that_it_reads() -> None:
    proto, arrays = two_floats()
    model = lanner.compile(proto, {"a": arrays["a"]}, output_name="z", output="value")
    assert [entry.name for entry in model.manifest.input.named] == []
    assert off_by(model.predict_fixed(arrays["a"]), expected(proto, arrays, "z")) < 0.01


@pytest.mark.parametrize("mode", ["cheetah", "gazelle"])
def test_tokens_are_looked_up_and_a_private_mask_hides_padding(mode: str) -> None:
    proto, arrays = attention(), tokens(40)
    model = lanner.compile(proto, arrays, mode=mode, shape="sequence=6", output="logits")
    choices = [entry.choices for entry in model.manifest.input.named]
    assert choices == [20, 2, 2]
    others = tokens(12, seed=4)
    assert off_by(model.predict_fixed(others), expected(proto, others, "y")) < 0.02
    prediction = lanner.run(model, first(others))
    assert prediction.integers == model.predict_integers(first(others))[0][0].tolist()


def test_a_mask_that_is_multiplied_is_one_of_bits() -> None:
    nodes = [
        node("Cast", ["mask"], "seen", to=TensorProto.FLOAT),
        node("Sub", ["one", "seen"], "hidden"),
        node("Mul", ["hidden", "least"], "added"),
        node("MatMul", ["x", "w"], "scores"),
        node("Add", ["scores", "added"], "masked"),
        node("Softmax", ["masked"], "weights", axis=-1),
        node("MatMul", ["weights", "v"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 5]),
        "mask": (TensorProto.INT64, ["n", 6]),
    }
    constants = {"one": np.ones(1, np.float32), "least": np.full(1, -1e9, np.float32)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(5, 6), v=drawn(6, 3), **constants)
    arrays = {"x": drawn(40, 5, seed=6), "mask": tokens(40)["mask"]}
    model = lanner.compile(proto, arrays, mode="cheetah", output="logits")
    assert [entry.choices for entry in model.manifest.input.named] == [None, 2]
    others = {"x": drawn(20, 5, seed=7), "mask": tokens(20, seed=8)["mask"]}
    assert off_by(model.predict_fixed(others), expected(proto, others, "y")) < 0.01


CHOICES: dict[str, list[onnx.NodeProto]] = {
    "a mask where the bit holds": [node("Where", ["hidden", "least", "s"], "chosen")],
    "a mask where it does not": [node("Not", ["hidden"], "seen"), node("Where", ["seen", "s", "least"], "chosen")],
    "a constant or a value": [node("Where", ["hidden", "c", "s"], "chosen")],
    "one of two values": [node("Relu", ["s"], "r"), node("Where", ["hidden", "r", "s"], "chosen")],
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_private_bit_chooses(name: str) -> None:
    nodes = [
        node("Equal", ["mask", "zero"], "hidden"),
        node("MatMul", ["x", "w"], "s"),
        *CHOICES[name],
        node("Softmax", ["chosen"], "weights", axis=-1),
        node("MatMul", ["weights", "v"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 5]),
        "mask": (TensorProto.INT64, ["n", 6]),
    }
    constants = {
        "zero": np.array([0]),
        "c": np.array(0.7, np.float32),
        "least": np.array(np.finfo(np.float32).min),
    }
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(5, 6), v=drawn(6, 3), **constants)
    arrays = {"x": drawn(40, 5, seed=6), "mask": tokens(40)["mask"]}
    model = lanner.compile(proto, arrays, mode="cheetah", output="logits", precision=11)
    others = {"x": drawn(20, 5, seed=7), "mask": tokens(20, seed=8)["mask"]}
    assert off_by(model.predict_fixed(others), expected(proto, others, "y")) < 0.01


def test_a_table_of_what_is_computed_of_an_index_does_not_bound_it() -> None:
    nodes = [
        node("Equal", ["ids", "separator"], "ends"),
        node("Cast", ["ends"], "second", to=TensorProto.INT64),
        node("Gather", ["types", "second"], "kind"),
        node("Gather", ["words", "ids"], "word"),
        node("Add", ["kind", "word"], "x"),
        node("Relu", ["x"], "r"),
        node("Flatten", ["r"], "flat"),
        node("MatMul", ["flat", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 6])}
    tables = {"types": drawn(2, 4), "words": drawn(20, 4), "separator": np.array([3])}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(24, 3), **tables)
    ids = tokens(40)["ids"]
    model = lanner.compile(proto, ids, mode="cheetah", output="logits", precision=11)
    assert [entry.choices for entry in model.manifest.input.named] == [20]
    assert off_by(model.predict_fixed(ids), expected(proto, {"ids": ids}, "y")) < 0.01


def one_hot() -> tuple[onnx.ModelProto, Arrays]:
    """Bytes that a file makes rows of zeros and a one of by comparing them, as tf2onnx writes it."""
    nodes = [
        node("Unsqueeze", ["x", "last"], "column"),
        node("Equal", ["column", "numbers"], "equal"),
        node("Cast", ["equal"], "rows", to=TensorProto.FLOAT),
        node("MatMul", ["rows", "w"], "h"),
        node("Relu", ["h"], "r"),
        node("Flatten", ["r"], "flat"),
        node("MatMul", ["flat", "v"], "y"),
    ]
    weights = {"last": np.array([-1]), "numbers": np.arange(9), "w": drawn(9, 4), "v": drawn(20, 3)}
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.INT64, ["n", 5])}
    return model_of(nodes, inputs, {"y": ["n", 3]}, **weights), {
        "x": np.random.default_rng(0).integers(0, 9, (40, 5)),
    }


def test_an_array_alone_is_the_only_input() -> None:
    proto, arrays = one_hot()
    model = lanner.compile(proto, arrays["x"], output="logits")
    assert [(entry.name, entry.choices) for entry in model.manifest.input.named] == [("x", 9)]
    exact = expected(proto, arrays, "y")
    assert off_by(model.predict_fixed(arrays["x"]), exact) < 0.01
    assert off_by(model.predict_fixed({"x": arrays["x"]}), exact) < 0.01
    prediction = lanner.run(model, arrays["x"][0])
    assert prediction.logits is not None
    assert np.abs(np.asarray(prediction.logits) - exact[0]).max() < 0.01 * np.ptp(exact)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ids": 20}, "input ids: element .* is no whole number from 0 to 19"),
        ({"ids": -1}, "input ids: element .* is no whole number from 0 to 19"),
        ({"ids": 0.5}, "input ids: element .* is no whole number"),
        ({"mask": 2}, "input mask: element .* is no whole number from 0 to 1"),
        ({"ids": None}, "input ids is missing"),
        ({"other": 0}, "input other is not an input of the model"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_sent(change: Arrays, sentence: str) -> None:
    model = lanner.compile(attention(), tokens(32), mode="cheetah", shape="sequence=6", output="logits", precision=10)
    arrays: dict[str, Any] = first(tokens(1))
    for name, value in change.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = np.array(arrays["ids"], np.float32)
            arrays[name][0, 3] = value
    with pytest.raises(InputError, match=sentence):
        lanner.run(model, arrays)


def test_sizes_and_constants_come_from_the_owner() -> None:
    nodes = [
        node("Mul", ["x", "rate"], "scaled"),
        node("ReduceMean", ["scaled"], "mean", axes=[2], keepdims=0),
        node("MatMul", ["mean", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 3, "time"]),
        "rate": (TensorProto.FLOAT, []),
    }
    proto, x = model_of(nodes, inputs, {"y": ["n", 2]}, w=drawn(3, 2)), drawn(40, 3, 8)
    with pytest.raises(ModelError, match=r'shape="time=8.*|fix="rate=VALUE'):
        lanner.compile(proto, x)
    with pytest.raises(ModelError, match='shape="time=8'):
        lanner.compile(proto, x, fix="rate=2")
    model = lanner.compile(proto, x, fix={"rate": 2}, shape="x=1x3x8", output="logits")
    exact = expected(proto, {"x": x, "rate": np.array(2, np.float32)}, "y")
    assert off_by(model.predict_fixed(x), exact) < 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"shape": "a"}, "'a' is not NAME=SIZE"),
        ({"shape": "a=0"}, "'0' is no size of a"),
        ({"shape": "c=3"}, "there is no axis or input c"),
        ({"shape": "a=1x2x3x4"}, "input a has axes n x 6|input a has axes nx6"),
        ({"fix": "c=1"}, "there is no input c"),
        ({"fix": "a"}, "'a' is not NAME=VALUE"),
        ({"fix": "a=many"}, "'many' is no number for input a"),
        ({"fix": {"a": np.zeros((1, 5))}}, r"input a has shape \(n, 6\), and the constant \(1, 5\)"),
        ({"output_name": "y,z", "output": "label"}, "output label is of one output's scores"),
        ({"output_name": "y,w"}, "no output w"),
    ],
)
def test_what_an_owner_says_must_fit_the_file(options: dict[str, Any], sentence: str) -> None:
    proto, arrays = two_floats()
    with pytest.raises(MisuseError, match=sentence):
        lanner.compile(proto, arrays, **options)


def test_encoding_is_undone() -> None:
    model = lanner.compile(attention(), tokens(32), mode="cheetah", shape="sequence=6", output="logits", precision=10)
    arrays, named = tokens(3), model.manifest.input.named
    floats = {name: values.astype(np.float32) for name, values in arrays.items()}
    back = decode_inputs(named, encode_inputs(named, floats, "input"))
    assert all(np.array_equal(back[name], values) and back[name].dtype == np.int64 for name, values in arrays.items())


def test_a_file_tells_its_inputs_again(tmp_path: Path) -> None:
    proto, arrays = two_floats()
    model = lanner.compile(proto, arrays, output_name="y,z", precision=10)
    model.save(tmp_path / "net.lanner")
    loaded = lanner.load(tmp_path / "net.lanner")
    assert loaded.manifest.input.named == model.manifest.input.named
    assert loaded.manifest.outputs == model.manifest.outputs
    assert np.array_equal(loaded.predict_integers(first(arrays))[0], model.predict_integers(first(arrays))[0])
    assert np.allclose(loaded.predict_float(arrays), model.predict_float(arrays), rtol=1e-3, atol=1e-3)
