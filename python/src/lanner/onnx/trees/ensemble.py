"""What a node of trees says, of any version of its operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.onnx.node import Node

#: The most questions on a way to a leaf.
DEEPEST = 512

#: The most scores.
_MOST_SCORES = 1 << 12

#: How a node compares its column with its number, by the names and by the numbers that ONNX has for it.
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")


@dataclass(frozen=True, slots=True)
class Question:
    """What a node asks of its column.

    Attributes:
        column: Which.
        mode: One of `MODES`.
        values: The number that it is compared with; of ``MEMBER`` the set's numbers.
        missing: Whether a missing number counts as yes.
    """

    column: int
    mode: str
    values: tuple[float, ...]
    missing: bool


@dataclass(slots=True)
class Tree:
    """A tree: nodes by number, the root first; a child below 0 is the leaf ``-1 - child``.

    Attributes:
        questions: What each node asks.
        yes: The child where the answer is yes.
        no: The other one.
        leaves: What each leaf adds, by the score's number.
        root: The root, as a child is told.
    """

    questions: list[Question] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    leaves: list[dict[int, float]] = field(default_factory=list)
    root: int = 0


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Trees whose leaves' values are added up.

    Attributes:
        trees: The trees.
        base: What each score begins with.
    """

    trees: list[Tree]
    base: list[float]


def read_ensemble(node: Node) -> Ensemble:
    """Read a ``TreeEnsembleRegressor`` or a ``TreeEnsemble``.

    Raises:
        UnsupportedOpError: If leaves are not added up, a transform follows, or what it says contradicts itself.
    """
    return _read_indexed(node) if node.operator == "TreeEnsemble" else _read_listed(node)


def _read_listed(node: Node) -> Ensemble:
    """A ``TreeEnsembleRegressor``: nodes named by tree and number."""
    node.require("post_transform", "NONE")
    none = list[int]()
    trees, numbers = node.attr("nodes_treeids", none), node.attr("nodes_nodeids", none)
    modes = [_text(mode) for mode in node.attr("nodes_modes", list[bytes]())]
    columns, yes, no = (node.attr(f"nodes_{part}", none) for part in ("featureids", "truenodeids", "falsenodeids"))
    values = _numbers(node, "nodes_values", len(numbers))
    missing = node.attr("nodes_missing_value_tracks_true", none) or [0] * len(numbers)
    if len({len(part) for part in (trees, numbers, modes, columns, yes, no, values, missing)}) > 1 or not numbers:
        raise node.unsupported("nodes", "are lists of different lengths, or none")
    places = {key: place for place, key in enumerate(zip(trees, numbers, strict=True))}
    weights: dict[tuple[int, int], dict[int, float]] = {}
    told = [node.attr(f"target_{part}", none) for part in ("treeids", "nodeids", "ids")]
    added = _numbers(node, "target_weights")
    if {len(part) for part in told} != {len(added)}:
        raise node.unsupported("targets", "are lists of different lengths")
    for tree, number, target, weight in zip(*told, added, strict=True):
        held = weights.setdefault((tree, number), {})
        held[target] = held.get(target, 0.0) + weight
    made: dict[int, Tree] = {}
    for place, tree in enumerate(trees):
        if tree in made:
            continue
        reader = _Reader(
            is_leaf=lambda at: modes[at] == "LEAF",
            question=lambda at: Question(
                columns[at], modes[at].removeprefix("BRANCH_"), (values[at],), bool(missing[at])
            ),
            children=lambda at: (places.get((trees[at], yes[at]), -1), places.get((trees[at], no[at]), -1)),
            values=lambda at: weights.get((trees[at], numbers[at]), {}),
        )
        # The first node of a tree is its root.
        made[tree] = _grow(node, place, reader)
    count = int(node.attr("n_targets", 1))
    return _scaled(node, list(made.values()), count, node.attr("aggregate_function", "SUM"))


def _read_indexed(node: Node) -> Ensemble:
    """A ``TreeEnsemble`` of version 5: nodes and leaves by place."""
    if node.attr("post_transform", 0) != 0:
        raise node.unsupported("post_transform", "is not 0 (none)")
    none = list[int]()
    roots, columns = node.attr("tree_roots", none), node.attr("nodes_featureids", none)
    yes, no = node.attr("nodes_truenodeids", none), node.attr("nodes_falsenodeids", none)
    yes_leaf, no_leaf = node.attr("nodes_trueleafs", none), node.attr("nodes_falseleafs", none)
    modes = [int(mode) for mode in np.ravel(_tensor(node, "nodes_modes"))]
    splits = [float(value) for value in np.ravel(_tensor(node, "nodes_splits"))]
    members = [float(value) for value in np.ravel(_tensor(node, "membership_values"))]
    missing = node.attr("nodes_missing_value_tracks_true", none) or [0] * len(columns)
    targets, weights = node.attr("leaf_targetids", none), [float(x) for x in np.ravel(_tensor(node, "leaf_weights"))]
    lengths = {len(part) for part in (columns, yes, no, yes_leaf, no_leaf, modes, splits, missing)}
    if len(lengths) > 1 or len(targets) != len(weights) or not roots:
        raise node.unsupported("nodes", "are lists of different lengths, or none")
    # The sets of all nodes with the mode member lie one after another, each behind a NaN.
    sets = iter(_sets(members))
    of_node = {at: next(sets, ()) for at, mode in enumerate(modes) if mode == _MEMBER}

    def child(at: int, of_leaf: bool) -> int:
        if not 0 <= at < len(targets if of_leaf else columns):
            return -1
        return len(columns) + at if of_leaf else at

    def values(at: int) -> dict[int, float]:
        leaf = at - len(columns)
        return {targets[leaf]: weights[leaf]}

    # A tree that is one leaf is told as a node whose both children are that leaf.
    reader = _Reader(
        is_leaf=lambda at: at >= len(columns),
        question=lambda at: Question(
            columns[at],
            _BY_NUMBER.get(modes[at], ""),
            of_node[at] if modes[at] == _MEMBER else (splits[at],),
            bool(missing[at]),
        ),
        children=lambda at: (child(yes[at], bool(yes_leaf[at])), child(no[at], bool(no_leaf[at]))),
        values=values,
    )
    trees = [_grow(node, root, reader) for root in roots]
    aggregate = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}.get(int(node.attr("aggregate_function", 1)), "")
    return _scaled(node, trees, int(node.attr("n_targets", 1)), aggregate)


