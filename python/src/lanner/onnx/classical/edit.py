"""A graph that is changed in place: who makes each tensor, who reads it, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.onnx.contents import constant_nodes

#: The domain of classical machine learning.
ML = "ai.onnx.ml"

#: Operators that show the same elements in another shape or type.
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast")

#: The first opset whose sums have their axes as an input.
_AXES_AS_INPUT = 13

#: Operators of two constants of floats that are computed.
_OPERATIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}

#: What is put in the place of a node: other nodes, or None where it stays.
Change = Callable[["Edit", onnx.NodeProto], Sequence[onnx.NodeProto] | None]


class Edit:
    """A graph's nodes and constants.

    Args:
        proto: The model, whose graph is changed.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self._graph = proto.graph
        self._held = {tensor.name: tensor for tensor in proto.graph.initializer} | constant_nodes(proto.graph)
        self._taken = {name for node in proto.graph.node for name in node.output} | set(self._held)
        self._opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)
        self._index()

    def _index(self) -> None:
        self._makers = {name: node for node in self._graph.node for name in node.output if name}

    def each(self, change: Change) -> bool:
        """Ask for each node what is to take its place; whether anything does."""
        nodes, changed = list[onnx.NodeProto](), False
        for node in list(self._graph.node):
            made = change(self, node)
            changed |= made is not None
            nodes += [node] if made is None else made
        if changed:
            kept = [_copied(node) for node in nodes]
            del self._graph.node[:]
            self._graph.node.extend(kept)
            self._index()
        return changed

    def maker(self, name: str, *operators: str, domain: str = "") -> onnx.NodeProto | None:
        """The node that makes a tensor; None if it is none of these operators, where any are named."""
        node = self._makers.get(name)
        return node if node is not None and (not operators or is_of(node, operators, domain)) else None

    def behind_views(self, name: str) -> str:
        """The tensor whose elements a tensor shows, as it is or in another shape."""
        while (node := self._makers.get(name)) is not None and is_of(node, VIEWS):
            name = node.input[0]
        return name

    def constant(self, name: str) -> NDArray[np.generic] | None:
        """What a constant tensor of the file holds; None if it is none."""
        held = self._held.get(name)
        if held is not None:
            return np.asarray(numpy_helper.to_array(held))
        node = self._makers.get(name)
        operation = None if node is None or node.domain not in ("", "ai.onnx") else _OPERATIONS.get(node.op_type)
        if node is None or operation is None:
            return None
        both = [self.constant(each) for each in node.input]
        floats = [each for each in both if each is not None and each.dtype.kind == "f"]
        return np.asarray(operation(*floats)) if len(floats) == 2 else None

    def number(self, name: str) -> float | None:
        """The number that a constant of one element holds."""
        held = self.constant(name)
        return float(held.ravel()[0]) if held is not None and held.size == 1 and held.dtype.kind in "fiu" else None

    def hold(self, values: NDArray[Any], like: str) -> str:
        """Add a constant; the name is made of another one."""
        name = self.fresh(like)
        self._graph.initializer.append(numpy_helper.from_array(values, name))
        self._held[name] = self._graph.initializer[-1]
        return name

    def sum_along(self, name: str, output: str, axis: int, keepdims: int = 0) -> onnx.NodeProto:
        """A sum along an axis, as the file's opset writes it."""
        held: dict[str, Any] = {"keepdims": keepdims, "name": output}
        if self._opset < _AXES_AS_INPUT:
            return helper.make_node("ReduceSum", [name], [output], axes=[axis], **held)
        along = self.hold(np.array([axis], np.int64), f"{output}_axis")
        return helper.make_node("ReduceSum", [name, along], [output], **held)

    def fresh(self, like: str) -> str:
        """A name that no tensor has."""
        name, count = like, 1
        while name in self._taken:
            name, count = f"{like}_{count}", count + 1
        self._taken.add(name)
        return name


def is_of(node: onnx.NodeProto, operators: Iterable[str], domain: str = "") -> bool:
    """Whether a node is one of these operators of a domain."""
    return node.op_type in operators and (node.domain or "ai.onnx") == (domain or "ai.onnx")


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name; text stays bytes."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def axes_of(edit: Edit, node: onnx.NodeProto) -> list[int] | None:
    """The axes that a reduction names; None where it names none or they are not known."""
    held = attributes(node).get("axes")
    if held is None and len(node.input) > 1:
        given = edit.constant(node.input[1])
        held = None if given is None else given.ravel().tolist()
    return None if held is None else [int(axis) for axis in held]


def _copied(node: onnx.NodeProto) -> onnx.NodeProto:
    # What is in the graph would be gone with it.
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy
