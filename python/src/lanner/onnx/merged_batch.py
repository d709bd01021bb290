"""Values whose batch shares an axis with one of the sample, as where attention merges heads with samples.

Such a value has the elements of one whose batch has an axis of its own. A node that reads it is lowered as the node
that does the same with that one, provided that it does nothing along the shared axis; its result is merged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from lanner.onnx.builder import Wire
from lanner.onnx.node import Node, with_attributes
from lanner.onnx.registry import Value

#: What does a node's work on values whose batch has an axis of its own.
Opening: TypeAlias = Callable[[Node], Node]


def open_each(node: Node) -> Node:
    """An operator of each element alone."""
    return node.reading([value.apart() if isinstance(value, Wire) else value for value in node.inputs])


def open_operands(node: Node) -> Node:
    """Operands that broadcast, or stand beside each other along another axis.

    Raises:
        UnsupportedOpError: If secrets have not the same axis merged, or a constant's side there fits no sample.
    """
    x = _alike(node)
    return node.reading([_opened(node, value, x) for value in node.inputs])


def open_axis(node: Node) -> Node:
    """An operator along another axis, which it names; what it reads beside its input concerns that axis alone.

    Raises:
        UnsupportedOpError: If it is the shared axis.
    """
    x = _alike(node)
    axis = _moved(node, x, named_axis(node), "axis")
    opened = node.reading(open_each(node).inputs, with_attributes(node.proto, axis=axis))
    return open_operands(opened) if node.operator == "Concat" else opened


def open_rows(node: Node) -> Node:
    """A normalisation along all axes from one on, with constants of these.

    Raises:
        UnsupportedOpError: If the shared axis is among them.
    """
    x, axis = node.wire(0), named_axis(node)
    if -x.rank <= axis < x.rank and axis % x.rank <= x.axis:
        raise node.unsupported("axis", f"is {axis}, behind which the samples of {x.batch_shape} lie")
    return open_axis(node)


def open_reduction(node: Node) -> Node:
    """A reduction along other axes.

    Raises:
        UnsupportedOpError: If the shared axis is among them.
    """
    x = node.wire(0)
    given = node.constant(1) if len(node.inputs) > 1 else None
    axes = list(node.attr("axes", [])) if given is None else np.ravel(given).tolist()
    if not axes and not node.attr("noop_with_empty_axes", 0):
        raise node.unsupported("axes", "is absent; samples must stay apart")
    moved = [_moved(node, x, int(axis), "axes") for axis in axes]
    if given is None:
        return node.reading([x.apart()], with_attributes(node.proto, axes=moved) if axes else None)
    return node.reading([x.apart(), np.array(moved, np.int64)])


def open_product(node: Node) -> Node:
    """A product of matrices for each element of the shared axis, or of rows that lie along it with one matrix.

    Raises:
        UnsupportedOpError: If the shared axis is one of the matrices' but for such rows.
    """
    x = _alike(node)
    behind, other = x.rank - 1 - x.axis, next((value for value in node.inputs if isinstance(value, np.ndarray)), None)
    if behind == 1 and node.inputs[0] is x and other is not None and other.ndim == 2:
        return open_each(node)
    if behind < 2:
        shapes = " and ".join(
            value.batch_shape if isinstance(value, Wire) else str(_shape(value)) for value in node.inputs
        )
        raise node.unsupported("inputs", f"have shapes {shapes}; samples must stay apart")
    return open_operands(node)


def named_axis(node: Node) -> int:
    """The axis that a node names, or that it works along by default."""
    return int(node.attr("axis", 0 if node.operator in ("Split", "Gather", "ArgMax", "ArgMin") else -1))


def _alike(node: Node) -> Wire:
    """The first of the secrets, all of which have the same axis merged, counted from the last."""
    wires = [value for value in node.inputs if isinstance(value, Wire)]
    if len({(x.rank - x.axis, x.merged, x.shares) for x in wires}) > 1:
        shapes = ", ".join(x.batch_shape for x in wires)
        raise node.unsupported("inputs", f"have shapes {shapes}, which would not keep samples apart")
    return wires[0]


def _opened(node: Node, value: Value | None, x: Wire) -> Value | None:
    """An operand in the axes of x's parts, which has the shared axis with one element, or with those of a sample."""
    if isinstance(value, Wire):
        return value.apart()
    place = -1 if value is None else value.ndim - x.rank + x.axis
    if value is None or place < 0:
        return value
    side, sides = value.shape[place], x.shares
    if side not in (1, np.prod(sides)):
        index = next(index for index, other in enumerate(node.inputs) if other is value)
        raise node.unsupported(f"input {index}", f"has shape {value.shape}, which does not fit {x.batch_shape}")
    parts = sides if side > 1 else (1,) * len(sides)
    return value.reshape((*value.shape[:place], *parts, *value.shape[place + 1 :]))


def _moved(node: Node, x: Wire, axis: int, attribute: str) -> int:
    """An axis of x, counted with the parts of the shared one."""
    if not -x.rank <= axis < x.rank:
        raise node.unsupported(attribute, f"is {axis}, of {x.rank} axes")
    if axis % x.rank == x.axis:
        raise node.unsupported(attribute, f"is {axis}, along which the samples of {x.batch_shape} lie")
    place = axis % x.rank
    return place + sum(x.merged) if place > x.axis else place


def _shape(value: Value | None) -> Sequence[int] | None:
    return getattr(value, "shape", None)
