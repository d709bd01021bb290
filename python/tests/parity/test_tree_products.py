"""Trees that are written as products of matrices, as Hummingbird's strategy GEMM writes them, are trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import lanner
from lanner.errors import ModelError
from lanner.reference import open_exactly

COLUMNS = 3

#: A node's column, threshold, and children where the answer is yes and no; or what a leaf says.
Grown = Any

Rows = NDArray[np.float32]


def _grow(rng: np.random.Generator, rows: Rows, depth: int, scores: int) -> Grown:
    """A tree of uneven depth; its thresholds are numbers of the samples."""
    if depth == 0:
        return rng.normal(size=scores).astype(np.float32)
    column = int(rng.integers(COLUMNS))
    deeper = _grow(rng, rows, depth - 1, scores)
    return (column, float(rng.choice(rows[:, column])), deeper, _grow(rng, rows, int(rng.integers(depth)), scores))


@dataclass
class _Matrices:
    """A tree's matrices, before trees are padded to one size."""

    columns: list[int]
    thresholds: list[float]
    ways: list[dict[int, int]]
    says: list[NDArray[np.float32]]


def _collect(tree: Grown) -> _Matrices:
    found = _Matrices([], [], [], [])

    def visit(part: Grown, way: dict[int, int]) -> None:
        if not isinstance(part, tuple):
            found.ways.append(way)
            found.says.append(part)
            return
        node = len(found.columns)
        found.columns.append(part[0])
        found.thresholds.append(part[1])
        visit(part[2], {**way, node: 1})
        visit(part[3], {**way, node: -1})

    visit(tree, {})
    return found


def _model(
    trees: list[Grown], *, operator: str = "LessOrEqual", gemm: bool = True, flip: bool = False
) -> onnx.ModelProto:
    every = [_collect(tree) for tree in trees]
    count, scores = len(every), len(every[0].says[0])
    nodes, leaves = max(len(tree.columns) for tree in every) + 1, max(len(tree.ways) for tree in every)
    a, b = np.zeros((count, nodes, COLUMNS), np.float32), np.zeros((count, nodes, 1), np.float32)
    c, d = np.zeros((count, leaves, nodes), np.float32), np.zeros((count, leaves, 1), np.float32)
    e = np.zeros((count, scores, leaves), np.float32)
    for number, tree in enumerate(every):
        for node, (column, threshold) in enumerate(zip(tree.columns, tree.thresholds, strict=True)):
            a[number, node, column], b[number, node] = 1, threshold
        for leaf, way in enumerate(tree.ways):
            for node, turn in way.items():
                c[number, leaf, node] = -turn if flip and leaf == 0 else turn
            d[number, leaf] = sum(turn == 1 for turn in way.values())
            e[number, :, leaf] = tree.says[leaf]
    held = {
        "a": a.reshape(-1, COLUMNS),
        "b": b.reshape(-1, 1),
        "c": c,
        "d": d.reshape(-1, 1),
        "e": e,
        "base": np.full((1, scores), 0.5, np.float32),
        "by_node": np.array([count, nodes, -1]),
        "by_leaf": np.array([count, leaves, -1]),
        "flat": np.array([count * leaves, -1]),
        "first": np.array([0]),
    }
    made = helper.make_node
    picked = (
        [made("Gemm", ["a", "x"], ["picked"], transB=1, beta=0.0)]
        if gemm
        else [made("Transpose", ["x"], ["turned"], perm=[1, 0]), made("MatMul", ["a", "turned"], ["picked"])]
    )
    graph = helper.make_graph(
        [
            *picked,
            made(operator, ["picked", "b"], ["answers"]),
            made("Reshape", ["answers", "by_node"], ["answers3"]),
            made("Cast", ["answers3"], ["answered"], to=TensorProto.FLOAT),
            made("MatMul", ["c", "answered"], ["sums3"]),
            made("Reshape", ["sums3", "flat"], ["sums"]),
            made("Equal", ["d", "sums"], ["reached2"]),
            made("Reshape", ["reached2", "by_leaf"], ["reached3"]),
            made("Cast", ["reached3"], ["reached"], to=TensorProto.FLOAT),
            made("MatMul", ["e", "reached"], ["said"]),
            made("ReduceSum", ["said", "first"], ["summed"], keepdims=0),
            made("Transpose", ["summed"], ["turned_back"], perm=[1, 0]),
            made("Add", ["turned_back", "base"], ["y"]),
        ],
        "products",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, scores])],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _drawn(seed: int, scores: int = 2, *, large: bool = False) -> tuple[Rows, list[Grown]]:
    rng = np.random.default_rng(seed)
    low, high = (2**24, 2**28) if large else (-20, 90)
    rows = rng.integers(low, high, (64, COLUMNS)).astype(np.float32)
    return rows, [_grow(rng, rows, depth, scores) for depth in (3, 2, 4)]


def _check(model: onnx.ModelProto, rows: Rows) -> None:
    asked = np.concatenate([rows, rows[::-1, [0]].repeat(COLUMNS, 1)]) if rows.max() < 2**24 else rows
    expected = np.asarray(open_exactly(model).run(["y"], {"x": asked})[0], np.float64)
    compiled = lanner.compile(model, rows, output="value")
    assert np.abs(compiled.predict_fixed(asked) - expected).max() < 1e-5 * np.ptp(expected)


@pytest.mark.parametrize("operator", ["LessOrEqual", "Less", "Greater", "GreaterOrEqual"])
def test_products_of_every_comparison_are_trees(operator: str) -> None:
    rows, trees = _drawn(0)
    _check(_model(trees, operator=operator), rows)


@pytest.mark.parametrize("large", [False, True], ids=["small", "beyond 2^24"])
def test_products_of_a_transpose_are_trees(large: bool) -> None:
    rows, trees = _drawn(1, 1, large=large)
    _check(_model(trees, gemm=False), rows)


def test_a_tree_of_one_leaf_is_a_constant() -> None:
    rows, trees = _drawn(2)
    _check(_model([*trees, np.array([2.0, -1.0], np.float32)]), rows)


def test_products_that_are_no_trees_are_refused() -> None:
    rows, trees = _drawn(3)
    with pytest.raises(ModelError):
        lanner.compile(_model(trees, flip=True), rows, output="value")


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(4, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
        RandomForestRegressor(3, max_depth=3, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_hummingbirds_own_files_are_trees(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    hummingbird = pytest.importorskip("hummingbird.ml", reason="hummingbird-ml is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    # It calls torch's exporter as it was before torch had another one by default.
    monkeypatch.setattr(torch.onnx, "export", partial(torch.onnx.export, dynamo=False))
    x, truth = load_iris(return_X_y=True)
    rows = x.astype(np.float32)
    estimator.fit(rows, truth)
    options = {"tree_implementation": "gemm", "onnx_target_opset": 13}
    model = hummingbird.convert(estimator, "onnx", rows[:2], extra_config=options).model
    compiled = lanner.compile(model, rows)
    found = compiled.predict_fixed(rows)
    if compiled.manifest.output == "value":
        assert np.abs(found.ravel() - estimator.predict(rows)).max() < 1e-5
    else:
        assert found.argmax(1).tolist() == estimator.predict(rows).tolist()
