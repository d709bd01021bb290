"""Operators that only look at the same elements in another way."""

from __future__ import annotations

import math

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.node import Node
from lanner.onnx.number_types import FLOATS
from lanner.onnx.registry import lowers


@lowers("Identity", "Dropout", "Cast")
def lower_identity(node: Node, graph: GraphBuilder) -> Wire:  # noqa: ARG001 - adds nothing
    """Lower what does nothing in inference: the result is x.

    Raises:
        UnsupportedOpError: If a Dropout trains or its mask is used, or a Cast is not to a float type.
    """
    node.single_output()
    if node.operator == "Cast" and node.attr("to", 1) not in FLOATS:
        raise node.unsupported("to", "is not a float type")
    if node.operator == "Dropout":
        training = node.constant(2)
        if training is not None and bool(np.asarray(training).any()):
            raise node.unsupported("training_mode", "is set")
    return node.wire(0)


@lowers("Flatten")
def lower_flatten(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Flatten`` to rows; more than one row per sample is refused.

    Raises:
        UnsupportedOpError: If ``axis`` would make several rows of one sample.
    """
    x = node.wire(0)
    source = (BATCH, *x.shape)
    axis = node.attr("axis", 1)
    split = axis if axis >= 0 else axis + len(source)
    return _view(node, graph, [math.prod(source[:split]), math.prod(source[split:])], "axis")


@lowers("Reshape")
def lower_reshape(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Reshape`` to a constant shape whose first axis stays the batch.

    Raises:
        UnsupportedOpError: If the shape is not constant, does not fit, or moves elements into the batch axis.
    """
    x, target = node.wire(0), node.constant(1)
    source = (BATCH, *x.shape)
    wanted = [] if target is None else [int(side) for side in np.ravel(np.asarray(target))]
    if not node.attr("allowzero", 0):
        wanted = [source[i] if side == 0 and i < len(source) else side for i, side in enumerate(wanted)]
    known = math.prod(side for side in wanted if side != -1)
    if wanted.count(-1) == 1 and known > 0:
        wanted = [x.size // known if side == -1 else side for side in wanted]
    return _view(node, graph, wanted, "shape")


@lowers("Squeeze", "Unsqueeze")
def lower_squeeze(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Squeeze`` and ``Unsqueeze`` of axes other than the batch.

    Raises:
        UnsupportedOpError: If the batch axis is concerned.
    """
    x = node.wire(0)
    listed = node.constant(1) if len(node.inputs) > 1 else None
    axes = None if listed is None else [int(axis) for axis in np.ravel(np.asarray(listed))]
    source = (BATCH, *x.shape)
    if node.operator == "Unsqueeze":
        return _view(node, graph, list(np.expand_dims(np.empty(source), tuple(axes or ())).shape), "axes")
    if axes is None:
        raise node.unsupported("axes", "is absent, which would drop a batch of one")
    dropped = {axis % len(source) for axis in axes}
    return _view(node, graph, [side for i, side in enumerate(source) if i not in dropped], "axes")


def _view(node: Node, graph: GraphBuilder, shape: list[int], attribute: str) -> Wire:
    x = node.wire(0)
    if len(shape) < 2 or shape[0] != BATCH or math.prod(shape) != x.size:
        raise node.unsupported(attribute, f"turns {x.batch_shape} into {tuple(shape)}; samples must stay apart")
    return graph.reshape(x, tuple(shape[1:]))
