"""Trees of one shape, as the network of all has them: complete ones, or ones whose ways are secret."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.trees.codes import Answer
from lanner.onnx.trees.ensemble import Ensemble, Tree
from lanner.onnx.trees.table import Cell

#: Complete trees are no deeper than this; others have secret ways.
_DEEPEST = 8

#: More nodes of one tree than any library grows: a file's nodes may name one another again and again.
_MOST_NODES = 1 << 16

#: More turns of all secret ways together than a server has memory for.
_MOST_TURNS = 1 << 25

#: Nodes of a tree whose ways are secret are a multiple of this.
_ROUNDED = 4

#: What a way has of a leaf that is never reached.
_UNREACHED = 2


@dataclass(slots=True)
class Grown:
    """A tree over codes: each node turns right where the code at its place is at least its threshold.

    A child below 0 is the leaf ``-1 - child``; the root comes first.
    """

    places: list[int] = field(default_factory=list)
    thresholds: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    leaves: list[dict[int, float]] = field(default_factory=list)
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Trees:
    """What the graph's operator takes; see `crates/graph/src/trees.rs`."""

    count: int
    columns: NDArray[np.float32]
    thresholds: NDArray[np.float32]
    paths: NDArray[np.float32] | None
    values: NDArray[np.float32]
    base: NDArray[np.float32]


class TooLargeError(Exception):
    """A tree that has too many nodes, or trees whose secret ways have too many turns."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What is to be grown: a tree's child, and where it goes.

    Attributes:
        child: The child.
        parent: The node whose child it becomes, and whether its right one; None of the root.
        depth: How many nodes are above it.
        within: The codes that are left of columns on the way, by the columns' places.
        cuts: How many of the answer's cuts are left, where missing numbers come along; None of a question's first node.
    """

    child: int
    parent: tuple[int, bool] | None
    depth: int
    within: Mapping[int, tuple[int, int]]
    cuts: int | None = None


def grow(tree: Tree, answers: Sequence[Answer], cells: Sequence[Cell]) -> Grown:
    """A tree over codes. Questions with one answer for all codes that come to them are left out.

    Raises:
        TooLargeError: If it has too many nodes.
    """
    grown = Grown()
    pending = [_Part(tree.root, None, 0, {})]
    while pending:
        part = pending.pop()
        grown.depth = max(grown.depth, part.depth)
        if len(grown.places) > _MOST_NODES:
            raise TooLargeError
        if part.child < 0:
            made = -1 - len(grown.leaves)
            grown.leaves.append(tree.leaves[-1 - part.child])
        else:
            answer, cell = answers[part.child], cells[tree.questions[part.child].column]
            branch = {True: tree.yes[part.child], False: tree.no[part.child]}
            ask = _ask_with_missing if cell.column.missing else _ask
            asked = ask(part, answer, cell, branch)
            if isinstance(asked, _Part):
                pending.append(asked)
                continue
            place, threshold, right, left = asked
            made = _node(grown, place, threshold)
            pending += [replace(right, parent=(made, True)), replace(left, parent=(made, False))]
        if part.parent is not None:
            at, is_right = part.parent
            (grown.right if is_right else grown.left)[at] = made
    return grown


#: A node's place and threshold, and what is grown on its right and on its left.
_Asked = tuple[int, int, _Part, _Part]


def _ask(part: _Part, answer: Answer, cell: Cell, branch: Mapping[bool, int]) -> _Asked | _Part:
    """The node of a question about codes that the way has left, or what follows where these have one answer."""
    place = cell.places[0]
    low, high = part.within.get(place, cell.column.ends)
    before = bisect_right(answer.cuts, low)
    cuts = answer.cuts[before : bisect_right(answer.cuts, high)]
    first = answer.first != (before % 2 == 1)
    if not cuts:
        return replace(part, child=branch[first])
    cut = cuts[-1]
    right = branch[first != (len(cuts) % 2 == 1)]
    below, above = ({**part.within, place: ends} for ends in ((low, cut - 1), (cut, high)))
    # On the left the same question is asked again, of fewer codes.
    return place, cut, _Part(right, None, part.depth + 1, above), _Part(part.child, None, part.depth + 1, below)


def _ask_with_missing(part: _Part, answer: Answer, cell: Cell, branch: Mapping[bool, int]) -> _Asked | _Part:
    """The same where numbers may be missing: they go with the codes that have their answer."""
    last = len(answer.cuts) if part.cuts is None else part.cuts
    deeper = _Part(0, None, part.depth + 1, part.within)
    if last > 0:
        right = answer.first == (last % 2 == 0)
        left = replace(deeper, child=part.child, cuts=last - 1)
        return cell.places[answer.missing == right], answer.cuts[last - 1], replace(deeper, child=branch[right]), left
    if part.cuts is None and answer.missing not in (None, answer.first):
        # All numbers have one answer, and a missing one has the other.
        other, own = (replace(deeper, child=branch[each]) for each in (not answer.first, answer.first))
        return cell.places[1], cell.column.high, other, own
    return replace(part, child=branch[answer.first], cuts=None)


def _node(grown: Grown, place: int, threshold: int) -> int:
    grown.places.append(place)
    grown.thresholds.append(threshold)
    grown.left.append(0)
    grown.right.append(0)
    return len(grown.places) - 1


