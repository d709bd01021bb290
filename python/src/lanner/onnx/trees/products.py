"""Reads trees that are written as products of matrices, and writes them as ensembles.

The matrices are those of Hummingbird (NCYYKWI20, "A Tensor Compiler for Unified Machine Learning Prediction Serving",
https://www.usenix.org/conference/osdi20/presentation/nakandala, section 4.1, strategy GEMM), for t trees of n nodes and
l leaves each, k scores and samples X: ``A X^T`` picks each node's column, a comparison with ``B`` answers its question,
``C`` adds up the answers on the way to each leaf, 1 for yes and -1 for no, which are ``D`` together at the leaf that is
reached alone, and ``E`` picks what that says. What follows, as a sum over the trees, is left as it is.

An infinite or missing number in one column makes the file's own products those of no tree; here it is one column's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lanner.onnx.contents import constant_nodes
from lanner.onnx.node import Node
from lanner.onnx.words import ML

_MODES = {"LessOrEqual": "LEQ", "Less": "LT", "GreaterOrEqual": "GTE", "Greater": "GT"}

_Floats = NDArray[np.float64]


def read_products(proto: onnx.ModelProto) -> None:
    """Put ensembles in the place of products of matrices that are trees, in place."""
    graph = proto.graph
    if not any(node.op_type == "Equal" for node in graph.node):
        return
    file, nodes, found = _File(graph), list[onnx.NodeProto](), False
    for node in graph.node:
        matrices = file.matrices(node)
        trees = None if matrices is None else [_grow(matrices, tree) for tree in range(len(matrices.ways))]
        if matrices is None or trees is None or None in trees:
            nodes.append(node)
            continue
        found = True
        nodes += _written(node, matrices, [tree for tree in trees if tree is not None], graph)
    if not found:
        return
    del graph.node[:]
    graph.node.extend(nodes)
    if not any(entry.domain == ML for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(ML, 3))


@dataclass(frozen=True, slots=True)
class _Matrices:
    """The matrices of trees.

    Attributes:
        source: The samples.
        mode: How nodes compare.
        columns: A, (t, n, columns).
        thresholds: B, (t, n).
        ways: C, (t, l, n).
        counts: D, (t, l).
        says: E, (t, k, l).
    """

    source: str
    mode: str
    columns: _Floats
    thresholds: _Floats
    ways: _Floats
    counts: _Floats
    says: _Floats


class _File:
    """Looks back from nodes at what makes their inputs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._held = {tensor.name: tensor for tensor in graph.initializer} | constant_nodes(graph)
        self._producers = {name: node for node in graph.node for name in node.output if name}

    def matrices(self, node: onnx.NodeProto) -> _Matrices | None:
        """The matrices of the trees whose last product a node is; None where it is no such product."""
        says, reached = self._product(node)
        equal = self._behind(reached, ("Cast", "Reshape"), "Equal")
        if says is None or equal is None:
            return None
        sums, counts = self._with_constant(equal)
        ways, answers = self._product(self._behind(sums, ("Reshape",), "MatMul"))
        asked = self._behind(answers, ("Cast", "Reshape"), *_MODES)
        if ways is None or counts is None or asked is None:
            return None
        thresholds = self._constant(asked.input[1])
        columns, source = self._picked(self._producers.get(asked.input[0]))
        if thresholds is None or columns is None or ways.ndim != 3 or says.ndim != 3:
            return None
        trees, leaves, nodes = ways.shape
        fits = columns.ndim == 2 and len(columns) == trees * nodes and says.shape == (trees, says.shape[1], leaves)
        if not fits or counts.shape != (trees * leaves, 1) or thresholds.shape != (trees * nodes, 1):
            return None
        return _Matrices(
            source,
            _MODES[asked.op_type],
            columns.reshape(trees, nodes, -1),
            thresholds.reshape(trees, nodes),
            ways,
            counts.reshape(trees, leaves),
            says,
        )

    def _constant(self, name: str) -> _Floats | None:
        tensor = self._held.get(name)
        return None if tensor is None else np.asarray(numpy_helper.to_array(tensor), np.float64)

    def _product(self, node: onnx.NodeProto | None) -> tuple[_Floats | None, str]:
        """The matrix and the tensor that a node multiplies."""
        if node is None or node.op_type != "MatMul" or node.domain not in ("", "ai.onnx"):
            return None, ""
        return self._constant(node.input[0]), node.input[1]

    def _behind(self, name: str, views: tuple[str, ...], *operators: str) -> onnx.NodeProto | None:
        """The node of one of some operators that a tensor shows, in another shape or type."""
        for _ in range(len(views) + 1):
            node: onnx.NodeProto | None = self._producers.get(name)
            if node is None or node.domain not in ("", "ai.onnx"):
                return None
            if node.op_type in operators:
                return node
            if node.op_type not in views or not self._keeps(node):
                return None
            name = node.input[0]
        return None

    def _keeps(self, node: onnx.NodeProto) -> bool:
        """Whether a cast is to floats, and a shape has the samples last, in one of two or three axes."""
        if node.op_type == "Cast":
            return Node(node, []).attr("to", 0) in (TensorProto.FLOAT, TensorProto.DOUBLE)
        shape = self._constant(node.input[1])
        return shape is not None and shape.size in (2, 3) and shape[-1] == -1 and bool((shape[:-1] > 0).all())

    def _with_constant(self, node: onnx.NodeProto) -> tuple[str, _Floats | None]:
        first, second = (self._constant(name) for name in node.input)
        return (node.input[1], first) if first is not None else (node.input[0], second)

    def _picked(self, node: onnx.NodeProto | None) -> tuple[_Floats | None, str]:
        """A, and the samples whose transpose it is multiplied with."""
        if node is not None and node.op_type == "Gemm":
            of = Node(node, [])
            plain = (of.attr("alpha", 1.0), of.attr("transA", 0), of.attr("transB", 0)) == (1.0, 0, 1)
            adds = len(node.input) > 2 and of.attr("beta", 1.0) != 0.0
            return (self._constant(node.input[0]), node.input[1]) if plain and not adds else (None, "")
        columns, name = self._product(node)
        turned = self._producers.get(name)
        is_turned = (
            turned is not None and turned.op_type == "Transpose" and Node(turned, []).attr("perm", [1, 0]) == [1, 0]
        )
        return (columns, turned.input[0]) if turned is not None and is_turned else (None, "")


