"""Comparisons of private values, and choices by them: equal, just above and just below a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from lanner.cli import main
from lanner.errors import LannerError, UnsupportedOpError

Floats = NDArray[np.float32]

COLUMNS = 4

ORDERS = ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]

#: The largest number of the samples, and thresholds on whole numbers and between them.
SIZES = {"small": (10, [3.0, 3.5, 0.1, 9.9]), "beyond 15 bits": (40_000, [32_768.0, 32_768.5, 12_345.25, 1.0])}
SIZES["beyond 20 bits"] = (3_000_000, [1_000_000.0, 999_999.5, 7.0, 2_999_999.0])

FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64


def node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs.split(), [output], name=output, **attributes)


def to_floats(name: str) -> onnx.NodeProto:
    return node("Cast", name, "y", to=FLOAT)


def model_of(
    *nodes: onnx.NodeProto, kind: int = FLOAT, output: int = FLOAT, width: int = COLUMNS, **constants: object
) -> onnx.ModelProto:
    """A model of rows `x` whose output is `y`; Python's floats are constants of float32."""
    held = {
        name: np.asarray(value, np.float32) if isinstance(value, float) else np.asarray(value)
        for name, value in constants.items()
    }
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", COLUMNS])],
        [helper.make_tensor_value_info("y", output, ["n", width])],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def floats(*values: float) -> Floats:
    return np.array(values, np.float32)


def expected(model: onnx.ModelProto, x: NDArray[Any]) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def normal(count: int = 48, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, COLUMNS)).astype(np.float32)


def whole(count: int, largest: int) -> Floats:
    drawn = np.random.default_rng(largest).integers(0, largest + 1, (count, COLUMNS)).astype(np.float32)
    drawn[0] = largest
    return drawn


def beside(thresholds: list[float], largest: float) -> Floats:
    """Rows of whole numbers from two below thresholds to two above."""
    near = np.round(np.array(thresholds)) + np.arange(-2, 3)[:, np.newaxis]
    return np.clip(near, 0, largest).astype(np.float32)


def compiled(model: onnx.ModelProto, x: NDArray[Any], **options: Any) -> lanner.Model:  # noqa: ANN401
    return lanner.compile(model, x, output=options.pop("output", "value"), **options)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operator", ORDERS)
def test_whole_numbers_stay_on_their_side_of_a_threshold(operator: str, size: str, *, first: bool) -> None:
    largest, thresholds = SIZES[size]
    model = model_of(node(operator, "x c" if first else "c x", "b"), to_floats("b"), c=floats(*thresholds))
    x, edges = whole(48, largest), beside(thresholds, largest)
    for options in ({}, {"input_range": (0, largest)}):
        fixed = compiled(model, x, **options).predict_fixed(edges)
        assert np.array_equal(fixed, expected(model, edges))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operator", ORDERS[:4])
def test_integers_stay_on_their_side_of_a_threshold(operator: str, size: str) -> None:
    largest, thresholds = SIZES[size]
    model = model_of(
        node(operator, "x c", "b"), to_floats("b"), kind=WHOLE, c=np.array([int(each) for each in thresholds])
    )
    edges = beside(thresholds, largest).astype(np.int64)
    fixed = compiled(model, whole(48, largest).astype(np.int64)).predict_fixed(edges)
    assert np.array_equal(fixed, expected(model, edges))


@pytest.mark.parametrize("operator", ORDERS)
def test_one_threshold_for_integers_needs_no_row_for_each_choice(operator: str) -> None:
    model = model_of(node(operator, "x c", "b"), to_floats("b"), kind=WHOLE, c=np.array(18))
    edges = np.array([[17, 18, 19, 0], [16, 20, 89, 18]])
    found = compiled(model, whole(48, 90).astype(np.int64))
    assert np.abs(found.predict_fixed(edges) - expected(model, edges)).max() < 0.005
    choices = [entry.choices for entry in found.manifest.input.named]
    assert choices == ([91] if operator == "Equal" else [None])


@pytest.mark.parametrize("operator", ORDERS)
def test_fractions_and_negative_numbers_are_compared_where_they_are_equal(operator: str) -> None:
    thresholds = floats(0.3, -0.7, 0.0, 1.1)
    model = model_of(node(operator, "x c", "b"), to_floats("b"), c=thresholds)
    edges = np.stack([thresholds + np.float32(apart) for apart in (-1e-5, 0.0, 1e-5)])
    assert np.array_equal(compiled(model, normal()).predict_fixed(edges), expected(model, edges))


@pytest.mark.parametrize("operator", ORDERS)
def test_two_private_values_are_compared(operator: str) -> None:
    split = helper.make_node("Split", ["x"], ["a", "b"], axis=1)
    model = model_of(split, node(operator, "a b", "holds"), node("Where", "holds a seven", "y"), width=2, seven=7.0)
    x = whole(48, 4)
    found = compiled(model, x)
    assert np.abs(found.predict_fixed(x) - expected(model, x)).max() < 1e-3


