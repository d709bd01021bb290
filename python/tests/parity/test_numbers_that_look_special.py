"""Numbers that are taken for masks, units or places only where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import lanner
from helpers.several import Arrays, drawn, expected, model_of, node, off_by
from lanner.apart import sentence_apart
from lanner.errors import UnsupportedOpError
from lanner.precision import PrecisionWarning

COLUMNS = 4

_UNIT: dict[str, Any] = {"scale": np.float32(0.05), "zero": np.uint8(100)}
_INPUTS: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.FLOAT, ["n", COLUMNS])}
_X = drawn(100, COLUMNS)
_X = _X[np.abs(_X.sum(1)) > 0.05]


def one_by_one(proto: onnx.ModelProto, arrays: Arrays) -> Any:  # noqa: ANN401
    count = len(next(iter(arrays.values())))
    rows = [{name: each[at : at + 1] for name, each in arrays.items()} for at in range(count)]
    return np.concatenate([expected(proto, row, "y") for row in rows])


def body(nodes: list[onnx.NodeProto], output: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])


def positive(keepdims: int = 1) -> list[onnx.NodeProto]:
    return [node("ReduceSum", ["x", "last"], "sum", keepdims=keepdims), node("Greater", ["sum", "nought"], "positive")]


def test_a_choice_between_quantised_values_is_refused() -> None:
    nodes = [
        *positive(),
        node("MatMul", ["x", "w"], "a"),
        node("Relu", ["a"], "b"),
        node("QuantizeLinear", ["a", "scale", "zero"], "qa"),
        node("QuantizeLinear", ["b", "scale", "zero"], "qb"),
        node("Where", ["positive", "qa", "qb"], "q"),
        node("DequantizeLinear", ["q", "scale", "zero"], "y"),
    ]
    constants: dict[str, Any] = {"last": np.array([1]), "nought": np.float32(0), "w": drawn(COLUMNS, 3), **_UNIT}
    with pytest.raises(UnsupportedOpError, match="input 0 of Where holds quantised integers"):
        lanner.compile(model_of(nodes, _INPUTS, {"y": ["n", 3]}, **constants), _X)


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.BOOL])
def test_quantised_integers_are_not_cast_to_types_that_they_may_leave(kind: int) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], "q"),
        node("Cast", ["q"], "other", to=kind),
        node("Cast", ["other"], "floats", to=TensorProto.FLOAT),
        node("MatMul", ["floats", "w"], "y"),
    ]
    with pytest.raises(UnsupportedOpError, match="which quantised integers may not fit"):
        lanner.compile(model_of(nodes, _INPUTS, {"y": ["n", 3]}, w=drawn(COLUMNS, 3), **_UNIT), _X)


@pytest.mark.parametrize("in_branch", [True, False])
def test_a_price_that_a_branch_adds_up_is_no_mask(in_branch: bool) -> None:
    priced = [node("Where", ["m", "x", "price"], "p")]
    summed = [node("MatMul", ["p", "w"], "o")]
    other = body([node("MatMul", ["x", "w"], "o2")], "o2")
    then = body(priced + summed if in_branch else summed, "o")
    nodes = [
        *positive(),
        *([] if in_branch else priced),
        helper.make_node("If", ["positive"], ["y"], name="y", then_branch=then, else_branch=other),
    ]
    constants: dict[str, Any] = {"last": np.array([1]), "nought": np.float32(0), "w": drawn(COLUMNS, 3)}
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "x": (TensorProto.FLOAT, [1, COLUMNS]),
        "m": (TensorProto.BOOL, [1, COLUMNS]),
    }
    proto = model_of(nodes, inputs, {"y": [1, 3]}, **constants, price=np.array(-5000, np.float32))
    arrays = {"x": 1000 * _X, "m": np.random.default_rng(0).integers(0, 2, _X.shape).astype(bool)}
    model = lanner.compile(proto, arrays, output="value")
    assert off_by(model.predict_fixed(arrays), one_by_one(proto, arrays)) < 0.01


def test_a_price_that_a_loop_adds_up_is_no_mask() -> None:
    infos: tuple[tuple[str, int, Any], ...] = (
        ("i", TensorProto.INT64, []),
        ("go", TensorProto.BOOL, []),
        ("state", TensorProto.FLOAT, None),
    )
    outs: tuple[tuple[str, int, Any], ...] = (("again", TensorProto.BOOL, []), ("next", TensorProto.FLOAT, None))
    steps = [
        node("Where", ["m", "state", "price"], "p"),
        node("MatMul", ["p", "w"], "next"),
        node("Identity", ["go"], "again"),
    ]
    loop = helper.make_graph(
        steps,
        "body",
        [helper.make_tensor_value_info(*info) for info in infos],
        [helper.make_tensor_value_info(*out) for out in outs],
    )
    nodes = [
        helper.make_node("Loop", ["two", "true", "x"], ["o"], name="o", body=loop),
        node("MatMul", ["o", "v"], "y"),
    ]
    constants: dict[str, Any] = {"two": np.array(2), "true": np.array(True), "price": np.array(-5000, np.float32)}
    inputs: dict[str, tuple[int, list[str | int]]] = {**_INPUTS, "m": (TensorProto.BOOL, ["n", COLUMNS])}
    weights: dict[str, Any] = {"w": drawn(COLUMNS, COLUMNS) / 4, "v": drawn(COLUMNS, 3)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, **constants, **weights)
    arrays = {"x": 1000 * _X, "m": np.random.default_rng(0).integers(0, 2, _X.shape).astype(bool)}
    model = lanner.compile(proto, arrays, output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01


def test_a_constant_that_is_chosen_hides_nothing_of_what_it_is_chosen_instead_of() -> None:
    chosen = np.array([[0, 0, -1500, 0]], np.float32)
    nodes = [
        node("MatMul", ["x", "v"], "scores"),
        *positive(),
        node("Where", ["positive", "scores", "chosen"], "either"),
        node("Softmax", ["either"], "parts", axis=-1),
        node("MatMul", ["parts", "w"], "y"),
    ]
    constants: dict[str, Any] = {"last": np.array([1]), "nought": np.float32(0), "chosen": chosen}
    weights: dict[str, Any] = {"v": drawn(COLUMNS, COLUMNS), "w": drawn(COLUMNS, 3)}
    proto = model_of(nodes, _INPUTS, {"y": ["n", 3]}, **constants, **weights)
    model = lanner.compile(proto, _X, output="value", precision="1%")
    assert off_by(model.predict_fixed(_X), expected(proto, {"x": _X}, "y")) < 0.015


@pytest.mark.parametrize(("masking", "divisor"), [(-1e9, 64.0), (-1e4, 16.0)])
@pytest.mark.parametrize("constant_node", [False, True])
def test_scores_that_are_scaled_behind_their_mask_stay_hidden(
    masking: float, divisor: float, constant_node: bool
) -> None:
    length = 6
    made = helper.make_node(
        "Constant", [], ["divisor"], value=onnx.numpy_helper.from_array(np.array(divisor, np.float32))
    )
    nodes = [
        node("MatMul", ["x", "v"], "scores"),
        node("Where", ["m", "scores", "masking"], "masked"),
        *([made] if constant_node else []),
        node("Div", ["masked", "divisor"], "scaled"),
        node("Softmax", ["scaled"], "parts", axis=-1),
        node("MatMul", ["parts", "w"], "y"),
    ]
    held: dict[str, Any] = {"v": drawn(COLUMNS, length), "w": drawn(length, 3), "masking": np.float32(masking)}
    held |= {} if constant_node else {"divisor": np.float32(divisor)}
    inputs: dict[str, tuple[int, list[str | int]]] = {**_INPUTS, "m": (TensorProto.BOOL, ["n", length])}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, **held)
    seen = np.random.default_rng(7).random((len(_X), length)) < 0.6
    seen[:2] = True
    seen[:, 0] = True
    arrays = {"x": _X, "m": seen}
    model = lanner.compile(proto, arrays, output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01


def test_the_place_of_a_last_token_may_be_compared() -> None:
    """As GPT-2 finds it: places of an arg-max are exact."""
    nodes = [
        node("Equal", ["ids", "pad"], "padding"),
        node("Cast", ["padding"], "counts", to=TensorProto.INT64),
        node("ArgMax", ["counts"], "first", axis=-1, keepdims=1),
        node("Sub", ["first", "one"], "last"),
        node("Equal", ["places", "last"], "is"),
        node("Cast", ["is"], "bits", to=TensorProto.FLOAT),
        node("Gather", ["table", "ids"], "rows"),
        node("Unsqueeze", ["bits", "end"], "each"),
        node("Mul", ["rows", "each"], "picked"),
        node("ReduceSum", ["picked", "steps"], "y", keepdims=0),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 6])}
    held: dict[str, Any] = {"pad": np.array(3), "one": np.array(1), "places": np.arange(6), "table": drawn(20, 3)}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, end=np.array([2]), steps=np.array([1]), **held)
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 20, (60, 6))
    for row, length in enumerate(rng.integers(1, 6, 60)):
        ids[row, length:] = 3
    model = lanner.compile(proto, {"ids": ids}, output="value")
    assert off_by(model.predict_fixed({"ids": ids}), expected(proto, {"ids": ids}, "y")) < 0.005


@pytest.mark.parametrize("operator", ["Equal", "GreaterOrEqual", "Less"])
def test_places_that_are_moved_before_they_are_compared_are_refused(operator: str) -> None:
    nodes = [
        node("Gather", ["table", "ids"], "rows"),
        node("ReduceMean", ["rows"], "mean", axes=[1], keepdims=0),
        node("ReduceMax", ["ids"], "largest", axes=[1], keepdims=1),
        node(operator, ["largest", "pad"], "is"),
        node("Cast", ["is"], "bit", to=TensorProto.FLOAT),
        node("Add", ["mean", "bit"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", 6])}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, table=drawn(50, 3), pad=np.array(40))
    with pytest.raises(UnsupportedOpError, match="holds looked-up values that were moved or added"):
        lanner.compile(proto, {"ids": np.random.default_rng(0).integers(0, 50, (60, 6))})


def test_a_file_that_rounds_by_itself_is_noted() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], "q"),
        node("DequantizeLinear", ["q", "scale", "zero"], "read"),
        node("MatMul", ["read", "w"], "y"),
    ]
    unit: dict[str, Any] = {"scale": np.float32(0.2), "zero": np.uint8(100)}
    proto = model_of(nodes, _INPUTS, {"y": ["n", 3]}, w=drawn(COLUMNS, 3), **unit)
    with pytest.warns(PrecisionWarning, match="the file rounds to few bits while it runs"):
        model = lanner.compile(proto, _X, output="value")
    assert any("rounds to few bits" in note for note in model.notes)


def test_scores_that_are_apart_are_told_and_others_are_not() -> None:
    proto = model_of([node("MatMul", ["x", "w"], "y")], _INPUTS, {"y": ["n", 3]}, w=drawn(COLUMNS, 3))
    exact = drawn(2, 3)
    assert sentence_apart(proto, exact, exact + np.float32(1e-6)) is None
    assert "differ by 10% of their range" in str(sentence_apart(proto, exact + 0.1 * np.ptp(exact), exact))
    assert sentence_apart(proto, exact, np.full_like(exact, np.nan)) is None
    # Scores that are masked in both, and scores that rounding to float32 tells apart.
    masked = exact.copy()
    masked[0, 0] = -1e9
    assert sentence_apart(proto, np.where(masked < -1000, -30, masked).astype(np.float32), masked) is None
    large = np.array([[250000.0], [250000.02]], np.float32)
    assert sentence_apart(proto, large + np.float32(0.03), large) is None
