"""Several ensembles with arithmetic between them are one ensemble, which decides as onnxruntime does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from helpers.tree_models import ML, MODES, Drawn
from lanner.errors import ModelError, UnsupportedOpError
from lanner.reference import open_exactly

COLUMNS = 4

#: Numbers beyond the ends are asked on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::lanner.TableWarning")

Rows = NDArray[np.float32]


class _File:
    """A file of several ensembles over the same columns.

    Args:
        seed: What trees are drawn from.
        rows: The owner's samples.
        missing: Whether missing numbers count as yes at some nodes.
    """

    def __init__(self, seed: int, rows: Rows, *, missing: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.rows = rows
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []
        self._missing = missing

    def trees(self, output: str, source: str = "x", *, read: Rows | None = None, **drawn: Any) -> str:  # noqa: ANN401
        """An ensemble, drawn at random, of one tree where nothing else is said; `read` is what its source holds."""
        columns = (self.rows if read is None else read).T
        width, numbers = len(columns), [np.unique(column[np.isfinite(column)]) for column in columns]
        modes = drawn.pop("modes", MODES)
        trees = Drawn(self.rng, numbers, modes=modes, missing=self._missing, **{"trees": 1, "depth": 3, **drawn})
        node = trees.regressor(width).graph.node[0]
        node.input[0], node.output[0], node.name = source, output, output
        self.nodes.append(node)
        return output

    def node(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """An operator behind the trees."""
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def constant(self, name: str, value: Any, kind: Any = np.float32) -> str:  # noqa: ANN401 - an array's
        """A constant."""
        self.held.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def label(self, scores: str, labels: Sequence[int]) -> str:
        """The label of the largest score."""
        self.constant("labels", labels, np.int64)
        self.node("ArgMax", [scores], "index", axis=1, keepdims=0)
        return self.node("ArrayFeatureExtractor", ["labels", "index"], "label", ML)

    def model(self, **outputs: tuple[int, Sequence[Any]]) -> onnx.ModelProto:
        """The file, with its outputs' types and shapes."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, COLUMNS])
        told = [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()]
        graph = helper.make_graph(self.nodes, "several", [x], told, self.held)
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid(ML, 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def values(self, count: int) -> onnx.ModelProto:
        """The file, whose output is so many values."""
        return self.model(y=(TensorProto.FLOAT, [None, count]))


def _whole(seed: int = 0) -> Rows:
    return np.random.default_rng(seed).integers(-20, 90, (64, COLUMNS)).astype(np.float32)


def _run(model: onnx.ModelProto, rows: Rows, output: str = "y") -> NDArray[Any]:
    return np.asarray(open_exactly(model).run([output], {"x": rows})[0])


def _check_values(model: onnx.ModelProto, rows: Rows, asked: Rows | None = None) -> lanner.Model:
    asked = rows if asked is None else asked
    expected = _run(model, asked).reshape(len(asked), -1).astype(np.float64)
    compiled = lanner.compile(model, rows, output="value")
    assert np.abs(compiled.predict_fixed(asked) - expected).max() < 1e-5 * max(1.0, np.ptp(expected))
    return compiled


def _check_labels(model: onnx.ModelProto, rows: Rows, asked: Rows | None = None) -> None:
    asked = rows if asked is None else asked
    compiled = lanner.compile(model, rows)
    assert compiled.manifest.output == "label"
    names = np.array([int(name) for name in compiled.manifest.classes or ()])
    found = names[compiled.predict_fixed(asked).argmax(1)]
    assert found.tolist() == _run(model, asked, "label").ravel().tolist()


def _edges(rows: Rows) -> Rows:
    """Rows of other rows' numbers, which thresholds are, and rows with infinities."""
    rng = np.random.default_rng(1)
    drawn = rows[rng.integers(len(rows), size=rows.shape), np.arange(COLUMNS)]
    far = np.where(rng.random(rows.shape) < 0.3, rng.choice([np.inf, -np.inf], rows.shape), drawn)
    return np.concatenate([rows, drawn, far]).astype(np.float32)


@pytest.mark.parametrize("targets", [1, 3])
def test_a_mean_of_ensembles_is_one_ensemble(targets: int) -> None:
    """As bagging is written: put on an axis of their own, and averaged over it."""
    rows = _whole()
    file = _File(2, rows)
    shape = file.constant("shape", [1, -1, targets], np.int64)
    parts = [
        file.node("Reshape", [file.trees(f"t{at}", targets=targets, trees=1 + at), shape], f"r{at}") for at in range(3)
    ]
    file.node("Concat", parts, "all", axis=0)
    file.node("ReduceMean", ["all"], "y", axes=[0], keepdims=0)
    _check_values(file.values(targets), rows, _edges(rows))


def test_sums_products_and_a_linear_end_keep_trees() -> None:
    """As votes and stacks are written."""
    rows = _whole(3)
    file = _File(3, rows)
    weighted = [
        file.node("Mul", [file.trees(f"t{at}", trees=2), file.constant(f"w{at}", [0.25 + at])], f"m{at}")
        for at in (0, 1)
    ]
    file.node("Flatten", [weighted[1]], "flat")
    file.node("Sum", [weighted[0], "flat"], "voted")
    file.node("Sub", [file.constant("one", 1.0), "voted"], "rest")
    file.node("Concat", ["rest", "voted", file.trees("t2", targets=2)], "joined", axis=1)
    file.node(
        "LinearRegressor", ["joined"], "linear", ML, coefficients=[0.5, -1.0, 2.0, 0.25], intercepts=[3.0], targets=1
    )
    scale = file.constant("scale", [[2.0, -0.5]])
    file.node("Gemm", ["linear", scale, file.constant("shift", [0.5, 1.5])], "y", alpha=0.5)
    _check_values(file.values(2), rows, _edges(rows))


def test_ensembles_that_read_other_columns_are_joined() -> None:
    rows = _whole(4)
    file = _File(4, rows)
    picks = ([2, 0], [3, -4, 1])
    for at, columns in enumerate(picks):
        source = file.node("Gather", ["x", file.constant(f"c{at}", columns, np.int64)], f"x{at}", axis=1)
        file.trees(f"t{at}", source, read=rows[:, columns], trees=2)
    offset, scale = np.array([1.0, 2.0, 3.0, 4.0], np.float32), np.array([0.5, 2.0, 1.0, 0.25], np.float32)
    file.node("Scaler", ["x"], "scaled", ML, offset=offset.tolist(), scale=scale.tolist())
    file.trees("t2", "scaled", read=(rows - offset) * scale)
    file.node("Sum", ["t0", "t1", "t2"], "y")
    _check_values(file.values(1), rows, _edges(rows))


def test_any_function_of_one_tree_is_a_tree() -> None:
    """As calibrated trees and boosted stumps are written."""
    rows = _whole(5)
    file = _File(5, rows)
    classes = file.constant("classes", [[0, 1, 2]], np.int64)
    one, half = file.constant("one", [1.0]), file.constant("half", [-0.5])
    for at in (0, 1):
        file.node("ArgMax", [file.trees(f"t{at}", targets=3)], f"i{at}", axis=1)
        file.node("Equal", [f"i{at}", classes], f"e{at}")
        file.node("Where", [f"e{at}", one, half], f"v{at}")
        file.node("Mul", [f"v{at}", file.constant(f"w{at}", 0.75 + at)], f"m{at}")
        file.node("Softmax", [f"t{at}"], f"s{at}", axis=1)
    file.node("Exp", [file.trees("t2", targets=3)], "power")
    file.node("Clip", ["power", file.constant("low", 0.5), file.constant("high", 2.0)], "clipped")
    file.node("Sum", ["m0", "m1", "s0", "s1", "clipped"], "y")
    _check_values(file.values(3), rows, _edges(rows))


def test_trees_that_ask_the_same_are_one_tree() -> None:
    """As isolation forests are written: a leaf's depth and its samples are two functions of one tree."""
    rows = _whole(6)
    file = _File(6, rows)
    file.trees("a")
    again = onnx.NodeProto()
    again.CopyFrom(file.nodes[-1])
    again.output[0] = again.name = "b"
    file.nodes.append(again)
    file.trees("c")
    file.node("Mul", ["a", "b"], "squared")
    file.node("Add", ["squared", "c"], "y")
    compiled = _check_values(file.values(1), rows)
    first = compiled.manifest.document["network"]["nodes"][0]
    assert first["shape"][0] <= 2 * 7


def test_missing_numbers_go_their_way_in_joined_trees() -> None:
    rows = _whole(7)
    holes = rows.copy()
    holes[np.random.default_rng(7).random(rows.shape) < 0.2] = np.nan
    file = _File(7, holes, missing=True)
    file.node("Sum", [file.trees(f"t{at}", trees=2) for at in range(3)], "y")
    _check_values(file.values(1), holes)


def test_numbers_that_floats_do_not_tell_apart_are_decided_as_floats() -> None:
    rows = np.random.default_rng(8).integers(2**24, 2**29, (64, COLUMNS)).astype(np.float32)
    file = _File(8, rows)
    file.node("Sum", [file.trees(f"t{at}") for at in range(3)], "y")
    _check_values(file.values(1), rows)


def test_labels_are_those_of_the_largest_sum() -> None:
    rows = _whole(9)
    file = _File(9, rows)
    file.node("Sum", [file.trees(f"t{at}", targets=3) for at in range(3)], "scores")
    file.label("scores", [4, 7, 9])
    # Probabilities beside the label say otherwise what it says.
    file.node("LpNormalization", ["scores"], "y", axis=1, p=1)
    model = file.model(label=(TensorProto.INT64, [None]), y=(TensorProto.FLOAT, [None, 3]))
    _check_labels(model, rows, _edges(rows))
    with pytest.raises(UnsupportedOpError, match="LpNormalization combines trees other than by sums"):
        lanner.compile(model, rows, output_name="y")


def test_exponentials_divided_by_their_sum_are_a_softmax() -> None:
    """As skl2onnx writes the probabilities of AdaBoost."""
    rows = _whole(10)
    file = _File(10, rows)
    file.node("Sum", [file.trees(f"t{at}", targets=3) for at in range(2)], "scores")
    file.node("Exp", ["scores"], "power")
    file.node("ReduceSum", ["power", file.constant("axis", [1], np.int64)], "summed")
    file.node("Reshape", ["summed", file.constant("shape", [-1, 1], np.int64)], "total")
    file.node("Cast", ["total"], "whole", to=TensorProto.INT32)
    file.node("Equal", ["whole", file.constant("zero", 0, np.int32)], "none")
    file.node("Cast", ["none"], "added", to=TensorProto.FLOAT)
    file.node("Add", ["total", "added"], "guarded")
    file.node("Div", ["power", "guarded"], "y")
    file.label("y", [0, 1, 2])
    model = file.model(label=(TensorProto.INT64, [None]), y=(TensorProto.FLOAT, [None, 3]))
    _check_labels(model, rows, _edges(rows))
    probable = lanner.compile(model, rows, output="probability")
    assert probable.manifest.output == "probability"


@pytest.mark.parametrize("classes", [2, 3])
def test_logistics_of_sums_have_the_label_of_their_sums(classes: int) -> None:
    """As skl2onnx writes a forest that is calibrated once."""
    rows = _whole(11)
    file = _File(11, rows)
    one = file.constant("one", 1.0)
    file.trees("sums", targets=classes, trees=3)
    parts = []
    for at in range(1 if classes == 2 else classes):
        file.node("ArrayFeatureExtractor", ["sums", file.constant(f"k{at}", at, np.int64)], f"f{at}", ML)
        file.node("Mul", [file.constant(f"a{at}", -1.5 - at), f"f{at}"], f"p{at}")
        file.node("Add", [f"p{at}", file.constant(f"b{at}", 0.25)], f"x{at}")
        file.node("Exp", [f"x{at}"], f"e{at}")
        file.node("Add", [one, f"e{at}"], f"d{at}")
        parts.append(file.node("Div", [one, f"d{at}"], f"s{at}"))
    if classes == 2:
        parts.insert(0, file.node("Sub", [one, parts[0]], "rest"))
    file.node("Concat", parts, "beside", axis=1)
    last = "beside"
    if classes == 3:
        file.node("ReduceSum", [last, file.constant("axis", [1], np.int64)], "total")
        file.node("Cast", ["total"], "truth", to=TensorProto.BOOL)
        file.node("Not", ["truth"], "none")
        file.node("Cast", ["none"], "mask", to=TensorProto.FLOAT)
        file.node("Add", [last, "mask"], "above")
        file.node("Mul", ["mask", file.constant("count", 3.0)], "masked")
        file.node("Add", ["total", "masked"], "below")
        last = file.node("Div", ["above", "below"], "divided")
    file.node("Div", [file.node("Sum", [last], "alone"), one], "y")
    file.label("y", list(range(classes)))
    model = file.model(label=(TensorProto.INT64, [None]), y=(TensorProto.FLOAT, [None, classes]))
    _check_labels(model, rows, _edges(rows))


def _isolation(file: _File, threshold: float) -> onnx.ModelProto:
    """The end of an isolation forest as skl2onnx writes it."""
    two, zero = file.constant("two", [2.0]), file.constant("zero", [0.0])
    file.node("Sum", [file.trees(f"t{at}", modes=MODES[:1]) for at in range(4)], "sum")
    file.node("Div", ["sum", file.constant("mean", [[4.0]])], "depth")
    file.node("Neg", ["depth"], "n")
    file.node("Pow", [two, "n"], "power")
    file.node("Neg", ["power"], "m")
    file.node("Add", ["m", file.constant("offset", [threshold])], "scores")
    file.node("Less", ["scores", zero], "outlier")
    file.node("Cast", ["outlier"], "number", to=TensorProto.INT64)
    file.node("Mul", ["number", file.constant("minus", [-2], np.int64)], "twice")
    file.node("Add", ["twice", file.constant("plus", [1], np.int64)], "label")
    return file.model(label=(TensorProto.INT64, [None, 1]), scores=(TensorProto.FLOAT, [None, 1]))


def test_an_isolation_forest_calls_a_row_an_inlier_from_its_threshold_on() -> None:
    rows = _whole(12)
    model = _isolation(_File(12, rows), 0.8)
    _check_labels(model, rows, _edges(rows))


def test_a_row_at_the_threshold_of_an_isolation_forest_is_an_inlier() -> None:
    """As a share of outliers makes it: the threshold is a training row's own score."""
    rows = _whole(13)
    open_ended = _isolation(_File(13, rows), 0.8)
    powers = np.unique(-(_run(open_ended, rows, "scores").ravel().astype(np.float64) - np.float32(0.8)))
    at = powers[len(powers) // 2]
    compiled = lanner.compile(_isolation(_File(13, rows), float(np.float32(at))), rows)
    names = [int(name) for name in compiled.manifest.classes or ()]
    scores = -(_run(open_ended, rows, "scores").ravel().astype(np.float64) - np.float32(0.8))
    expected = np.where(scores <= at + 1e-7, 1, -1)
    assert {1, -1} == set(expected.tolist())
    assert [names[at] for at in compiled.predict_fixed(rows).argmax(1)] == expected.tolist()


def _refused(file: _File, match: str, count: int = 1) -> None:
    with pytest.raises(ModelError, match=match):
        lanner.compile(file.values(count), file.rows, output="value")


def test_functions_of_sums_of_trees_are_refused() -> None:
    rows = _whole(14)
    file = _File(14, rows)
    file.node("Sigmoid", [file.trees("t0", trees=2)], "s0")
    file.node("Add", ["s0", file.trees("t1")], "y")
    _refused(file, "Sigmoid combines trees other than by sums")
    file = _File(14, rows)
    file.node("Mul", [file.trees("t0"), file.trees("t1")], "y")
    _refused(file, "Mul combines trees other than by sums")


def test_columns_beside_trees_are_refused() -> None:
    rows = _whole(15)
    file = _File(15, rows)
    file.node("Concat", [file.trees("t0"), file.trees("t1"), "x"], "all", axis=1)
    file.node("LinearRegressor", ["all"], "y", ML, coefficients=[0.5] * 6, intercepts=[0.0], targets=1)
    _refused(file, "Concat computes with what trees say and with the input's columns")


def test_trees_over_trees_are_refused() -> None:
    rows = _whole(16)
    file = _File(16, rows)
    file.trees("t0", targets=2)
    file.trees("y", "t0", read=rows[:, :2])
    _refused(file, "TreeEnsembleRegressor asks about what other trees say|must read the model's input columns directly")


def test_what_mixes_samples_is_refused() -> None:
    rows = _whole(17)
    file = _File(17, rows)
    file.node("Sum", [file.trees("t0"), file.trees("t1")], "both")
    file.node("ReduceSum", ["both", file.constant("axis", [0], np.int64)], "total", keepdims=1)
    file.node("Sub", ["both", "total"], "y")
    _refused(file, "mixes samples")
    file = _File(17, rows)
    file.node("Softmax", [file.trees("t0")], "over", axis=0)
    file.node("Sum", ["over", file.trees("t1")], "y")
    _refused(file, "other than by sums")