def test_a_threshold_between_two_steps_is_none_from_either_side() -> None:
    model = model_of(node("Sub", "x c", "apart"), node("Sign", "apart", "y"), c=floats(3.0, 3.5, 4.25, 4.9))
    edges = np.tile(np.arange(8, dtype=np.float32)[:, np.newaxis], (1, COLUMNS))
    for largest in (10, 60_000):
        fixed = compiled(model, whole(48, largest)).predict_fixed(edges)
        assert np.array_equal(fixed, expected(model, edges))


def test_infinite_thresholds_decide_by_themselves() -> None:
    model = model_of(node("Greater", "x c", "b"), to_floats("b"), c=floats(-np.inf, np.inf, 0.0, 3.4e38))
    x = normal()
    assert np.abs(compiled(model, x).predict_fixed(x) - expected(model, x)).max() < 0.005


@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh"])
def test_a_function_that_grows_is_compared_where_it_comes_from(operator: str) -> None:
    model = model_of(
        node(operator, "x", "s"), node("Greater", "s c", "b"), to_floats("b"), c=floats(0.5, 0.3, 0.9, 0.1)
    )
    x = normal()
    edges = np.concatenate([x, np.array([[0.0, 0.002, -0.002, 1e-4]], np.float32)])
    assert np.array_equal(compiled(model, x).predict_fixed(edges), expected(model, edges))


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_truth_values_are_combined(operator: str) -> None:
    nodes = [
        *(node("Greater", "x low", "a"), node("Less", "x high", "b"), node(operator, "a b", "both")),
        *(node(operator, "both known", "c"), node("Not", "c", "d"), to_floats("d")),
    ]
    model = model_of(*nodes, low=floats(-0.5), high=floats(0.5), known=np.array([True, False, False, True]))
    x = normal()
    assert np.abs(compiled(model, x).predict_fixed(x) - expected(model, x)).max() < 0.005


