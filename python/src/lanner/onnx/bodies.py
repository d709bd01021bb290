"""Branches and loops over graphs of their own.

Their nodes take the place of the ``If`` or the ``Loop``, under names of their own: those of the branch that a constant
chooses, those of both branches and a choice of each output where the condition is secret, and the steps of a loop whose
number is known. A body reads names of the graph around it without listing them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.errors import UnsupportedOpError
from lanner.onnx.node import Node

#: Operators whose body takes their place.
OPENED = ("If", "Loop")

#: The most steps of a loop, and the most nodes of all of them: more than a graph may have operations.
MAX_STEPS = 4096
MAX_NODES = 1 << 15


def names_read(node: onnx.NodeProto) -> set[str]:
    """The tensors that a node reads, those that its bodies take from the graph around them included."""
    read = {name for name in node.input if name}
    for body in bodies_of(node):
        own = {entry.name for entry in (*body.input, *body.initializer)}
        for inner in body.node:
            read |= names_read(inner) - own
            own |= set(inner.output)
        read |= {entry.name for entry in body.output} - own
    return read


def with_bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for body in bodies_of(node):
            yield from with_bodies(body.node)


def is_opened(proto: onnx.NodeProto) -> bool:
    """Whether a node is a branch or a loop whose body may take its place."""
    return proto.op_type in OPENED and proto.domain in ("", "ai.onnx")


def ways(proto: onnx.NodeProto) -> list[str]:
    """The inputs that choose a branch, or how often a loop runs."""
    return [name for name in proto.input[: 1 if proto.op_type == "If" else 2] if name]


def opened(
    proto: onnx.NodeProto,
    values: Mapping[str, object],
    changing: Mapping[str, object],
    shape: Callable[[str], tuple[int, ...] | None],
    announce: Callable[[Sequence[onnx.NodeProto]], object] = list,
) -> Iterator[onnx.NodeProto]:
    """The nodes that take a branch's or a loop's place, each to be computed before the next is asked for.

    Args:
        proto: The ``If`` or ``Loop``.
        values: What is known of each tensor, which grows as nodes are computed.
        changing: The constants that depend on the size of the batch.
        shape: Tells the shape of a tensor that was computed, with a batch of one; None where it is not known.
        announce: Is told all nodes of a body, or of a step, before the first of them.

    Raises:
        UnsupportedOpError: If a loop's condition or the number of steps is not known, or they are too many; if a secret
            condition is of several elements, or chooses between outputs of two shapes.
    """
    node = Node(proto, [])
    known = _Known(node, values, changing, shape, announce)
    yield from _branch(node, known) if proto.op_type == "If" else _loop(node, known)


def _branch(node: Node, known: _Known) -> Iterator[onnx.NodeProto]:
    condition = node.proto.input[0]
    if known.is_secret(condition):
        yield from _choice(node, condition, known)
        return
    chosen = known.truth(condition, "the condition")
    body = _attribute(node, "then_branch" if chosen else "else_branch")
    copy = _Copy(body, f"{node.name}/")
    named = list(_same(copy.outputs, node.proto.output))
    known.announce([*copy.nodes, *named])
    yield from [*copy.nodes, *named]


def _choice(node: Node, condition: str, known: _Known) -> Iterator[onnx.NodeProto]:
    """Both branches, as nobody may learn which is taken, and for each output the choice between theirs."""
    sides = known.shape(condition)
    if sides is not None and math.prod(sides) != 1:
        raise node.unsupported("the condition", f"has shape {sides}; it must be a single truth value")
    both = [_Copy(_attribute(node, f"{way}_branch"), f"{node.name}/{way}/") for way in ("then", "else")]
    ends = list(zip(both[0].outputs, both[1].outputs, node.proto.output, strict=True))
    choices = [helper.make_node("Where", [condition, taken, other], [name]) for taken, other, name in ends if name]
    known.announce([*both[0].nodes, *both[1].nodes, *choices])
    for copy in both:
        yield from copy.nodes
    for taken, other, name in ends:
        if not name:
            continue
        shape = known.shape(taken)
        if shape != known.shape(other):
            what = f"is of shape {shape} in one branch and {known.shape(other)} in the other; the condition is secret"
            raise node.unsupported(f"output {name}", what, "let both branches give the same shape")
        asked = condition
        if shape is not None and sides is not None and len(shape) != len(sides):
            asked, ones = f"{name}/condition", f"{name}/sides"
            rank = numpy_helper.from_array(np.array([-1, *(1 for _ in shape[1:])], np.int64))
            yield helper.make_node("Constant", [], [ones], ones, value=rank)
            yield helper.make_node("Reshape", [condition, ones], [asked], asked)
        yield helper.make_node("Where", [asked, taken, other], [name], node.name)


def _loop(node: Node, known: _Known) -> Iterator[onnx.NodeProto]:
    body = _attribute(node, "body")
    count, condition, *states = map(str, node.proto.input)
    steps = known.count(count) if count else None
    goes = known.truth(condition, "the first condition") if condition else True
    scans: list[list[str]] = [[] for _ in body.output[1 + len(states) :]]
    if steps is not None and goes and (steps > MAX_STEPS or steps * len(body.node) > MAX_NODES):
        raise node.unsupported("input 0", f"is {steps} steps; {MAX_STEPS}, of {MAX_NODES} nodes in all, are supported")
    at = 0
    while goes and (steps is None or at < steps):
        if at >= MAX_STEPS or at * len(body.node) > MAX_NODES:
            raise node.unsupported("the condition", f"lets it run for more than {at} steps")
        prefix = f"{node.name}/{at}/"
        # No tensor of the body goes by such a name.
        numbers = {f"{prefix}#step": np.array(at, np.int64), f"{prefix}#goes": np.array(True)}
        for name, value in numbers.items():
            yield helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(value))
        copy = _Copy(body, prefix, [*numbers, *states])
        carried = list(_same(copy.outputs[1 : 1 + len(states)], states))
        given = list(_same(copy.outputs[1 : 1 + len(node.proto.output)], node.proto.output))
        known.announce([*copy.nodes, *carried, *given])
        yield from copy.nodes
        goes = known.truth(copy.outputs[0], "the condition")
        states = copy.outputs[1 : 1 + len(states)]
        for scan, name in zip(scans, copy.outputs[1 + len(states) :], strict=True):
            scan.append(name)
        at += 1
    yield from _same(states, node.proto.output[: len(states)])
    for scan, name in zip(scans, node.proto.output[len(states) :], strict=False):
        if name:
            yield from _stacked(node, scan, name)


def _stacked(node: Node, scan: Sequence[str], name: str) -> Iterator[onnx.NodeProto]:
    """What each step gives, along a new first axis."""
    if not scan:
        raise node.unsupported(f"output {name}", "is empty, as no step is run")
    axis = f"{name}/axis"
    yield helper.make_node("Constant", [], [axis], axis, value=numpy_helper.from_array(np.array([0], np.int64)))
    rows = [f"{name}/row{index}" for index in range(len(scan))]
    for each, row in zip(scan, rows, strict=True):
        yield helper.make_node("Unsqueeze", [each, axis], [row], row)
    yield helper.make_node("Concat", rows, [name], name, axis=0)


def _same(given: Sequence[str], wanted: Sequence[str]) -> Iterator[onnx.NodeProto]:
    for source, name in zip(given, wanted, strict=True):
        if name:
            yield helper.make_node("Identity", [source], [name], name)


class _Known:
    """Constants that say which way is taken."""

    def __init__(
        self,
        node: Node,
        values: Mapping[str, object],
        changing: Mapping[str, object],
        shape: Callable[[str], tuple[int, ...] | None],
        announce: Callable[[Sequence[onnx.NodeProto]], object],
    ) -> None:
        self.values = values
        self.shape = shape
        self.announce = announce
        self._node = node
        self._changing = changing

    def is_secret(self, name: str) -> bool:
        """Whether a tensor depends on the input's numbers."""
        return name not in self._changing and not isinstance(self.values.get(name), np.ndarray)

    def truth(self, name: str, role: str) -> bool:
        """A condition."""
        return bool(np.ravel(self._constant(name, role))[0])

    def count(self, name: str) -> int:
        """A number of steps."""
        return int(np.ravel(self._constant(name, "the number of steps"))[0])

    def _constant(self, name: str, role: str) -> NDArray[np.generic]:
        value = self.values.get(name)
        if name in self._changing:
            raise self._refused(role, "depends on the size of the batch; samples are computed one at a time")
        if not isinstance(value, np.ndarray):
            raise self._refused(role, "depends on the input; only as many steps as a constant says are supported")
        return value

    def _refused(self, role: str, reason: str) -> UnsupportedOpError:
        fix = "export the model with its steps unrolled, and with the branch that is taken alone"
        return self._node.unsupported(role, reason, fix)


