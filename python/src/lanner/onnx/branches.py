"""Branches that the file's constants choose, opened before anything else reads the graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.errors import ModelError
from lanner.onnx.bodies import is_opened, names_read, opened
from lanner.onnx.folding import fold
from lanner.onnx.node import Node


def open_branches(proto: onnx.ModelProto) -> None:
    """Put branches in the place of each ``If`` whose condition follows from constants of the file alone, in place.

    What looks for tables, masks and trees sees their nodes then. Conditions that follow from shapes are known later.
    """
    graph = proto.graph
    if not any(_is_branch(node) for node in graph.node):
        return
    held = {tensor.name: tensor for tensor in graph.initializer}
    free = {entry.name for entry in graph.input} - held.keys()
    done: list[onnx.NodeProto] = []
    pending = deque(graph.node)
    while pending:
        node = pending.popleft()
        if _is_branch(node) and node.input[0] not in free:
            condition = _value(node.input[0], done, held, proto.opset_import)
            if condition is not None:
                pending.extendleft(reversed(list(opened(node, {node.input[0]: condition}, {}, _no_shape))))
                continue
        if free & names_read(node):
            free.update(filter(None, node.output))
        done.append(node)
    del graph.node[:]
    graph.node.extend(done)


def _no_shape(_name: str) -> None:
    """Nothing is computed here but constants."""


def _is_branch(node: onnx.NodeProto) -> bool:
    return node.op_type == "If" and is_opened(node)


def _value(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    held: dict[str, onnx.TensorProto],
    opsets: Sequence[onnx.OperatorSetIdProto],
) -> NDArray[np.generic] | None:
    """What a tensor is that depends on no input; None where that cannot be computed."""
    needed, makers = {name}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed |= names_read(node)
            makers.append(node)
    try:
        values = {each: np.asarray(numpy_helper.to_array(held[each])) for each in needed & held.keys()}
        for node in reversed(makers):
            found = fold(Node(node, [values[each] if each else None for each in node.input]), opsets)
            if found is None:
                return None
            values.update(found)
    except (KeyError, ValueError, TypeError, OSError, ModelError):
        # The walk names the node, and why.
        return None
    return values.get(name)
