"""Cumulative sums, and tokens that a network numbers by itself, as RoBERTa, MPNet and OPT do."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import lanner
from helpers.several import Arrays, drawn, expected, model_of, node, off_by

PAD, WORDS, LENGTH, WIDTH = 1, 9, 7, 3

#: Ids of which padding may be anywhere: a network that numbers tokens numbers these.
_IDS = np.random.default_rng(3).integers(0, WORDS, (60, LENGTH))
_IDS[::2][np.random.default_rng(4).random((30, LENGTH)) < 0.4] = PAD


def of_ids(nodes: list[onnx.NodeProto], **constants: np.ndarray) -> onnx.ModelProto:
    """The sum of each token's word and position, which `nodes` make of `ids`."""
    ends = [
        node("Gather", ["words", "ids"], "embedded"),
        node("Gather", ["places", "positions"], "placed"),
        node("Add", ["embedded", "placed"], "y"),
    ]
    tables = {"words": drawn(WORDS, WIDTH), "places": 3 * drawn(LENGTH + 2, WIDTH)}
    known = {"axis": np.array(1), "pad": np.array(PAD), **tables, **constants}
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", LENGTH])}
    return model_of([*nodes, *ends], inputs, {"y": ["n", LENGTH, WIDTH]}, **known)


#: As exporters write it: the mask is told of the ids; a place of padding has the number of the padding.
_NUMBERED = [
    node("Equal", ["ids", "pad"], "padding"),
    node("Not", ["padding"], "mask"),
    node("Cast", ["mask"], "ones", to=TensorProto.INT32),
    node("CumSum", ["ones", "axis"], "counts"),
    node("Mul", ["counts", "ones"], "numbers"),
    node("Cast", ["numbers"], "wide", to=TensorProto.INT64),
    node("Add", ["wide", "pad"], "positions"),
]


def check(proto: onnx.ModelProto, arrays: Arrays, bound: float = 0.01) -> lanner.Model:
    model = lanner.compile(proto, {name: array[:40] for name, array in arrays.items()}, mode="cheetah", output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < bound
    return model


def test_tokens_are_numbered_wherever_padding_is() -> None:
    model = check(of_ids(_NUMBERED), {"ids": _IDS})
    for ids in ([PAD] * LENGTH, [2] * LENGTH, [PAD, 2, PAD, PAD, 3, PAD, 4]):
        arrays: Arrays = {"ids": np.array([ids])}
        assert off_by(model.predict_fixed(arrays), expected(of_ids(_NUMBERED), arrays, "y")) < 0.02
    predicted = np.array(lanner.run(model, {"ids": _IDS[0]}).values)
    assert np.allclose(predicted.ravel(), model.predict_fixed({"ids": _IDS[:1]}).ravel(), rtol=1e-12)


def test_numbers_of_a_mask_that_is_an_input_are_right() -> None:
    nodes = [
        node("CumSum", ["mask", "axis"], "counts"),
        node("Mul", ["counts", "mask"], "positions"),
        node("Gather", ["places", "positions"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"mask": (TensorProto.INT64, ["n", LENGTH])}
    constants = {"axis": np.array(1), "places": drawn(LENGTH + 1, WIDTH)}
    proto = model_of(nodes, inputs, {"y": ["n", LENGTH, WIDTH]}, **constants)
    check(proto, {"mask": (np.random.default_rng(5).random((60, LENGTH)) < 0.6).astype(np.int64)})


@pytest.mark.parametrize("attributes", [{}, {"reverse": 1}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}])
def test_counts_alone_are_looked_up(attributes: dict[str, int]) -> None:
    nodes = [
        node("Equal", ["ids", "pad"], "padding"),
        node("Cast", ["padding"], "ones", to=TensorProto.INT64),
        node("CumSum", ["ones", "axis"], "positions", **attributes),
    ]
    check(of_ids(nodes), {"ids": _IDS})


def test_elements_of_a_line_are_gathered_at_the_numbers() -> None:
    # As RoBERTa picks the types of its tokens.
    kinds = np.array([[0, 1, 2, 0, 1, 2, 0, 1, 2]])
    nodes = [*_NUMBERED[:-1], node("Add", ["wide", "pad"], "numbered")]
    nodes += [node("GatherElements", ["kinds", "numbered"], "positions", axis=1)]
    proto = of_ids(nodes, kinds=kinds)
    model = lanner.compile(proto, {"ids": _IDS}, mode="cheetah", output="value")
    for ids in _IDS[:20]:
        arrays: Arrays = {"ids": ids[None]}
        assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.02


def test_another_mask_is_multiplied_with_counts() -> None:
    nodes = [
        *_NUMBERED[:4],
        node("Equal", ["ids", "axis"], "other"),
        node("Cast", ["other"], "ones2", to=TensorProto.INT32),
    ]
    nodes += [node("Mul", ["counts", "ones2"], "numbers"), *_NUMBERED[5:]]
    # The other mask is that of the ids that are padding, so that it is told of the same truth values.
    check(of_ids(nodes), {"ids": _IDS})


def test_a_mask_of_other_tokens_is_refused_where_it_is_looked_up() -> None:
    nodes = [
        *_NUMBERED[:4],
        node("Equal", ["ids", "four"], "other"),
        node("Cast", ["other"], "ones2", to=TensorProto.INT32),
    ]
    nodes += [node("Mul", ["counts", "ones2"], "numbers"), *_NUMBERED[5:]]
    with pytest.raises(lanner.UnsupportedOpError, match="node "):
        lanner.compile(of_ids(nodes, four=np.array(4)), {"ids": _IDS}, mode="cheetah", output="value")


@pytest.mark.parametrize("attributes", [{}, {"reverse": 1}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_cumulative_sums_of_values_are_right(axis: int, attributes: dict[str, int]) -> None:
    nodes = [node("MatMul", ["x", "w"], "h"), node("CumSum", ["h", "axis"], "y", **attributes)]
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.FLOAT, ["n", 5, 4])}
    proto = model_of(nodes, inputs, {"y": ["n", 5, 3]}, axis=np.array(axis), w=drawn(4, 3))
    check(proto, {"x": drawn(60, 5, 4)})


def test_a_cumulative_sum_over_samples_is_refused() -> None:
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.FLOAT, ["n", 5])}
    proto = model_of([node("CumSum", ["x", "axis"], "y")], inputs, {"y": ["n", 5]}, axis=np.array(0))
    with pytest.raises(lanner.UnsupportedOpError, match="samples"):
        lanner.compile(proto, drawn(40, 5), mode="cheetah", output="value")