def arrange(ensemble: Ensemble, grown: Sequence[Grown], width: int, high: int) -> Trees:
    """Trees as the graph's operator takes them.

    Args:
        ensemble: What the file says.
        grown: Its trees over codes.
        width: How many codes a row has.
        high: The largest code.

    Raises:
        TooLargeError: If secret ways have too many turns.
    """
    scores = len(ensemble.base)
    base = np.array(ensemble.base, np.float64)
    kept = []
    for tree in grown:
        if tree.places:
            kept.append(tree)
        else:
            # What every row gets belongs to no tree.
            for target, value in tree.leaves[0].items():
                base[target] += value
    kept, grouped = _by_score(kept or [_bare(width)], scores)
    depth = max(tree.depth for tree in kept)
    nodes = max(len(tree.places) for tree in kept)
    rounded = -(-nodes // _ROUNDED) * _ROUNDED
    complete = depth <= _DEEPEST and _bytes(2**depth - 1, width, None) <= _bytes(rounded, width, rounded + 1)
    if not complete and len(kept) * rounded * (rounded + 1) > _MOST_TURNS:
        raise TooLargeError
    leaves = 2**depth if complete else rounded + 1
    values = np.zeros((len(kept), leaves, 1 if grouped else scores))
    if complete:
        columns, thresholds, paths = _complete(kept, depth, high, values, grouped)
    else:
        columns, thresholds, paths = _with_ways(kept, rounded, high, values, grouped)
    flat = (values.transpose(1, 0, 2) if complete else values).reshape(-1, values.shape[2])
    of_float = np.float32
    return Trees(
        len(kept),
        columns.astype(of_float),
        thresholds.astype(of_float),
        paths,
        flat.astype(of_float),
        base.astype(of_float),
    )


def _bare(width: int) -> Grown:
    """A tree whose only question has one answer, of an ensemble that asks nothing."""
    del width
    return Grown([0], [0], [-1], [-2], [{}, {}], 1)


def _by_score(trees: list[Grown], scores: int) -> tuple[list[Grown], bool]:
    """The trees in the order of the one score that each tells of, where each score has as many; and whether."""
    told = [{target for leaf in tree.leaves for target in leaf} for tree in trees]
    if scores == 1 or any(len(targets) > 1 for targets in told):
        return trees, False
    by_score: list[list[Grown]] = [[] for _ in range(scores)]
    for tree, targets in zip(trees, told, strict=True):
        by_score[next(iter(targets), 0)].append(tree)
    if len({len(part) for part in by_score}) > 1:
        return trees, False
    return [tree for part in by_score for tree in part], True


def _bytes(nodes: int, width: int, leaves: int | None) -> float:
    """About the bytes of a tree: a column for each node, and comparisons; of secret ways the turns, too."""
    ways = 0.0 if leaves is None else 2.0 * nodes * leaves
    return nodes * (3.0 * width + 35.0) + (leaves or nodes + 1) * 15.0 + ways


def _complete(
    trees: Sequence[Grown], depth: int, high: int, values: NDArray[np.float64], grouped: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], None]:
    """Trees padded to complete ones: below a leaf nodes turn left, and there the leaf stays."""
    count, nodes = len(trees), 2**depth - 1
    columns, thresholds = np.zeros((nodes, count)), np.full((nodes, count), high + 1.0)
    for number, tree in enumerate(trees):
        pending = [(0, 0, 0)]
        while pending:
            at, level, way = pending.pop()
            if at < 0:
                _tell(values[number, way], tree.leaves[-1 - at], grouped)
                continue
            place = 2**level - 1 + way
            columns[place, number], thresholds[place, number] = tree.places[at], tree.thresholds[at]
            pending.append((tree.left[at], level + 1, way))
            pending.append((tree.right[at], level + 1, way + 2**level))
    return columns.ravel(), thresholds.ravel(), None


def _with_ways(
    trees: Sequence[Grown], nodes: int, high: int, values: NDArray[np.float64], grouped: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float32]]:
    """Trees with as many nodes each, of which those that are left over lead nowhere."""
    count = len(trees)
    columns, thresholds = np.zeros((count, nodes)), np.full((count, nodes), high + 1.0)
    paths = np.full((count, nodes + 1, nodes), float(_UNREACHED), np.float32)
    for number, tree in enumerate(trees):
        columns[number, : len(tree.places)] = tree.places
        thresholds[number, : len(tree.places)] = tree.thresholds
        pending: list[tuple[int, tuple[tuple[int, int], ...]]] = [(0, ())]
        while pending:
            at, turns = pending.pop()
            if at < 0:
                leaf = -1 - at
                paths[number, leaf] = 0
                for node, turn in turns:
                    paths[number, leaf, node] = turn
                _tell(values[number, leaf], tree.leaves[leaf], grouped)
                continue
            pending.append((tree.left[at], (*turns, (at, -1))))
            pending.append((tree.right[at], (*turns, (at, 1))))
    return columns.ravel(), thresholds.ravel(), paths.reshape(-1, nodes)


def _tell(row: NDArray[np.float64], leaf: dict[int, float], grouped: bool) -> None:
    for target, value in leaf.items():
        row[0 if grouped else target] += value
