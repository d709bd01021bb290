"""Files of samples for models whose inputs have names: what is in them is taken for what it is, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import lanner
from helpers.processes import lanner as command
from helpers.several import Arrays, drawn, expected, model_of, node, two_floats
from lanner.errors import InputError, MisuseError, ModelError
from lanner.inputs import each_sample, fit_sources, read_json, read_sources


def of_x_and_y() -> tuple[onnx.ModelProto, Arrays]:
    """Inputs with the names that samples and their truth have in other files."""
    nodes = [
        node("MatMul", ["x", "v"], "of x"),
        node("MatMul", ["y", "w"], "of y"),
        node("Add", ["of x", "of y"], "z"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 4]),
        "y": (TensorProto.FLOAT, ["n", 3]),
    }
    proto = model_of(nodes, inputs, {"z": ["n", 2]}, v=drawn(4, 2), w=drawn(3, 2))
    return proto, {"x": drawn(40, 4, seed=1), "y": drawn(40, 3, seed=2)}


def test_an_input_may_be_called_y(tmp_path: Path) -> None:
    proto, arrays = of_x_and_y()
    onnx.save(proto, tmp_path / "net.onnx")
    np.savez(tmp_path / "c.npz", x=arrays["x"], y=arrays["y"])
    compiled = ["--calibration", str(tmp_path / "c.npz"), "--output", "value", "--mode", "cheetah"]
    done = command("compile", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.lanner"), *compiled)
    assert done.code == 0, done.errors
    model = lanner.load(tmp_path / "net.lanner")
    samples = fit_sources(read_sources([tmp_path / "c.npz"]), model.manifest)
    found = model.predict_fixed(np.stack([sample.values for sample in samples]))
    assert np.abs(found - expected(proto, arrays, "z")).max() < 0.05


def test_y_may_be_the_truth_beside_x(tmp_path: Path) -> None:
    nodes = [node("Gather", ["table", "ids"], "e"), node("Flatten", ["e"], "f"), node("MatMul", ["f", "w"], "z")]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 3])}
    proto = model_of(nodes, inputs, {"z": ["n", 2]}, table=drawn(7, 4), w=drawn(12, 2))
    ids = np.random.default_rng(3).integers(0, 7, (40, 3))
    model = lanner.compile(proto, ids, mode="cheetah", output="value")
    for truth in (np.zeros(40), np.full(40, np.nan), np.full(40, "cat")):
        np.savez(tmp_path / "labelled.npz", x=ids, y=truth)
        assert len(fit_sources(read_sources([tmp_path / "labelled.npz"]), model.manifest)) == 40


def test_an_array_of_parts_without_names_is_no_sample(tmp_path: Path) -> None:
    proto, arrays = two_floats()
    model = lanner.compile(proto, arrays, mode="cheetah", output_name=["y", "z"])
    np.save(tmp_path / "flat.npy", np.zeros((2, *model.manifest.input.shape), np.float32))
    with pytest.raises(InputError, match="2 inputs, and this is one array"):
        fit_sources(read_sources([tmp_path / "flat.npy"]), model.manifest)
    with pytest.raises(InputError, match="2 inputs, and this is one array"):
        list(each_sample([tmp_path / "flat.npy"], model.manifest))


def test_a_name_that_is_twice_in_a_file_is_an_error() -> None:
    with pytest.raises(InputError, match="the name ids is there twice"):
        read_json('{"ids": [1], "ids": [2], "x": [1]}', "a.json")


def test_errors_of_calibration_name_the_file_and_the_input(tmp_path: Path) -> None:
    proto, arrays = of_x_and_y()
    onnx.save(proto, tmp_path / "net.onnx")
    (tmp_path / "w.npy").write_bytes(b"")
    np.savez(tmp_path / "c.npz", x=arrays["x"], y=arrays["y"])
    given = ["--calibration", str(tmp_path / "c.npz"), "-o", str(tmp_path / "net.lanner")]
    for constant, error in (("absent.npy", "no such file"), ("w.npy", "cannot be read")):
        done = command("compile", str(tmp_path / "net.onnx"), *given, "--fix", f"y={tmp_path / constant}")
        assert done.code == 6
        assert f"{tmp_path / constant}: {error}" in done.errors


def test_a_batch_that_is_fixed_is_taken_by_the_advice() -> None:
    nodes = [node("Mul", ["a", "b"], "ab"), node("MatMul", ["ab", "w"], "y")]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "a": (TensorProto.FLOAT, [4, 3]),
        "b": (TensorProto.FLOAT, [4, 3]),
    }
    proto = model_of(nodes, inputs, {"y": [4, 2]}, w=drawn(3, 2))
    arrays = {"a": drawn(40, 3, seed=1), "b": drawn(40, 3, seed=2)}
    with pytest.raises(ModelError, match='shape="a=1x3'):
        lanner.compile(proto, arrays, mode="cheetah", output="value")
    model = lanner.compile(proto, arrays, mode="cheetah", output="value", shape="a=1x3,b=1x3")
    exact = (arrays["a"] * arrays["b"]) @ drawn(3, 2)
    assert np.abs(model.predict_fixed(arrays) - exact).max() < 0.01 * np.ptp(exact)


def test_a_stated_range_is_that_of_every_number_as_it_is_given() -> None:
    proto, arrays = two_floats()
    with pytest.raises(InputError, match="outside \\[-5, 5\\]"):
        lanner.compile(proto, arrays, mode="cheetah", output_name=["y", "z"], input_range=(-5, 5))
    model = lanner.compile(
        proto, arrays, mode="cheetah", output_name="y", output="value", input_range=(-500, 500), precision="2%"
    )
    assert [entry.factor for entry in model.manifest.input.named] == [1.0, 1.0]
    largest = {"a": np.full((1, 6), 500.0), "b": np.full((1, 2, 2), -500.0)}
    assert model.predict_fixed(largest).shape == (1, 3)
    with pytest.raises(InputError, match="accepted range \\[-500, 500\\]"):
        model.predict_fixed({**largest, "a": np.full((1, 6), 501.0)})


@pytest.mark.parametrize(("numbers", "sentence"), [(False, "no numbers as inputs"), (True, "no room for the 0 and 1")])
def test_a_stated_range_is_not_that_of_indices(numbers: bool, sentence: str) -> None:
    nodes = [node("Gather", ["table", "ids"], "e"), node("Flatten", ["e"], "f"), node("MatMul", ["f", "w"], "h")]
    nodes += [node("Concat", ["h", "x"] if numbers else ["h"], "z", axis=1)]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 3])}
    inputs |= {"x": (TensorProto.FLOAT, ["n", 2])} if numbers else {}
    proto = model_of(nodes, inputs, {"z": ["n", 4 if numbers else 2]}, table=drawn(7, 4), w=drawn(12, 2))
    arrays: Arrays = {"ids": np.random.default_rng(3).integers(0, 7, (40, 3))}
    arrays |= {"x": drawn(40, 2) / 10} if numbers else {}
    with pytest.raises(MisuseError, match=sentence):
        lanner.compile(proto, arrays, mode="cheetah", output="value", input_range=(-0.5, 0.5))


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("shape", 5, "5 is no text"),
        ("shape", {"a": [1, 6.5]}, "is no size of a"),
        ("fix", 5, "5 is no text"),
        ("fix", {"a": "six"}, "'six' is no number"),
        ("fix", {"a": None}, "no array of numbers"),
        ("output_name", 5, "5 is no text"),
    ],
)
def test_options_of_another_type_are_a_misuse(option: str, value: object, sentence: str) -> None:
    proto, arrays = two_floats()
    with pytest.raises(MisuseError, match=sentence):
        lanner.compile(proto, arrays, **{"output_name": "y", option: value})  # type: ignore[arg-type]


def test_ragged_lists_are_an_error_of_the_input() -> None:
    proto, arrays = two_floats()
    model = lanner.compile(proto, arrays, mode="cheetah", output_name=["y", "z"])
    with pytest.raises(InputError, match="input a: the lists are not of equal length"):
        model.predict_fixed({"a": [[1, 2, [3]]], "b": arrays["b"][:1]})
