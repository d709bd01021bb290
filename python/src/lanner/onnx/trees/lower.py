"""Lowers trees: their questions become questions about codes, and all trees get one shape."""

from __future__ import annotations

from lanner.errors import UnsupportedOpError
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.ending import TRANSFORMS
from lanner.onnx.node import Node
from lanner.onnx.trees.codes import answers
from lanner.onnx.trees.ensemble import read_ensemble
from lanner.onnx.trees.shapes import TooLargeError, arrange, grow
from lanner.onnx.trees.table import Table

#: The operators that are lowered here, by their qualified names.
OPERATORS = ("ai.onnx.ml.TreeEnsembleRegressor", "ai.onnx.ml.TreeEnsemble")


def check_split(node: Node) -> None:
    """Refuse a classifier that was not taken apart.

    Raises:
        UnsupportedOpError: Naming what is not computed of it.
    """
    if node.operator != "TreeEnsembleClassifier":
        return
    transform = node.attr("post_transform", "NONE")
    known = transform in ("NONE", "LOGISTIC", "SOFTMAX", *TRANSFORMS)
    what = "class_weights" if known else "post_transform"
    said = "or its labels are missing" if known else f"is {transform}, which ONNX does not have"
    raise node.unsupported(what, said, "export it again, with raw scores where its converter can")


def lower_trees(node: Node, graph: GraphBuilder, table: Table) -> Wire:
    """Lower an ensemble of trees over a client's table; the result is (scores,).

    Raises:
        UnsupportedOpError: If it names a column that is not there, or what `read_ensemble` refuses.
    """
    ensemble = read_ensemble(node)
    cells = table.cells
    for tree in ensemble.trees:
        for question in tree.questions:
            if not 0 <= question.column < len(cells):
                raise node.unsupported("nodes_featureids", f"has {question.column} of {len(cells)} columns")
    every = answers([question for tree in ensemble.trees for question in tree.questions], cells)
    grown, first = [], 0
    for tree in ensemble.trees:
        try:
            grown.append(grow(tree, every[first : first + len(tree.questions)], cells))
        except TooLargeError:
            raise _too_large(node) from None
        first += len(tree.questions)
    high = max(cell.column.high for cell in cells)
    try:
        trees = arrange(ensemble, grown, table.source.size, high)
    except TooLargeError:
        raise _too_large(node) from None
    return graph.add_node(
        "Trees",
        (table.source,),
        (len(ensemble.base),),
        {"trees": trees.count, "high": high},
        {
            "columns": trees.columns,
            "thresholds": trees.thresholds,
            "paths": trees.paths,
            "values": trees.values,
            "base": trees.base,
        },
    )


def _too_large(node: Node) -> UnsupportedOpError:
    return node.unsupported(
        "nodes",
        "make trees that are too large (each node, leaf and equality test counts)",
        "train trees of fewer leaves or less depth",
    )