class _Copy:
    """A body under names of its own.

    Attributes:
        nodes: Its initializers as constants, and its nodes.
        outputs: The names of its outputs.
    """

    def __init__(self, body: onnx.GraphProto, prefix: str, inputs: Sequence[str] = ()) -> None:
        names = dict(zip((entry.name for entry in body.input), inputs, strict=True))
        self.nodes: list[onnx.NodeProto] = []
        for tensor in body.initializer:
            names[tensor.name] = prefix + tensor.name
            name = names[tensor.name]
            self.nodes.append(helper.make_node("Constant", [], [name], name, value=tensor))
        names.update({name: prefix + name for node in body.node for name in node.output if name})
        self.nodes += [_renamed(node, names, prefix) for node in _needed(body)]
        self.outputs = [names.get(entry.name, entry.name) for entry in body.output]


def _needed(body: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes that a body's outputs depend on."""
    needed, kept = {entry.name for entry in body.output}, []
    for node in reversed(body.node):
        if needed.intersection(node.output):
            needed |= names_read(node)
            kept.append(node)
    return kept[::-1]


def _renamed(node: onnx.NodeProto, names: Mapping[str, str], prefix: str) -> onnx.NodeProto:
    """A node that reads and makes tensors under other names; so do its bodies."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = prefix + (node.name or next(filter(None, node.output), node.op_type))
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for body in bodies_of(copy):
        own = {entry.name for entry in (*body.input, *body.initializer)}
        own |= {name for inner in body.node for name in inner.output}
        outer = {name: other for name, other in names.items() if name not in own}
        inner = [_renamed(each, outer, "") for each in body.node]
        del body.node[:]
        body.node.extend(inner)
        for entry in body.output:
            entry.name = outer.get(entry.name, entry.name)
    return copy


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds."""
    held = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return [*held, *(body for attribute in node.attribute for body in attribute.graphs)]


def _attribute(node: Node, name: str) -> onnx.GraphProto:
    return node.attr(name, onnx.GraphProto())