@pytest.mark.parametrize("above", [0.9, 0.0])
def test_truths_that_are_computed_are_counted(above: float) -> None:
    # Few hold in the calibration samples, and all of them may.
    nodes = [
        node("Greater", ["x", "zero"], "truth"),
        node("Cast", ["truth"], "ones", to=TensorProto.INT64),
        node("CumSum", ["ones", "axis"], "counts"),
        node("Mul", ["counts", "ones"], "numbers"),
        node("Gather", ["places", "numbers"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.FLOAT, ["n", LENGTH])}
    constants = {"axis": np.array(1), "zero": np.array(0, np.float32), "places": drawn(LENGTH + 1, WIDTH)}
    proto = model_of(nodes, inputs, {"y": ["n", LENGTH, WIDTH]}, **constants)
    x = np.random.default_rng(7).uniform(-1, 1, (40, LENGTH)).astype(np.float32) - np.float32(above)
    for mode in ("cheetah", "gazelle"):
        model = lanner.compile(proto, x, mode=mode, output="value")
        for given in (x, np.minimum(-x, np.float32(0.15)), np.full((1, LENGTH), 0.15, np.float32)):
            assert off_by(model.predict_fixed(given), expected(proto, {"x": given}, "y")) < 0.02


def test_numbers_keep_their_meaning_in_another_shape() -> None:
    numbered = [*_NUMBERED[:-1], node("Add", ["wide", "pad"], "flat")]
    moved = [*numbered, node("Unsqueeze", ["flat", "axes"], "one"), node("Squeeze", ["one", "axes"], "positions")]
    check(of_ids(moved, axes=np.array([1])), {"ids": _IDS})
    nodes = [
        *_NUMBERED[:4],
        node("Unsqueeze", ["counts", "axes"], "lines"),
        node("Cast", ["lines"], "floats", to=TensorProto.FLOAT),
        node("MatMul", ["floats", "weights"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", LENGTH])}
    constants = {"axis": np.array(1), "axes": np.array([1]), "pad": np.array(PAD), "weights": drawn(LENGTH, WIDTH)}
    check(model_of(nodes, inputs, {"y": ["n", 1, WIDTH]}, **constants), {"ids": _IDS})


def test_integers_that_are_chosen_are_integers() -> None:
    nodes = [
        node("Cast", ["mask"], "truth", to=TensorProto.BOOL),
        node("Where", ["truth", "ids", "one"], "chosen"),
        node("Div", ["chosen", "two"], "halves"),
        node("Cast", ["halves"], "floats", to=TensorProto.FLOAT),
        node("MatMul", ["floats", "weights"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {
        "ids": (TensorProto.INT64, ["n", LENGTH]),
        "mask": (TensorProto.INT64, ["n", LENGTH]),
    }
    constants = {"one": np.array(1), "two": np.array(2), "weights": drawn(LENGTH, WIDTH)}
    proto = model_of(nodes, inputs, {"y": ["n", WIDTH]}, **constants)
    with pytest.raises(lanner.UnsupportedOpError, match="integers"):
        lanner.compile(proto, {"ids": _IDS, "mask": (_IDS > 3).astype(np.int64)}, mode="cheetah", output="value")


@pytest.mark.parametrize("mode", ["cheetah", "gazelle", "tabula"])
def test_what_no_calibration_sample_looks_up_is_right(mode: str) -> None:
    table = np.arange(40, dtype=np.float32).reshape(40, 1) * drawn(1, WIDTH)
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", LENGTH])}
    proto = model_of([node("Gather", ["table", "ids"], "y")], inputs, {"y": ["n", LENGTH, WIDTH]}, table=table)
    model = lanner.compile(proto, {"ids": _IDS % 3}, mode=mode, output="value")
    arrays: Arrays = {"ids": np.arange(280).reshape(40, LENGTH) % 40}
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < 0.01
