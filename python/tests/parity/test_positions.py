"""Which element is the largest, the first few of them, elements that are written to, and quantised recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from lanner.errors import LannerError, UnsupportedOpError

Rows = NDArray[np.float32]

FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64

node = helper.make_node


def model_of(
    *nodes: onnx.NodeProto,
    shape: tuple[int, ...],
    outputs: dict[str, int] | None = None,
    batch: str | int = "n",
    **constants: object,
) -> onnx.ModelProto:
    """A model of samples `x`; its one output is `y` of floats where nothing else is said."""
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info("x", FLOAT, [batch, *shape])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (outputs or {"y": FLOAT}).items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", 17), ("ai.onnx.ml", 3))]
    return helper.make_model(graph, opset_imports=[*opsets, helper.make_opsetid("com.microsoft", 1)], ir_version=8)


def drawn(*shape: int, seed: int = 0) -> Rows:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tied(*shape: int) -> Rows:
    """Whole numbers, most of which stand several times in a row."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(np.float32)


def expected(model: onnx.ModelProto, x: Rows) -> Rows:
    """All outputs of onnxruntime one after another, sample by sample."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    single = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
    runs = [session.run(None, {"x": row}) for row in (np.split(x, len(x)) if single else [x])]
    rows = [np.concatenate([np.asarray(each).reshape(len(x) // len(runs), -1) for each in run], 1) for run in runs]
    return np.concatenate(rows).astype(np.float32)


def check(model: onnx.ModelProto, x: Rows, *, most: float = 0.0, secure: int = 1) -> None:
    """The integers give what onnxruntime gives, but for a share of its range, and a secure run what the integers do."""
    names = [entry.name for entry in model.graph.output]
    named: dict[str, Any] = {"output_name": ",".join(names)} if len(names) > 1 else {}
    compiled = lanner.compile(model, x[:64], output="value", mode="cheetah", **named)
    found, wanted = compiled.predict_fixed(x).reshape(len(x), -1), expected(model, x)
    assert np.abs(found - wanted).max() <= most * np.ptp(wanted) + 1e-6
    for row, integers in zip(x[:secure], found, strict=False):
        values = lanner.run(compiled, row).values
        told = np.concatenate([np.ravel(each) for each in values.values()]) if isinstance(values, dict) else values
        assert np.allclose(np.ravel(np.asarray(told)), integers)


@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_first_few_and_their_places_are_onnxruntimes_ties_too(count: int, largest: int) -> None:
    top = node("TopK", ["x", "k"], ["v", "i"], axis=1, largest=largest)
    model = model_of(top, shape=(7,), outputs={"v": FLOAT, "i": WHOLE}, k=np.array([count]))
    check(model, tied(500, 7))


def test_the_first_few_of_an_inner_axis() -> None:
    top = node("TopK", ["x", "k"], ["v", "i"], axis=2)
    check(model_of(top, shape=(3, 4, 2), outputs={"v": FLOAT, "i": WHOLE}, k=np.array([2])), tied(200, 3, 4, 2))


def test_the_first_few_of_long_rows_are_sorted() -> None:
    nodes = [node("TopK", ["x", "k"], ["v", "i"], axis=1), node("MatMul", ["v", "w"], ["y"])]
    check(model_of(*nodes, shape=(24,), k=np.array([3]), w=drawn(3, 2)), drawn(200, 24), most=0.01)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1], ids=["first wins", "last wins"])
@pytest.mark.parametrize("axis", [1, -1])
def test_places_of_the_largest_are_onnxruntimes_ties_too(operator: str, axis: int, last: int) -> None:
    place = node(operator, ["x"], ["y"], axis=axis, keepdims=last, select_last_index=last)
    check(model_of(place, shape=(3, 5), outputs={"y": WHOLE}), tied(300, 3, 5))


@pytest.mark.parametrize("length", [1, 2, 40])
def test_places_in_lines_of_any_length(length: int) -> None:
    nodes = [node("ArgMax", ["x"], ["i"], axis=2, keepdims=0), node("Cast", ["i"], ["f"], to=FLOAT)]
    nodes.append(node("MatMul", ["f", "w"], ["y"]))
    if length == 1:
        nodes.append(node("ReduceSum", ["x", "axes"], ["s"], keepdims=1))
        nodes += [node("Flatten", ["s"], ["t"]), node("Add", ["y", "t"], ["z"])]
        model = model_of(*nodes, shape=(3, 1), outputs={"z": FLOAT}, w=drawn(3, 2), axes=np.array([1]))
    else:
        model = model_of(*nodes, shape=(3, length), w=drawn(3, 2))
    check(model, tied(200, 3, length), most=0.01)


def test_a_label_for_each_place_is_told_by_default() -> None:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["s"], axis=-1)]
    nodes.append(node("ArgMax", ["s"], ["y"], axis=-1, keepdims=0))
    model = model_of(*nodes, shape=(4, 5), outputs={"y": WHOLE}, w=drawn(5, 3))
    x = drawn(300, 4, 5, seed=1)
    compiled = lanner.compile(model, x[:64], mode="cheetah")
    assert compiled.manifest.output == "label-map"
    wrong = compiled.predict_fixed(x).reshape(300, 4, 3).argmax(2) != expected(model, x)
    assert wrong.sum() <= 2


@pytest.mark.parametrize("secret", ["data", "updates", "both"])
def test_what_is_written_to_constant_places(secret: str) -> None:
    places = np.array([[[0, 1], [0, 3], [0, -4]]])
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Slice", ["h", "start", "end", "axis"], ["u"])]
    inputs = {"data": ["h", "i", "c"], "updates": ["d", "i", "u"], "both": ["h", "i", "u"]}[secret]
    nodes.append(node("ScatterND", inputs, ["y"]))
    held: dict[str, Any] = {
        "w": drawn(5, 5),
        "start": np.array([2]),
        "end": np.array([5]),
        "axis": np.array([1]),
        "i": places,
    }
    model = model_of(*nodes, shape=(5,), batch=1, c=drawn(1, 3), d=drawn(1, 5), **held)
    check(model, drawn(60, 5), most=0.01)


def test_a_quantised_recurrent_layer_is_the_layer_that_it_stands_for() -> None:
    rng = np.random.default_rng(4)
    whole = {name: rng.integers(-100, 100, (1, size, 24)).astype(np.int8) for name, size in (("w", 4), ("r", 6))}
    held: dict[str, Any] = {
        **whole,
        "b": drawn(1, 48) * np.float32(0.1),
        "ws": np.full((1,), 0.004, np.float32),
        "rs": rng.uniform(0.002, 0.004, (1, 24)).astype(np.float32),
        "wz": np.full((1,), 3, np.int8),
        "rz": np.zeros((1, 24), np.int8),
    }
    ends = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Squeeze", ["l", "axes"], ["y"])]
    inputs = ["t", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    layer = node("DynamicQuantizeLSTM", inputs, ["s", "l"], domain="com.microsoft", hidden_size=6)
    model = model_of(ends[0], layer, ends[1], shape=(5, 4), axes=np.array([0]), **held)
    floats: dict[str, Any] = {
        "w": ((whole["w"].astype(np.float32) - 3) * np.float32(0.004)).transpose(0, 2, 1),
        "r": (whole["r"].astype(np.float32) * held["rs"][:, np.newaxis]).transpose(0, 2, 1),
    }
    plain = node("LSTM", ["t", "w", "r", "b"], ["s", "l"], hidden_size=6)
    x = drawn(80, 5, 4)
    wanted = expected(model_of(ends[0], plain, ends[1], shape=(5, 4), axes=np.array([0]), b=held["b"], **floats), x)
    found = lanner.compile(model, x, output="value", mode="cheetah").predict_fixed(x).reshape(80, -1)
    assert np.abs(found - wanted).max() <= 0.01 * np.ptp(wanted)
    # onnxruntime rounds what the layer reads, by a range that follows the whole batch.
    assert np.abs(found - expected(model, x)).mean() <= 0.01 * np.ptp(wanted)


REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "places among many": (
        model_of(node("TopK", ["x", "k"], ["v", "y"], axis=1), shape=(65,), outputs={"y": WHOLE}, k=np.array([2])),
        "compared in pairs at most",
    ),
    "no order": (
        model_of(node("TopK", ["x", "k"], ["y", "i"], axis=1, sorted=0), shape=(5,), k=np.array([2])),
        "leaves the order to each runtime",
    ),
    "more than there are": (
        model_of(node("TopK", ["x", "k"], ["y", "i"], axis=1), shape=(5,), k=np.array([6])),
        "is 6, of 5 elements",
    ),
    "samples": (
        model_of(node("ArgMax", ["x"], ["i"], axis=0), node("Cast", ["i"], ["y"], to=FLOAT), shape=(5,)),
        "axis of ArgMax is 0",
    ),
    "words": (
        model_of(node("OneHotEncoder", ["x"], ["y"], cats_strings=["a"], domain="ai.onnx.ml"), shape=(5,)),
        "holds words",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_computed_is_refused(name: str) -> None:
    model, sentence = REFUSED[name]
    with pytest.raises((UnsupportedOpError, LannerError), match=sentence):
        lanner.compile(
            model, drawn(8, *[side.dim_value for side in model.graph.input[0].type.tensor_type.shape.dim][1:])
        )


def test_rows_of_zeros_beside_others_are_imprecise_and_no_contradiction() -> None:
    # The inverse deviation is a million there, and hardly changes over all that the other rows reach.
    nodes = [node("Pad", ["x", "p"], ["z"]), node("LayerNormalization", ["z", "g"], ["l"], epsilon=1e-12)]
    nodes.append(node("MatMul", ["l", "w"], ["y"]))
    model = model_of(*nodes, shape=(3, 8), p=np.array([0, 1, 0, 0, 0, 0]), g=np.ones(8, np.float32), w=drawn(8, 4))
    with pytest.warns(lanner.PrecisionWarning):
        lanner.compile(model, drawn(16, 3, 8), mode="cheetah", output="value", allow_imprecise=True)
