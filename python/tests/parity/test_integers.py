"""Integers and private bits that are numbers: what rounds or wraps them is refused, and no number is cut off."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import lanner
from helpers.several import Arrays, drawn, expected, first, model_of, node, off_by
from lanner.errors import InputError, UnsupportedOpError

_WHOLE = np.random.default_rng(1).integers(0, 10, (40, 6))


def cast_to(kind: int, given: int) -> onnx.ModelProto:
    nodes = [
        node("Cast", ["x"], "narrow", to=kind),
        node("Cast", ["narrow"], "floats", to=TensorProto.FLOAT),
        node("MatMul", ["floats", "w"], "y"),
    ]
    return model_of(nodes, {"x": (given, ["n", 6])}, {"y": ["n", 3]}, w=drawn(6, 3))


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8, TensorProto.UINT32])
def test_a_cast_that_would_wrap_is_refused(kind: int) -> None:
    with pytest.raises(UnsupportedOpError, match="wraps integers"):
        lanner.compile(cast_to(kind, TensorProto.INT64), 100 * _WHOLE, mode="cheetah", output="value")


@pytest.mark.parametrize(
    ("kind", "given"), [(TensorProto.INT32, TensorProto.INT64), (TensorProto.INT16, TensorProto.UINT8)]
)
def test_a_cast_that_holds_every_integer_is_taken(kind: int, given: int) -> None:
    proto = cast_to(kind, given)
    model = lanner.compile(proto, 20 * _WHOLE, mode="cheetah", output="value")
    arrays: Arrays = {"x": (20 * _WHOLE).astype(np.int64 if given == TensorProto.INT64 else np.uint8)}
    assert off_by(model.predict_fixed(20 * _WHOLE), expected(proto, arrays, "y")) < 0.01


def test_what_no_narrow_integer_of_the_input_is_is_an_error() -> None:
    model = lanner.compile(cast_to(TensorProto.INT16, TensorProto.UINT8), _WHOLE, mode="cheetah", output="value")
    for wrong in (-1, 256):
        with pytest.raises(InputError, match="from 0 to 255"):
            model.predict_fixed(np.full((1, 6), wrong))


def test_what_calibration_saw_is_compared_with_where_an_array_has_no_name() -> None:
    nodes = [
        node("Equal", ["x", "four"], "same"),
        node("Cast", ["same"], "floats", to=TensorProto.FLOAT),
        node("MatMul", ["floats", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.INT64, ["n", 6])}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(6, 3), four=np.array(4))
    model = lanner.compile(proto, _WHOLE, mode="cheetah", output="value")
    assert [entry.choices for entry in model.manifest.input.named] == [10]
    assert off_by(model.predict_fixed(_WHOLE), expected(proto, {"x": _WHOLE}, "y")) < 0.01


#: How a private bit or count meets a number far below 0, which is one of the network's own.
NUMBERS: dict[str, list[onnx.NodeProto]] = {
    "a price that is taken off": [
        node("Cast", ["flag"], "set", to=TensorProto.FLOAT),
        node("Mul", ["set", "far"], "off"),
        node("Add", ["h", "off"], "y"),
    ],
    "a value in another's place": [node("Where", ["flag", "h", "far"], "y")],
    "a value that a layer reads": [
        node("Where", ["flag", "h", "far"], "chosen"),
        node("MatMul", ["chosen", "v"], "y"),
    ],
}


def flags(*shape: int) -> NDArray[np.bool_]:
    return np.random.default_rng(2).random(shape) < 0.5


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_far_below_is_no_mask_where_it_is_computed_with(name: str) -> None:
    nodes = [node("MatMul", ["x", "w"], "h"), *NUMBERS[name]]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 5]),
        "flag": (TensorProto.BOOL, ["n", 3]),
    }
    constants = {"w": 10 * drawn(5, 3), "v": drawn(3, 3), "far": np.array(-2000, np.float32)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, **constants)
    arrays: Arrays = {"x": drawn(40, 5), "flag": flags(40, 3)}
    model = lanner.compile(proto, arrays, mode="cheetah", output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01


def test_a_count_is_no_mask() -> None:
    nodes = [node("MatMul", ["x", "w"], "h"), *NUMBERS["a price that is taken off"]]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 5]),
        "flag": (TensorProto.INT64, ["n", 3]),
    }
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=10 * drawn(5, 3), far=np.array(-2000, np.float32))
    arrays: Arrays = {"x": drawn(40, 5), "flag": _WHOLE[:, :3]}
    model = lanner.compile(proto, arrays, mode="cheetah", output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01


def test_a_table_of_one_row_is_a_constant() -> None:
    nodes = [
        node("Gather", ["kinds", "kind"], "e"),
        node("Add", ["e", "x"], "sum"),
        node("Flatten", ["sum"], "flat"),
        node("MatMul", ["flat", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "kind": (TensorProto.INT64, ["n", 3]),
        "x": (TensorProto.FLOAT, ["n", 3, 4]),
    }
    proto = model_of(nodes, inputs, {"y": ["n", 2]}, kinds=drawn(1, 4), w=drawn(12, 2))
    arrays: Arrays = {"kind": np.zeros((40, 3), np.int64), "x": drawn(40, 3, 4)}
    model = lanner.compile(proto, arrays, mode="cheetah", output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01
    prediction = lanner.run(model, first(arrays))
    assert prediction.integers == model.predict_integers(first(arrays))[0][0].tolist()
    with pytest.raises(InputError, match="from 0 to 0"):
        model.predict_fixed({**arrays, "kind": arrays["kind"] + 1})


@pytest.mark.parametrize("column", [False, True])
def test_a_sample_may_be_one_index_of_each_input(column: bool) -> None:
    axis = [node("Unsqueeze", ["user", "one"], "of"), node("Gather", ["users", "of"], "c")]
    nodes = [
        *([*axis, node("Squeeze", ["c", "one"], "a")] if column else [node("Gather", ["users", "user"], "a")]),
        node("Gather", ["films", "film"], "b"),
        node("Concat", ["a", "b"], "both", axis=1),
        node("MatMul", ["both", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "user": (TensorProto.INT64, ["n"]),
        "film": (TensorProto.INT64, ["n"]),
    }
    constants = {"users": drawn(10, 4), "films": drawn(7, 4), "w": drawn(8, 1), "one": np.array([1])}
    proto = model_of(nodes, inputs, {"y": ["n", 1]}, **constants)
    arrays: Arrays = {"user": _WHOLE[:, 0], "film": _WHOLE[:, 1] % 7}
    model = lanner.compile(proto, arrays, mode="cheetah", output="value")
    assert [entry.shape for entry in model.manifest.input.named] == [(), ()]
    exact = expected(proto, arrays, "y")
    assert off_by(model.predict_fixed(arrays), exact) < 0.01
    prediction = lanner.run(model, {"user": arrays["user"][0], "film": arrays["film"][0]})
    assert isinstance(prediction.values, list)
    assert abs(prediction.values[0] - exact[0, 0]) < 0.01 * np.ptp(exact)


def test_a_mask_that_is_made_floats_and_asked_for_its_truth() -> None:
    """As Hugging Face's ``_expand_mask`` is exported: both the condition and a value of a Where are of one bit."""
    nodes = [
        node("Cast", ["mask"], "seen", to=TensorProto.FLOAT),
        node("Sub", ["one", "seen"], "inverted"),
        node("Cast", ["inverted"], "hidden", to=TensorProto.BOOL),
        node("Where", ["hidden", "least", "inverted"], "added"),
        node("MatMul", ["x", "w"], "scores"),
        node("Add", ["scores", "added"], "masked"),
        node("Softmax", ["masked"], "weights", axis=-1),
        node("MatMul", ["weights", "v"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, ["n", 5]),
        "mask": (TensorProto.INT64, ["n", 6]),
    }
    constants = {"one": np.array(1, np.float32), "least": np.array(np.finfo(np.float32).min)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(5, 6), v=drawn(6, 3), **constants)
    arrays: Arrays = {"x": drawn(40, 5), "mask": (np.arange(6) < _WHOLE[:, :1] % 6 + 1).astype(np.int64)}
    model = lanner.compile(proto, arrays, mode="cheetah", output="logits", precision=11)
    assert [entry.choices for entry in model.manifest.input.named] == [None, 2]
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01


def test_an_index_is_replaced_where_it_is_another() -> None:
    nodes = [
        node("Equal", ["ids", "missing"], "lost"),
        node("Where", ["lost", "zero", "ids"], "places"),
        node("Gather", ["table", "places"], "e"),
        node("Flatten", ["e"], "flat"),
        node("MatMul", ["flat", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 6])}
    constants = {"missing": np.array(3), "zero": np.array(0)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, table=drawn(10, 4), w=drawn(24, 3), **constants)
    model = lanner.compile(proto, _WHOLE, mode="cheetah", output="value", precision=11)
    assert off_by(model.predict_fixed(_WHOLE), expected(proto, {"ids": _WHOLE}, "y")) < 0.01
