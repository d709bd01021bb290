"""What each tensor of a file is, as far as trees make it: a sum over trees, a function of one tree, or something else.

The graph is looked at with two samples, so that what mixes samples shows. What depends on one tree is computed in the
file's own type, as the file's operators compute it, and sums of several trees in doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError, Refusal, UnsupportedOpError
from lanner.onnx.bodies import names_read
from lanner.onnx.folding import fold
from lanner.onnx.node import Node
from lanner.onnx.trees.ensemble import Ensemble, Tree, read_ensemble
from lanner.onnx.trees.leaf_functions import on_leaves
from lanner.onnx.trees.leaf_sums import LeafSum, Sums, follow
from lanner.onnx.trees.tables import Tables

#: The operators that are ensembles, by their qualified names.
_ENSEMBLES = ("ai.onnx.ml.TreeEnsembleRegressor", "ai.onnx.ml.TreeEnsemble")

#: The samples that a graph is looked at with.
_SAMPLES = 2

#: The most numbers of a function of one tree.
_MOST = 1 << 12


def is_ensemble(node: onnx.NodeProto) -> bool:
    """Whether a node adds up what the leaves of trees say."""
    return Node(node, []).qualified_operator in _ENSEMBLES


@dataclass(frozen=True, slots=True)
class Reader:
    """A tree, and the tensor whose columns it asks about."""

    tree: Tree
    table: str


@dataclass(frozen=True, slots=True)
class Scores:
    """What scores are: for each a constant and what each tree adds; and all trees by number."""

    sums: Sequence[LeafSum]
    trees: Mapping[int, Reader]


@dataclass(frozen=True, slots=True)
class _OfOne:
    """A tensor that depends on one tree alone."""

    tree: int


@dataclass(frozen=True, slots=True)
class _Columns:
    """A tensor that depends on the input, and on no trees."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A tensor that depends on constants and the number of samples alone, as it is for two samples."""

    value: NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Summed:
    """A tensor of sums over trees."""

    sums: Sums


@dataclass(frozen=True, slots=True)
class _Other:
    """A tensor that depends on trees in another way; and why the first one on the way to it does."""

    why: UnsupportedOpError


_Value: TypeAlias = "_OfOne | _Columns | _Known | _Summed | _Other"