#: Choices, and how far of the range of the results they may be off.
CHOICES: dict[str, tuple[onnx.ModelProto, float]] = {
    "of values of very different ranges": (
        model_of(node("Greater", "x c", "b"), node("Mul", "x k", "big"), node("Where", "b x big", "y"), c=0.25, k=1e4),
        1e-4,
    ),
    "of two constants": (
        model_of(node("Less", "x c", "b"), node("Where", "b p q", "y"), c=0.25, p=0.37, q=-17.1),
        1e-3,
    ),
    "of constants of each column": (
        model_of(node("Less", "x c", "b"), node("Where", "b p q", "y"), c=0.25, p=3.0, q=floats(1, -2, 3, 1000)),
        1e-4,
    ),
    "inside a choice": (
        model_of(
            *(node("Greater", "x c", "a"), node("Mul", "x x", "q"), node("Where", "a q x", "w")),
            *(node("Less", "w d", "b"), node("Where", "b w d", "y")),
            c=0.3,
            d=1.2,
        ),
        0.005,
    ),
    "in front of a quotient": (
        model_of(
            node("Greater", "x c", "a"), node("Where", "a x one", "q"), node("Reciprocal", "q", "y"), c=0.3, one=1.0
        ),
        0.005,
    ),
    "by the largest": (
        model_of(
            node("ReduceMax", "x", "m", axes=[1], keepdims=1),
            node("Equal", "x m", "b"),
            node("Where", "b x c", "y"),
            c=-9.0,
        ),
        0.005,
    ),
    "that bends": (
        model_of(node("Greater", "x c", "b"), node("Where", "b x c", "y"), c=floats(0.1, -0.2, 0.3, 1)),
        0.005,
    ),
    "of what a layer makes": (
        model_of(
            *(node("MatMul", "x w", "h"), node("Greater", "h c", "b"), node("Where", "b h p", "r")),
            node("MatMul", "r v", "y"),
            w=normal(COLUMNS, 1),
            v=normal(COLUMNS, 2),
            c=0.1,
            p=-0.5,
        ),
        0.005,
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_of_onnxruntime(name: str) -> None:
    model, most = CHOICES[name]
    x = normal()
    exact = expected(model, x)
    found = compiled(model, x)
    assert np.abs(found.native.float(x) - exact).max() < 1e-5 * np.ptp(exact)
    assert np.abs(found.predict_fixed(x) - exact).max() < most * np.ptp(exact)


@pytest.mark.parametrize("mode", ["cheetah", "gazelle", "tabula", "auto"])
def test_a_comparison_and_a_choice_run_in_private(mode: str) -> None:
    model, _ = CHOICES["of what a layer makes"]
    x = normal()
    found = compiled(model, x, mode=mode, allow_imprecise=True)
    (integers,), overflows = found.predict_integers(x[:1])
    assert overflows == 0
    assert lanner.run(found, x[0]).integers == integers.tolist()


@pytest.mark.parametrize("name", ["of two constants", "of values of very different ranges"])
def test_choices_of_inputs_run_in_private(name: str) -> None:
    model, _ = CHOICES[name]
    x = normal()
    found = compiled(model, x)
    (integers,), _ = found.predict_integers(x[:1])
    assert lanner.run(found, x[0]).integers == integers.tolist()


def test_truth_values_and_counts_of_them_are_outputs() -> None:
    x = normal()
    of_truth = model_of(node("Greater", "x c", "y"), output=TensorProto.BOOL, c=0.3)
    assert np.array_equal(compiled(of_truth, x).predict_fixed(x), expected(of_truth, x))
    of_integers = model_of(node("Greater", "x c", "b"), node("Cast", "b", "y", to=WHOLE), output=WHOLE, c=0.3)
    assert np.array_equal(compiled(of_integers, x).predict_fixed(x), expected(of_integers, x))
    count = model_of(
        *(node("Greater", "x c", "b"), node("Cast", "b", "i", to=WHOLE), node("ReduceSum", "i axes", "y", keepdims=1)),
        output=WHOLE,
        width=1,
        c=0.3,
        axes=[1],
    )
    assert np.abs(np.ravel(compiled(count, x).predict_fixed(x)) - np.ravel(expected(count, x))).max() < 0.01


def masked(least: float, *ending: onnx.NodeProto) -> onnx.ModelProto:
    return model_of(
        node("Less", "x c", "b"), node("Where", "b least x", "m"), *ending, c=-0.25, least=least, w=normal(COLUMNS, 3)
    )


def test_a_comparison_hides_scores_and_where_all_are_hidden_they_are_alike() -> None:
    model = masked(-1e9, node("Softmax", "m", "s", axis=1), node("MatMul", "s w", "y"))
    x = normal()
    edges = np.concatenate([x[:8], -1 - np.abs(x[:2])])
    exact = expected(model, edges)
    assert np.abs(compiled(model, x).predict_fixed(edges) - exact).max() < 0.01 * np.ptp(exact)


REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "NaN": (model_of(node("Greater", "x c", "b"), to_floats("b"), c=np.nan), "input 1 of Greater holds NaN"),
    "no number that is reached": (
        model_of(node("Greater", "x c", "b"), to_floats("b"), c=np.inf),
        "input 1 of Greater holds no number that a private value may reach",
    ),
    "an infinite result": (
        masked(-np.inf, node("Identity", "m", "y")),
        "input 1 of Where holds a number that hides what it replaces",
    ),
    "the least float as a result": (
        masked(-3.4e38, node("Mul", "m m", "y")),
        "input 1 of Where holds a number that hides",
    ),
    "a quotient of counts": (
        model_of(
            *(node("Greater", "x c", "b"), node("Cast", "b", "i", to=WHOLE), node("ReduceSum", "i axes", "s")),
            *(node("Div", "s two", "d"), to_floats("d")),
            width=1,
            c=0.3,
            axes=[1],
            two=np.array(2),
        ),
        "an input of Div is of integers that depend on the input, which it may round",
    ),
    "sums that wrap": (
        model_of(
            *(node("Greater", "x c", "a"), node("Less", "x d", "b")),
            *(node("Cast", "a", "i", to=TensorProto.UINT8), node("Cast", "b", "j", to=TensorProto.UINT8)),
            *(node("Mul", "i k", "ik"), node("Mul", "j k", "jk"), node("Add", "ik jk", "s"), to_floats("s")),
            c=-0.5,
            d=0.5,
            k=np.array(200, np.uint8),
        ),
        "an input of Add is of integers .* or wrap",
    ),
    "scores made whole": (
        model_of(node("MatMul", "x w", "h"), node("Cast", "h", "i", to=WHOLE), to_floats("i"), w=normal(COLUMNS)),
        "to of Cast",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_wrong_is_refused(name: str) -> None:
    model, sentence = REFUSED[name]
    with pytest.raises(LannerError, match=sentence):
        compiled(model, normal())


def test_whole_numbers_that_floats_do_not_count_are_refused() -> None:
    model = model_of(node("Greater", "x c", "b"), to_floats("b"), kind=WHOLE, c=np.array([1_600_000_000, 1, 5, 7]))
    x = np.random.default_rng(0).integers(0, 1_700_000_000, (48, COLUMNS))
    with pytest.raises(LannerError, match=r"whole numbers above 2\^24"):
        compiled(model, x)


def test_integers_that_a_branch_divides_are_refused() -> None:
    """Their quotient is whole in the file, and would not be here."""
    bodies = {
        f"{name}_branch": helper.make_graph(
            [node(*made)], name, [], [helper.make_tensor_value_info(made[-1], WHOLE, None)]
        )
        for name, made in {"then": ("Div", "x two", "d"), "else": ("Identity", "x", "e")}.items()
    }
    branch = helper.make_node("If", ["chosen"], ["r"], name="r", **bodies)
    nodes = [branch, node("Cast", "r", "f", to=FLOAT), node("MatMul", "f w", "y")]
    model = model_of(*nodes, kind=WHOLE, chosen=np.array(True), two=np.array(2), w=normal(COLUMNS))
    with pytest.raises(UnsupportedOpError, match="input x of Div is of type INT64"):
        compiled(model, whole(48, 10).astype(np.int64))


def test_inspect_accepts_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(CHOICES["inside a choice"][0], path)
    assert main(["inspect", str(path)]) == 0
    assert "Where" in capsys.readouterr().out
