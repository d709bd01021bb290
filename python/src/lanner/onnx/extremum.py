"""Maxima and minima of several values, element by element."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import onnx

from lanner.onnx.bounds import at_least, at_most
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.operands import read_operands
from lanner.onnx.registry import lowers


@lowers("Max")
def lower_max(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Max`` of secrets and constants; the result has the shape to which all broadcast."""
    operands = read_operands(_without(node, -np.inf), graph)
    largest = _largest(graph, operands.secrets)
    if not operands.constants:
        return largest
    return at_least(graph, largest, functools.reduce(np.maximum, operands.constants))


@lowers("Min")
def lower_min(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Min`` of secrets and constants; the result has the shape to which all broadcast.

    ReLU6 written as ``min(relu(x), 6)`` is one clip.
    """
    operands = read_operands(_without(node, np.inf), graph)
    secrets = operands.secrets
    smallest = secrets[0]
    if len(secrets) > 1:
        smallest = graph.negate(_largest(graph, [graph.negate(secret) for secret in secrets]))
    if not operands.constants:
        return smallest
    bound = functools.reduce(np.minimum, operands.constants)
    if graph.is_relu(smallest) and np.unique(bound).size == 1 and bound.flat[0] >= 0.0:
        return graph.clip(smallest, float(bound.flat[0]))
    return at_most(graph, smallest, bound)


def _without(node: Node, nothing: float) -> Node:
    """The node without the constants that are never chosen."""
    chosen = [not isinstance(value, np.ndarray) or bool((value != nothing).any()) for value in node.inputs]
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.input[:] = list(itertools.compress(node.proto.input, chosen))
    return node.reading(list(itertools.compress(node.inputs, chosen)), proto)


def _largest(graph: GraphBuilder, wires: list[Wire]) -> Wire:
    """The largest of several: of two ``relu(a - b) + b``, of more a pool over them."""
    if len(wires) == 1:
        return wires[0]
    if len(wires) == 2:
        return graph.add(graph.relu(graph.subtract(wires[0], wires[1])), wires[1])
    shape, size = wires[0].shape, wires[0].size
    rows = graph.concat(tuple(graph.reshape(wire, (1, size)) for wire in wires), 0)
    columns = graph.reshape(graph.transpose(rows, (1, 0)), (size, len(wires), 1))
    return graph.reshape(graph.global_max_pool(columns), shape)