@dataclass(slots=True)
class _Tree:
    """A tree: its nodes and leaves by number, as the file has them.

    Attributes:
        yes: Each node's child where the answer is yes; a child below 0 is the leaf ``-1 - child``.
        no: The other one.
        root: The root, as a child.
    """

    yes: dict[int, int]
    no: dict[int, int]
    root: int


#: Leaves of a part of a tree, the nodes above it, and where it goes; None of the root.
_Pending = tuple[NDArray[np.intp], frozenset[int], "tuple[dict[int, int], int] | None"]


def _grow(matrices: _Matrices, number: int) -> _Tree | None:
    """A tree whose ways to its leaves are those of C; None where they are of no tree."""
    ways, counts, says = matrices.ways[number], matrices.counts[number], matrices.says[number]
    columns = matrices.columns[number]
    if not np.isin(ways, (-1, 0, 1)).all():
        return None
    # What pads trees to one size says nothing.
    bare = ~ways.any(axis=1)
    real = np.flatnonzero(~(bare & ~says.any(axis=0)))
    if len(real) == 0:
        return _Tree({}, {}, -1)
    if not np.array_equal((ways[real] == 1).sum(axis=1), counts[real]):
        return None
    tree = _Tree({}, {}, 0)
    pending: list[_Pending] = [(real, frozenset(), None)]
    while pending:
        leaves, above, place = pending.pop()
        turns = ways[leaves]
        shared = [int(node) for node in np.flatnonzero((turns != 0).all(axis=0)) if int(node) not in above]
        if len(leaves) == 1:
            # Its way is told by the nodes above it alone.
            if set(np.flatnonzero(turns[0]).tolist()) != above:
                return None
            made = -1 - int(leaves[0])
        else:
            splits = [node for node in shared if len(np.unique(turns[:, node])) == 2]
            one_column = [node for node in splits if np.count_nonzero(columns[node]) == 1 and columns[node].max() == 1]
            if len(splits) != 1 or len(one_column) != 1 or splits[0] in tree.yes:
                return None
            made = splits[0]
            for side, turn in ((tree.yes, 1), (tree.no, -1)):
                pending.append((leaves[turns[:, made] == turn], above | {made}, (side, made)))
        if place is None:
            tree.root = made
        else:
            place[0][place[1]] = made
    return tree


def _written(
    node: onnx.NodeProto, matrices: _Matrices, trees: list[_Tree], graph: onnx.GraphProto
) -> Iterator[onnx.NodeProto]:
    """An ensemble for each tree, and what puts their scores in the last product's shape."""
    output = node.output[0]
    count, scores = len(trees), matrices.says.shape[1]
    parts = [f"{output}_tree{number}" for number in range(count)]
    for number, (tree, part) in enumerate(zip(trees, parts, strict=True)):
        yield _ensemble(part, matrices, number, tree)
    joined, turned, shape = f"{output}_trees", f"{output}_turned", f"{output}_shape"
    graph.initializer.append(numpy_helper.from_array(np.array([count, scores, -1], np.int64), shape))
    yield helper.make_node("Concat", parts, [joined], name=joined, axis=1)
    yield helper.make_node("Transpose", [joined], [turned], name=turned, perm=[1, 0])
    yield helper.make_node("Reshape", [turned, shape], [output], name=node.name or output)


def _ensemble(name: str, matrices: _Matrices, number: int, tree: _Tree) -> onnx.NodeProto:
    columns, thresholds, says = matrices.columns[number], matrices.thresholds[number], matrices.says[number]
    count = len(thresholds)
    leaves = [-1 - child for child in (tree.root, *tree.yes.values(), *tree.no.values()) if child < 0]
    # The root comes first.
    inner = sorted(tree.yes, key=lambda node: node != tree.root)

    def numbered(child: int) -> int:
        return count - 1 - child if child < 0 else child

    rest = [0] * len(leaves)
    told = [(count + leaf, score, float(says[score, leaf])) for leaf in leaves for score in range(len(says))]
    return helper.make_node(
        "TreeEnsembleRegressor",
        [matrices.source],
        [name],
        name=name,
        domain=ML,
        n_targets=len(says),
        nodes_treeids=[0] * (len(inner) + len(leaves)),
        nodes_nodeids=[*inner, *(count + leaf for leaf in leaves)],
        nodes_featureids=[*(int(columns[node].argmax()) for node in inner), *rest],
        nodes_modes=[*(f"BRANCH_{matrices.mode}" for _ in inner), *("LEAF" for _ in leaves)],
        nodes_values=[*(float(thresholds[node]) for node in inner), *map(float, rest)],
        nodes_truenodeids=[*(numbered(tree.yes[node]) for node in inner), *rest],
        nodes_falsenodeids=[*(numbered(tree.no[node]) for node in inner), *rest],
        target_treeids=[0] * len(told),
        target_nodeids=[leaf for leaf, _, _ in told],
        target_ids=[score for _, score, _ in told],
        target_weights=[value for _, _, value in told],
    )