_MEMBER = 6
_BY_NUMBER = {0: "LEQ", 1: "LT", 2: "GTE", 3: "GT", 4: "EQ", 5: "NEQ", _MEMBER: "MEMBER"}


def _sets(members: list[float]) -> list[tuple[float, ...]]:
    found, held = [], list[float]()
    for value in members:
        if np.isnan(value):
            found.append(tuple(held))
            held = []
        else:
            held.append(value)
    return [*found, tuple(held)] if held else found


@dataclass(frozen=True, slots=True)
class _Reader:
    """What a file says of the nodes of a tree, by their places in its lists."""

    is_leaf: Callable[[int], bool]
    question: Callable[[int], Question]
    children: Callable[[int], tuple[int, int]]
    values: Callable[[int], dict[int, float]]


def _grow(node: Node, start: int, reader: _Reader) -> Tree:
    """Collect a tree from its root on, without recursion."""
    grown, told, pending = Tree(), dict[int, int](), [start]
    while pending:
        at = pending.pop()
        if at < 0:
            raise node.unsupported("nodes", "name a child that is not there")
        if at in told:
            continue
        if reader.is_leaf(at):
            told[at] = -1 - len(grown.leaves)
            grown.leaves.append(reader.values(at))
            continue
        asked = reader.question(at)
        if asked.mode not in MODES:
            raise node.unsupported("nodes_modes", f"has {asked.mode or 'an unknown one'}")
        if any(np.isnan(value) for value in asked.values):
            raise node.unsupported("nodes_values", "has a NaN, with which no number compares")
        told[at] = len(grown.questions)
        grown.questions.append(asked)
        grown.yes.append(at)
        grown.no.append(at)
        pending += reader.children(at)
    for index, at in enumerate(list(grown.yes)):
        yes, no = reader.children(at)
        grown.yes[index], grown.no[index] = told[yes], told[no]
    grown.root = told[start]
    _check_depth(node, grown)
    return grown


def _check_depth(node: Node, tree: Tree) -> None:
    """Refuse nodes that name one another in a circle, and trees deeper than any that is grown: runtimes recurse."""
    parents = [0] * len(tree.questions)
    for child in (*tree.yes, *tree.no):
        if child >= 0:
            parents[child] += 1
    depths, ready, seen = [0] * len(parents), [tree.root] if tree.root >= 0 and parents[tree.root] == 0 else [], 0
    while ready:
        at = ready.pop()
        seen += 1
        for child in (tree.yes[at], tree.no[at]):
            if child >= 0:
                depths[child] = max(depths[child], depths[at] + 1)
                parents[child] -= 1
                if parents[child] == 0:
                    ready.append(child)
    if seen < len(parents):
        raise node.unsupported("nodes", "name one another in a circle")
    if max(depths, default=0) >= DEEPEST:
        raise node.unsupported("nodes", f"make a tree of more than {DEEPEST} questions on a way")


def _scaled(node: Node, trees: list[Tree], count: int, aggregate: str) -> Ensemble:
    if aggregate not in ("SUM", "AVERAGE"):
        raise node.unsupported("aggregate_function", f"is {aggregate}; leaves must be added up or averaged")
    if not 1 <= count <= _MOST_SCORES:
        raise node.unsupported("n_targets", f"is {count}; there may be {_MOST_SCORES}")
    base = _numbers(node, "base_values") or [0.0] * count
    if len(base) != count or any(
        target >= count or target < 0 for tree in trees for leaf in tree.leaves for target in leaf
    ):
        raise node.unsupported("base_values", f"or what leaves say is of other scores than the {count} there are")
    if aggregate == "AVERAGE":
        for tree in trees:
            tree.leaves = [{key: value / len(trees) for key, value in leaf.items()} for leaf in tree.leaves]
    return Ensemble(trees, base)


def _numbers(node: Node, name: str, count: int = 0) -> list[float]:
    """Numbers of an attribute, which may be a tensor of doubles under another name."""
    held = node.attr(name, list[float]())
    if not held:
        held = [float(value) for value in np.ravel(_tensor(node, f"{name}_as_tensor"))]
    return held or [0.0] * count


def _tensor(node: Node, name: str) -> NDArray[np.generic]:
    none = onnx.TensorProto()
    held = node.attr(name, none)
    return np.zeros(0) if held is none else numpy_helper.to_array(held)


def _text(mode: bytes | str) -> str:
    return mode.decode() if isinstance(mode, bytes) else mode
