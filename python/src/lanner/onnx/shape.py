"""Operators that only look at the same elements in another way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.onnx.batch_size import OTHER
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.node import FOR_PREDICTION, Node
from lanner.onnx.number_types import FLOATS
from lanner.onnx.registry import lowers
from lanner.onnx.whole import is_whole, is_wide


@lowers("Identity", "Dropout", "Cast")
def lower_identity(node: Node, graph: GraphBuilder) -> Wire:
    """Lower what does nothing in inference: the result is x. A Cast to truth values is 1 where x is not 0.

    Raises:
        UnsupportedOpError: If a Dropout trains or its mask is used, or a Cast rounds.
    """
    node.single_output()
    if node.operator == "Cast":
        return _cast(node, graph)
    if node.operator == "Dropout":
        training = node.constant(2)
        if training is not None and bool(np.asarray(training).any()):
            raise node.unsupported("training_mode", "is set", FOR_PREDICTION)
    return node.wire(0)


def _cast(node: Node, graph: GraphBuilder) -> Wire:
    x, to = node.wire(0), node.attr("to", 1)
    if to == onnx.TensorProto.BOOL:
        return graph.add(graph.step(x), graph.step(graph.negate(x)))
    if to in FLOATS:
        return x
    if not is_wide(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(to))) or not is_whole(graph, x):
        what = "is not a float type, and would round the values or wrap them"
        raise node.unsupported("to", what, "cast to a float type")
    return x


@lowers("Flatten")
def lower_flatten(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Flatten`` to rows; more than one row per sample is refused.

    Raises:
        UnsupportedOpError: If ``axis`` would make several rows of one sample.
    """
    x = node.wire(0)
    axis = node.attr("axis", 1)
    if x.is_column and axis == 1:
        return x.plain()
    if x.batch or any(x.merged):
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; samples must come first", "transpose it before")
    source = (BATCH, *x.shape)
    split = axis if axis >= 0 else axis + len(source)
    shape = [math.prod(source[:split]), math.prod(source[split:])]
    return _view(node, graph, shape, "axis", 0)


@lowers("Reshape")
def lower_reshape(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Reshape`` to a constant shape, of which one axis is the batch, or holds it with neighbours of it.

    Raises:
        UnsupportedOpError: If the shape is not constant, does not fit, or leaves elements of two samples in turns.
    """
    x, target = node.wire(0), node.constant(1)
    wanted = _resolved(node, target, x.with_batch(BATCH))
    for_two = node.for_two or {}
    other = for_two.get(node.proto.input[1], target)
    two = _resolved(node, other, x.with_batch(OTHER))
    computed = other is not target and math.prod(two) == OTHER * x.size
    grown = _doubled(wanted, two)
    if node.for_two is None and x.axis < len(wanted) and wanted[x.axis] == BATCH and _parts(x, wanted, x.axis):
        # In a file for one sample a -1 is what is left, as one head is, and no batch.
        grown = x.axis
    place = _place_of_batch(x, wanted, grown, computed=computed)
    if place is None and node.for_two is None:
        place = _supposed_place(x, wanted)
    return _view(node, graph, wanted, "shape", place)


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
        return _view(node, graph, shape, "axes", old[x.axis])
    if axes is None:
        raise node.unsupported("axes", "is absent, which would drop a batch of one")
    dropped = {axis % len(source) for axis in axes}
    shape = [side for i, side in enumerate(source) if i not in dropped]
    batch = None if x.axis in dropped else x.axis - sum(axis < x.axis for axis in dropped)
    return _view(node, graph, shape, "axes", batch)


def _resolved(node: Node, target: NDArray[np.generic] | None, source: tuple[int, ...]) -> list[int]:
    """The shape that a Reshape asks for, of a tensor of a shape."""
    wanted = [] if target is None else [int(side) for side in np.ravel(np.asarray(target))]
    if not node.attr("allowzero", 0):
        wanted = [source[i] if side == 0 and i < len(source) else side for i, side in enumerate(wanted)]
    known = math.prod(side for side in wanted if side != -1)
    if wanted.count(-1) == 1 and known > 0:
        wanted = [math.prod(source) // known if side == -1 else side for side in wanted]
    return wanted


def _doubled(one: list[int], two: list[int]) -> int | None:
    """The axis that holds the batch: the only one that grows with it, from a shape for one sample to that for two."""
    grown = [axis for axis, (side, other) in enumerate(zip(one, two, strict=False)) if side != other]
    (axis,) = grown if len(grown) == 1 and len(one) == len(two) else (None,)
    return axis if axis is not None and two[axis] == OTHER * one[axis] else None


def _place_of_batch(x: Wire, shape: list[int], told: int | None, *, computed: bool) -> int | None:
    """The axis of a new shape that holds the batch.

    Args:
        x: The value.
        shape: Its new shape, for a batch of one.
        told: The axis that grows with the batch, if that is known.
        computed: Whether the file computes the shape from the batch's size, so that it is right for every size. Others
            may be meant for one sample alone: an axis of one element is the batch's then where it can be.

    Returns:
        None where there is none, so that samples would be mixed.
    """
    own = [axis for axis, side in enumerate(shape) if side == BATCH and _parts(x, shape, axis)]
    if own and not computed:
        return told if told in own else own[0]
    return told if told is not None and _parts(x, shape, told) else None


def _supposed_place(x: Wire, shape: list[int]) -> int | None:
    """The axis that holds a batch of one of which the new shape tells nothing, so that any that can hold it is right.

    The first axis of a matrix, which has rows of samples for a layer; of other shapes the last axis that can, which has
    parts of each sample beside each other, as heads of attention.
    """
    places = [axis for axis in range(len(shape)) if _parts(x, shape, axis)]
    return places[0 if len(shape) == 2 else -1] if places else None


def _parts(x: Wire, shape: list[int], axis: int) -> tuple[int, int] | None:
    """The elements of a sample that share the batch's axis, the slower and the faster ones.

    Returns:
        None if the axis cannot hold the batch, which has as many elements of a sample before it as in x.
    """
    before, ahead = math.prod(x.shape[: x.batch]), math.prod(shape[:axis])
    if min(shape) < 1 or math.prod(shape) != x.size or before % ahead or shape[axis] % (before // ahead):
        return None
    return before // ahead, shape[axis] // (before // ahead)


def _view(node: Node, graph: GraphBuilder, shape: list[int], attribute: str, batch: int | None) -> Wire:
    """Another view, of which an axis holds the batch; None where samples would be mixed."""
    x = node.wire(0)
    parts = None if batch is None else _parts(x, shape, batch)
    if shape == [1] and x.size == 1 and batch == 0:
        return graph.reshape(x.plain(), (1,)).as_column()
    if not shape or batch is None or parts is None:
        raise node.unsupported(attribute, f"turns {x.batch_shape} into {tuple(shape)}; samples must stay apart")
    slower, faster = parts
    sample = (*shape[:batch], *(side for side in parts if side > 1), *shape[batch + 1 :])
    view = graph.reshape(x, sample)
    return replace(view, batch=batch + (slower > 1), merged=(slower > 1, faster > 1))
