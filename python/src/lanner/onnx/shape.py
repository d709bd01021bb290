"""Operators that only look at the same elements in another way."""

from __future__ import annotations

import math
from dataclasses import replace

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
    shape = [math.prod(source[:split]), math.prod(source[split:])]
    return _view(node, graph, shape, "axis", 0 if shape[0] == BATCH else None)


@lowers("Reshape")
def lower_reshape(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Reshape`` to a constant shape, of which one axis is the batch.

    Raises:
        UnsupportedOpError: If the shape is not constant, does not fit, or moves elements into the batch axis.
    """
    x, target = node.wire(0), node.constant(1)
    source = x.with_batch(BATCH)
    wanted = [] if target is None else [int(side) for side in np.ravel(np.asarray(target))]
    kept, rest = x.batch, wanted.index(-1) if -1 in wanted else None
    if not node.attr("allowzero", 0):
        rest = kept if kept < len(wanted) and wanted[kept] == 0 else rest
        wanted = [source[i] if side == 0 and i < len(source) else side for i, side in enumerate(wanted)]
    known = math.prod(side for side in wanted if side != -1)
    if wanted.count(-1) == 1 and known > 0:
        wanted = [x.size // known if side == -1 else side for side in wanted]
    return _view(node, graph, wanted, "shape", _place_of_batch(x, wanted, rest))


@lowers("Squeeze", "Unsqueeze")
def lower_squeeze(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Squeeze`` of axes other than the batch, and ``Unsqueeze``.

    Raises:
        UnsupportedOpError: If the batch axis is concerned.
    """
    x = node.wire(0)
    listed = node.constant(1) if len(node.inputs) > 1 else None
    axes = None if listed is None else [int(axis) for axis in np.ravel(np.asarray(listed))]
    source = x.with_batch(BATCH)
    if node.operator == "Unsqueeze":
        rank = len(source) + len(axes or ())
        new = {axis % rank for axis in axes or ()}
        old = [axis for axis in range(rank) if axis not in new]
        if len(old) != len(source):
            raise node.unsupported("axes", f"is {axes}, which names an axis twice")
        shape = [1 if axis in new else source[old.index(axis)] for axis in range(rank)]
        return _view(node, graph, shape, "axes", old[x.batch])
    if axes is None:
        raise node.unsupported("axes", "is absent, which would drop a batch of one")
    dropped = {axis % len(source) for axis in axes}
    shape = [side for i, side in enumerate(source) if i not in dropped]
    batch = None if x.batch in dropped else x.batch - sum(axis < x.batch for axis in dropped)
    return _view(node, graph, shape, "axes", batch)


def _place_of_batch(x: Wire, shape: list[int], likely: int | None) -> int | None:
    """The axis of a new shape that can be the batch, which has as many elements of a sample before it as in x.

    Args:
        x: The value.
        shape: Its new shape, for a batch of one.
        likely: Where it is if it can be; among several places the first otherwise.

    Returns:
        None where there is none, so that samples would be mixed.
    """
    before = math.prod(x.shape[: x.batch])
    places = [axis for axis, side in enumerate(shape) if side == BATCH and math.prod(shape[:axis]) == before]
    return likely if likely in places else next(iter(places), None)


def _view(node: Node, graph: GraphBuilder, shape: list[int], attribute: str, batch: int | None) -> Wire:
    """Another view, whose batch is at an axis; None where samples would be mixed."""
    x = node.wire(0)
    if len(shape) < 2 or batch is None or math.prod(shape) != x.size:
        raise node.unsupported(attribute, f"turns {x.batch_shape} into {tuple(shape)}; samples must stay apart")
    return replace(graph.reshape(x, tuple(side for axis, side in enumerate(shape) if axis != batch)), batch=batch)
