"""Joins the ensembles of a file, and what is computed between them, to one ensemble of trees.

Converters write bagging, voting, boosted stumps, calibrated trees and stacks of estimators as several ensembles, with
sums and products, and functions of single trees, between them. A number there is a constant and what the reached leaf
of each tree adds, as long as trees are added up, multiplied with constants, and put side by side; and any function of
one tree alone is again a tree, whose leaves say something else. So the scores at the file's end are one ensemble.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.errors import UnsupportedOpError
from lanner.onnx.ending import End, find_end
from lanner.onnx.trees.ensemble import Tree
from lanner.onnx.trees.plain import plain_ends
from lanner.onnx.trees.products import read_products
from lanner.onnx.trees.tables import Tables
from lanner.onnx.trees.walk import Scores, Walk, is_ensemble
from lanner.onnx.unused import leave_out_unused
from lanner.onnx.words import ML

#: The last version of the domain that has ensembles whose leaves say several scores.
_VERSION = 4


def join_trees(proto: onnx.ModelProto, named: Sequence[str] = ()) -> None:
    """Make one ensemble of what the file's ensembles say together, in place; a file of one ensemble is left as it is.

    Args:
        proto: The model, whose classifiers of trees are taken apart.
        named: The outputs that the owner names.

    Raises:
        UnsupportedOpError: If what is computed of several trees is no sum of them.
    """
    graph = proto.graph
    read_products(proto)
    if not any(is_ensemble(node) for node in graph.node):
        return
    plain_ends(proto)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    ends = {
        entry.name: find_end(graph, entry.name, constants) for entry in graph.output if not named or entry.name in named
    }
    whole = {name for node in graph.node if is_ensemble(node) for name in node.output}
    apart = [name for name in dict.fromkeys(end.scores for end in ends.values()) if name not in whole]
    if not apart:
        return
    walk, tables = Walk(proto, constants), Tables(graph, constants)
    joined, refused = set[str](), list[UnsupportedOpError]()
    for name in apart:
        try:
            scores = walk.scores(name)
            if scores is not None:
                _put(proto, name, scores, tables)
                joined.add(name)
        except UnsupportedOpError as error:
            refused.append(error)
    if not named and _label_alone(graph, ends, walk, joined | whole):
        refused = []
    leave_out_unused(graph)
    if refused:
        raise refused[0]


def _label_alone(graph: onnx.GraphProto, ends: dict[str, End], walk: Walk, computed: set[str]) -> bool:
    """Leave out outputs that say otherwise what a label says of the same trees; whether there is such a label."""
    labels = {end.scores for end in ends.values() if any(node.op_type == "ArgMax" for node in end.operators)}
    if len(labels) != 1 or not labels <= computed:
        return False
    for entry in list(graph.output):
        if ends[entry.name].scores not in labels and walk.reads_trees(entry.name):
            graph.output.remove(entry)
    return True


def _put(proto: onnx.ModelProto, name: str, scores: Scores, tables: Tables) -> None:
    """Put an ensemble of all trees in the place of the node that computes a tensor."""
    graph = proto.graph
    places: dict[str, int] = {}
    columns: dict[int, NDArray[np.int64]] = {}
    at = next(at for at, node in enumerate(graph.node) if name in node.output)
    first = 0
    read = {number: tables.whole(reader.table) for number, reader in scores.trees.items()}
    for table, _ in read.values():
        width = tables.width(table)
        if width is None:
            raise UnsupportedOpError(
                "trees read columns that the file does not count", where=f"tensor {table}", fix="export it again"
            )
        if table not in places:
            places[table], first = first, first + width
    for number, (table, picked) in read.items():
        width = tables.width(table) or 0
        columns[number] = places[table] + (np.arange(width) if picked is None else picked)
    source = next(iter(places), "")
    made = []
    if len(places) > 1:
        source = f"{name}_columns"
        made.append(helper.make_node("Concat", list(places), [source], name=source, axis=1))
    replaced = graph.node[at]
    replaced.output[:] = [f"{each}_apart" if each == name else each for each in replaced.output]
    made.append(_written(name, source, scores, columns))
    nodes = [*graph.node[:at], *made, *graph.node[at:]]
    del graph.node[:]
    graph.node.extend(nodes)
    for entry in proto.opset_import:
        if entry.domain == ML:
            entry.version = min(entry.version, _VERSION)


def _written(name: str, source: str, scores: Scores, columns: dict[int, NDArray[np.int64]]) -> onnx.NodeProto:
    """The node of an ensemble."""
    nodes: dict[str, list[Any]] = {part: [] for part in _PARTS}
    targets: dict[str, list[Any]] = {part: [] for part in ("treeids", "nodeids", "ids", "weights")}
    for number, reader in scores.trees.items():
        asked = len(reader.tree.questions)
        for row in _rows(name, number, reader.tree, columns[number]):
            for part, value in zip(nodes.values(), row, strict=True):
                part.append(value)
        for target, each in enumerate(scores.sums):
            for leaf, value in enumerate(each.parts.get((0, number), ())):
                for part, told in zip(targets.values(), (number, asked + leaf, target, float(value)), strict=True):
                    part.append(told)
    attributes: dict[str, Any] = {
        "n_targets": len(scores.sums),
        "base_values": [float(each.const) for each in scores.sums],
        **{f"nodes_{part}": values for part, values in nodes.items()},
        **{f"target_{part}": values for part, values in targets.items()},
    }
    return helper.make_node("TreeEnsembleRegressor", [source], [name], name=name, domain=ML, **attributes)


def _rows(name: str, number: int, tree: Tree, columns: NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """What the node's lists say of each node of a tree: questions first, of these the root, and then leaves."""
    asked = len(tree.questions)
    children = [[asked - 1 - child if child < 0 else child for child in side] for side in (tree.yes, tree.no)]
    for at in sorted(range(asked), key=lambda at: at != tree.root):
        question = tree.questions[at]
        if question.mode == "MEMBER" or not 0 <= question.column < len(columns):
            raise _not_written(name, tree, at)
        mode, column = f"BRANCH_{question.mode}", int(columns[question.column])
        sides = (children[0][at], children[1][at])
        yield (number, at, column, mode, question.values[0], *sides, int(question.missing))
    for leaf in range(len(tree.leaves)):
        yield (number, asked + leaf, 0, "LEAF", 0.0, 0, 0, 0)


_PARTS = (
    *("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"),
    "missing_value_tracks_true",
)


def _not_written(name: str, tree: Tree, at: int) -> UnsupportedOpError:
    question = tree.questions[at]
    if question.mode == "MEMBER":
        what = "trees that ask for members of a set are added to other ensembles"
        return UnsupportedOpError(what, where=f"node {name}", fix="export them with one-hot columns")
    what = f"a tree asks for column {question.column}, which its table does not have"
    return UnsupportedOpError(what, where=f"node {name}", fix="export it again")