class Walk:
    """What each tensor of a graph is.

    Args:
        proto: The model.
        constants: Its initializers.
    """

    def __init__(self, proto: onnx.ModelProto, constants: Mapping[str, NDArray[np.generic]]) -> None:
        self._graph = proto.graph
        self._opsets = list(proto.opset_import)
        self._tables = Tables(proto.graph, constants)
        self._trees: list[Reader] = []
        self._numbers: dict[object, int] = {}
        # Of each ensemble of one tree: which, and what its leaves say. Of every one its number of scores.
        self._leaves: dict[str, tuple[int, NDArray[np.float32]]] = {}
        self._widths: dict[str, int] = {}
        self._functions: dict[str, Sums | None] = {}
        self._producers = {name: node for node in proto.graph.node for name in node.output if name}
        self._values: dict[str, _Value] = {name: _Known(np.asarray(value)) for name, value in constants.items()}
        for entry in proto.graph.input:
            self._values.setdefault(entry.name, _Columns())
        for node in proto.graph.node:
            self._values.update(self._follow(node))

    def reads_trees(self, name: str) -> bool:
        """Whether a tensor depends on trees."""
        return isinstance(self._values.get(name), _OfOne | _Summed | _Other)

    def scores(self, name: str) -> Scores | None:
        """What a tensor's scores are; None where it is no sum over trees.

        Raises:
            UnsupportedOpError: Naming what is computed of trees that is no such sum.
        """
        value = self._values.get(name, _Columns())
        if isinstance(value, _Other):
            raise value.why
        if isinstance(value, _Columns | _Known):
            return None
        sums = value.sums if isinstance(value, _Summed) else self._of_leaves(name)
        node = self._producers[name]
        if sums is None:
            raise _refused(node, "does not give finite numbers for each sample")
        if sums.ndim == 0 or sums.shape[0] != _SAMPLES:
            raise _refused(node, "puts the samples on another axis than the first, or several into one")
        first, second = ([_number(each) for each in part.ravel()] for part in sums)
        if not all(one.is_same(two, 0, 1) for one, two in zip(first, second, strict=True)):
            raise _refused(node, "mixes samples")
        used = {tree for each in first for _, tree in each.parts}
        return Scores(first, {tree: self._trees[tree] for tree in sorted(used)})

    def _follow(self, node: onnx.NodeProto) -> dict[str, _Value]:
        """What a node's outputs are."""
        outputs = [name for name in node.output if name]
        given = {name: self._values.get(name, _Columns()) for name in names_read(node)}
        if is_ensemble(node):
            return {outputs[0]: self._ensemble(node, given)} if outputs else {}
        made: _Value | list[_Value] | None = None
        if node.op_type in ("Shape", "Size") and node.domain in ("", "ai.onnx"):
            made = self._shape(node)
        if made is None:
            made = next((value for value in given.values() if isinstance(value, _Other)), None)
        if made is None:
            made = self._computed(node, given)
        return dict(zip(outputs, made, strict=True)) if isinstance(made, list) else dict.fromkeys(outputs, made)

    def _computed(self, node: onnx.NodeProto, given: Mapping[str, _Value]) -> _Value | list[_Value]:
        of_trees = [value for value in given.values() if isinstance(value, _OfOne | _Summed)]
        if not of_trees:
            return _Columns() if any(isinstance(value, _Columns) for value in given.values()) else self._known(node)
        if any(isinstance(value, _Columns) for value in given.values()):
            fix = "train the trees, or the rest, on the columns alone"
            return _Other(_refused(node, "computes with what trees say and with the input's columns", fix))
        trees = {value.tree for value in of_trees if isinstance(value, _OfOne)}
        if len(trees) == 1 and all(isinstance(value, _OfOne) for value in of_trees):
            return _OfOne(trees.pop())
        inputs = [self._input(name) for name in node.input]
        made = None
        if not any(name and value is None for name, value in zip(node.input, inputs, strict=True)):
            made = follow(Node(node, []), inputs, self._opsets)
        return _Other(_refused(node)) if made is None else [_Summed(each) for each in made]

    def _known(self, node: onnx.NodeProto) -> _Value | list[_Value]:
        """The outputs of a node that reads what is known."""
        try:
            inputs = [
                value.value if isinstance(value := self._values.get(name), _Known) else None for name in node.input
            ]
            made = fold(Node(node, inputs), self._opsets)
        except ModelError:
            made = None
        return _Columns() if made is None else [_Known(value) for value in made.values()]

    def _ensemble(self, node: onnx.NodeProto, given: Mapping[str, _Value]) -> _Value:
        table = node.input[0]
        if not isinstance(given[table], _Columns):
            fix = "let a stack of estimators end in a linear one"
            return _Other(_refused(node, "asks about what other trees say", fix))
        try:
            ensemble = read_ensemble(Node(node, []))
        except ModelError:
            # The lowering names the reason.
            return _Columns()
        count = len(ensemble.base)
        name, numbers = node.output[0], [self._number_of(tree, table) for tree in ensemble.trees]
        self._widths[name] = count
        if len(ensemble.trees) == 1:
            said = _rows(ensemble.trees[0], ensemble).astype(np.float32)
            self._leaves[name] = (numbers[0], said + np.array(ensemble.base, np.float32))
            return _OfOne(numbers[0])
        held = [[LeafSum(base, {}) for base in ensemble.base] for _ in range(_SAMPLES)]
        for number, tree in zip(numbers, ensemble.trees, strict=True):
            rows = _rows(tree, ensemble)
            for sample, score in np.ndindex(_SAMPLES, count):
                if rows[:, score].any():
                    held[sample][score].add((sample, number), rows[:, score])
        return _Summed(np.array(held, object))

    def _number_of(self, tree: Tree, table: str) -> int:
        """The number of a tree; trees that ask the same have one."""
        same = self._tables.same(table)
        key = (same, tuple(tree.questions), tuple(tree.yes), tuple(tree.no), tree.root)
        number = self._numbers.setdefault(key, len(self._trees))
        if number == len(self._trees):
            self._trees.append(Reader(tree, same))
        return number

    def _shape(self, node: onnx.NodeProto) -> _Value | list[_Value] | None:
        """The shape of a tensor, where it has one of two samples; None where it is not known."""
        value = self._values.get(node.input[0])
        held = value.value if isinstance(value, _Known) else self._input(node.input[0])
        if held is None:
            return None
        return self._known_shape(node, held.shape)

    def _known_shape(self, node: onnx.NodeProto, shape: tuple[int, ...]) -> _Value | list[_Value] | None:
        made = fold(Node(node, [np.zeros(shape, np.float32)]), self._opsets)
        return None if made is None else [_Known(value) for value in made.values()]

    def _input(self, name: str) -> NDArray[Any] | None:
        """A node's input as `follow` reads it; None where it is no sum."""
        value = self._values.get(name)
        if isinstance(value, _Known):
            return value.value
        if isinstance(value, _Summed):
            return value.sums
        return self._of_leaves(name) if isinstance(value, _OfOne) else None

    def _of_leaves(self, name: str) -> Sums | None:
        """What a function of one tree is, as sums over trees; None where it has no finite floats."""
        if name not in self._functions:
            self._functions[name] = self._evaluated(name)
        return self._functions[name]

    def _evaluated(self, name: str) -> Sums | None:
        value = self._values[name]
        tree = value.tree if isinstance(value, _OfOne) else -1
        found = (self._leaves[name][1], 0) if name in self._leaves else self._run(name, tree)
        if found is None:
            return None
        values, axis = found
        values = np.moveaxis(values, axis, 0)
        rest = values.shape[1:]
        size = int(np.prod(rest))
        if values.dtype.kind != "f" or not np.isfinite(values).all() or size > _MOST:
            return None
        columns = values.reshape(len(values), size).astype(np.float64).T
        sums = np.empty((_SAMPLES, size), object)
        for sample, place in np.ndindex(sums.shape):
            sums[sample, place] = LeafSum(0.0, {(sample, tree): columns[place]})
        return np.moveaxis(sums.reshape(_SAMPLES, *rest), 0, axis)

    def _run(self, name: str, tree: int) -> tuple[NDArray[np.generic], int] | None:
        """A tensor for each leaf of the tree that it depends on, and the leaves' axis."""
        nodes, given = list[onnx.NodeProto](), dict[str, NDArray[np.float32]]()
        leaves = len(self._trees[tree].tree.leaves)
        needed = {name}
        for node in reversed(self._graph.node):
            if not needed.intersection(node.output):
                continue
            output = node.output[0]
            if output in self._widths:
                number, rows = self._leaves.get(output, (-1, None))
                # Of other trees the shape alone is asked for.
                of_this = rows is not None and number == tree
                given[output] = rows if of_this and rows is not None else _zeros(leaves, self._widths[output])
                continue
            nodes.append(node)
            needed |= names_read(node)
        if not given:
            return None
        return on_leaves(nodes[::-1], self._graph.initializer, self._opsets, name, given)


def _zeros(leaves: int, width: int) -> NDArray[np.float32]:
    return np.zeros((leaves, width), np.float32)


def _rows(tree: Tree, ensemble: Ensemble) -> NDArray[np.float64]:
    """What each leaf of a tree adds to each score."""
    rows = np.zeros((len(tree.leaves), len(ensemble.base)))
    for place, leaf in enumerate(tree.leaves):
        for score, value in leaf.items():
            rows[place, score] += value
    return rows


def _number(value: LeafSum | float) -> LeafSum:
    return value if isinstance(value, LeafSum) else LeafSum(float(value), {})


def _refused(node: onnx.NodeProto, what: str | None = None, fix: str | None = None) -> UnsupportedOpError:
    of = Node(node, [])
    said = f"{of.operator} {what or 'combines trees other than by sums'}"
    fix = fix or "let the model end in a sum of its trees, or of functions of one tree each"
    refusal = Refusal(said, of.where, of.name, of.qualified_operator, fix=fix)
    return UnsupportedOpError(said, where=of.where, fix=fix, nodes=[refusal])
