"""Ensembles of trees with seeded random questions and leaves: what they cost depends on their sizes alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from lanner.benchmarks.graphs import SEED, Built
from lanner.model import compile as compile_model
from lanner.options import Protocols

#: How many rows a model is compiled on.
_ROWS = 64


def complete(trees: int, depth: int, columns: int, scores: int, protocols: Protocols, *, rows: int = 1) -> Built:
    """Trees each of whose ways asks `depth` questions; a leaf says something of each score. With a sample of `rows`."""
    shape = [(2 * node + 1, 2 * node + 2) if node < 2**depth - 1 else None for node in range(2 ** (depth + 1) - 1)]
    name = f"complete_{trees}x{depth}"
    return _compiled(name, [shape] * trees, columns, scores, protocols, of_one_score=False, asked=rows)


def leafwise(trees: int, leaves: int, columns: int, scores: int, protocols: Protocols) -> Built:
    """Trees grown leaf by leaf, as LightGBM grows them; `trees` of them for each score."""
    rng = np.random.default_rng(SEED)
    shapes = []
    for _ in range(trees * scores):
        shape: list[tuple[int, int] | None] = [None]
        open_leaves = [0]
        for _ in range(leaves - 1):
            split = open_leaves.pop(int(rng.integers(len(open_leaves))))
            shape[split] = (len(shape), len(shape) + 1)
            open_leaves += [len(shape), len(shape) + 1]
            shape += [None, None]
        shapes.append(shape)
    return _compiled(f"leafwise_{trees}x{leaves}", shapes, columns, scores, protocols, of_one_score=True)


def _compiled(
    name: str,
    shapes: list[list[tuple[int, int] | None]],
    columns: int,
    scores: int,
    protocols: Protocols,
    *,
    of_one_score: bool,
    asked: int = 1,
) -> Built:
    rng = np.random.default_rng(SEED)
    rows = rng.standard_normal((_ROWS, columns)).astype(np.float32)
    parts = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes: dict[str, Any] = {f"nodes_{part}": [] for part in parts}
    leaves: list[tuple[int, int, int, float]] = []
    for tree, shape in enumerate(shapes):
        for number, children in enumerate(shape):
            mode, (yes, no) = ("LEAF", (0, 0)) if children is None else ("BRANCH_LT", children)
            column, threshold = int(rng.integers(columns)), float(np.float32(rng.standard_normal()))
            for held, value in zip(nodes.values(), (tree, number, column, mode, threshold, yes, no), strict=True):
                held.append(value)
            if children is None:
                told = [tree * scores // len(shapes)] if of_one_score else range(scores)
                leaves += [(tree, number, score, float(np.float32(rng.standard_normal()))) for score in told]
    of_trees, of_nodes, targets, weights = zip(*leaves, strict=True)
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        name="trees",
        domain="ai.onnx.ml",
        **nodes,
        target_treeids=of_trees,
        target_nodeids=of_nodes,
        target_ids=targets,
        target_weights=weights,
        n_targets=scores,
    )
    graph = helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, scores])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    onnx.checker.check_model(model)
    output = "value" if scores == 1 else "label"
    compiled = compile_model(model, rows, **protocols.keywords(name=name, output=protocols.output(output)))
    sample = compiled.manifest.input.named[0].encode(np.resize(rows, (asked, columns)), name)
    sizes = compiled.manifest.input.shape
    return compiled, sample.reshape(sizes if asked == 1 else (asked, *sizes))


#: The ensembles by name: XGBoost's usual size, a forest, and a stager of sleep as LightGBM makes it.
ENSEMBLES = {
    "trees_xgboost_100x6": partial(complete, 100, 6, 30, 1),
    "trees_forest_50x5": partial(complete, 50, 5, 30, 2),
    "trees_lightgbm_5x500x31": partial(leafwise, 500, 31, 100, 5),
}
