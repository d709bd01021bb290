"""Ensembles of trees as ONNX's operators say them, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")

ML = "ai.onnx.ml"


class Drawn:
    """Trees with nodes numbered by tree, as versions 1 to 3 of the operators hold them.

    Args:
        rng: Where they are drawn from.
        numbers: What nodes compare with, one list for each column.
        targets: How many scores there are.
        trees: How many trees.
        depth: The most questions on a way.
        modes: The modes that nodes have.
        missing: Whether missing numbers count as yes at some nodes.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        numbers: list[NDArray[np.float32]],
        *,
        targets: int = 1,
        trees: int = 3,
        depth: int = 3,
        modes: tuple[str, ...] = MODES,
        missing: bool = False,
    ) -> None:
        self.targets = targets
        self.nodes: dict[str, Any] = {
            f"nodes_{part}": []
            for part in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
        }
        self.missing: list[int] = []
        self.leaves: list[tuple[int, int, int, float]] = []
        for tree in range(trees):
            self._grow(rng, numbers, tree, depth, modes, missing)

    def _grow(
        self,
        rng: np.random.Generator,
        numbers: list[NDArray[np.float32]],
        tree: int,
        depth: int,
        modes: tuple[str, ...],
        missing: bool,
    ) -> None:
        pending, count = [(0, 0)], 1
        while pending:
            node, level = pending.pop(0)
            is_leaf = level == depth or (level > 0 and rng.random() < 0.2)
            column = int(rng.integers(len(numbers)))
            yes, no = (0, 0) if is_leaf else (count, count + 1)
            if not is_leaf:
                pending += [(yes, level + 1), (no, level + 1)]
                count += 2
            else:
                self.leaves += [(tree, node, each, float(np.float32(rng.normal()))) for each in range(self.targets)]
            mode = "LEAF" if is_leaf else str(rng.choice(modes))
            value = 0.0 if is_leaf else float(rng.choice(numbers[column]))
            row = (tree, node, column, mode, value, yes, no)
            for part, held in zip(self.nodes.values(), row, strict=True):
                part.append(held)
            self.missing.append(int(missing and rng.random() < 0.5))

    def regressor(self, columns: int, **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401 - an attribute's value
        """The trees as a ``TreeEnsembleRegressor``."""
        trees, nodes, targets, weights = zip(*self.leaves, strict=True)
        node = helper.make_node(
            "TreeEnsembleRegressor",
            ["x"],
            ["y"],
            domain=ML,
            **self.nodes,
            nodes_missing_value_tracks_true=self.missing,
            target_treeids=trees,
            target_nodeids=nodes,
            target_ids=targets,
            target_weights=weights,
            n_targets=self.targets,
            **attributes,
        )
        return _model(node, columns, self.targets, 3)

    def classifier(self, columns: int, labels: list[Any], transform: str) -> onnx.ModelProto:
        """The trees as a ``TreeEnsembleClassifier`` with a label and scores."""
        trees, nodes, targets, weights = zip(*self.leaves, strict=True)
        words = isinstance(labels[0], str)
        names: dict[str, Any] = {"classlabels_strings" if words else "classlabels_int64s": labels}
        node = helper.make_node(
            "TreeEnsembleClassifier",
            ["x"],
            ["label", "y"],
            domain=ML,
            **self.nodes,
            nodes_missing_value_tracks_true=self.missing,
            class_treeids=trees,
            class_nodeids=nodes,
            class_ids=targets,
            class_weights=weights,
            post_transform=transform,
            **names,
        )
        model = _model(node, columns, len(labels), 3)
        kind = TensorProto.STRING if words else TensorProto.INT64
        model.graph.output.insert(0, helper.make_tensor_value_info("label", kind, [None]))
        return model

    def ensemble(self, columns: int) -> onnx.ModelProto:
        """The trees as a ``TreeEnsemble`` of version 5, of one score, with one node of a set each."""
        by_number = {mode: place for place, mode in enumerate(MODES)}
        held = list(zip(*self.nodes.values(), strict=True))
        inner = [row for row in held if row[3] != "LEAF"]
        place = {(row[0], row[1]): at for at, row in enumerate(inner)}
        leaf = {(tree, node): at for at, (tree, node, *_) in enumerate(self.leaves)}
        sides: dict[str, list[int]] = {key: [] for key in ("true", "trueleafs", "false", "falseleafs")}
        for tree, _, _, _, _, yes, no in inner:
            for side, child in (("true", yes), ("false", no)):
                is_leaf = (tree, child) in leaf
                sides[side].append(leaf[tree, child] if is_leaf else place[tree, child])
                sides[f"{side}leafs"].append(int(is_leaf))
        node = helper.make_node(
            "TreeEnsemble",
            ["x"],
            ["y"],
            domain=ML,
            n_targets=1,
            aggregate_function=1,
            post_transform=0,
            tree_roots=[place[tree, 0] for tree in dict.fromkeys(row[0] for row in inner)],
            nodes_featureids=[row[2] for row in inner],
            nodes_modes=numpy_helper.from_array(np.array([by_number[row[3]] for row in inner], np.uint8), "modes"),
            nodes_splits=numpy_helper.from_array(np.array([row[4] for row in inner], np.float32), "splits"),
            nodes_truenodeids=sides["true"],
            nodes_trueleafs=sides["trueleafs"],
            nodes_falsenodeids=sides["false"],
            nodes_falseleafs=sides["falseleafs"],
            leaf_targetids=[0] * len(self.leaves),
            leaf_weights=numpy_helper.from_array(np.array([row[3] for row in self.leaves], np.float32), "weights"),
        )
        return _model(node, columns, 1, 5)


def _model(node: onnx.NodeProto, columns: int, outputs: int, version: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, outputs])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, version)], ir_version=8)
