"""Values whose samples do not lie along the first axis, as in recurrent networks, where steps come first.

A wire has no batch axis, so that another place for it moves nothing. A node that reads such a value is lowered as the
node that does the same where the batch comes first: its axes are counted anew, and the place is noted in its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.batch_size import gathers_rows
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.merged_batch import (
    Opening,
    named_axis,
    open_axis,
    open_each,
    open_operands,
    open_product,
    open_reduction,
    open_rows,
)
from lanner.onnx.node import Node, with_attributes
from lanner.onnx.registry import RECURRENT, Lowering, Value


def lower_anywhere(node: Node, graph: GraphBuilder, lowering: Lowering) -> Value | tuple[Value | None, ...]:
    """Lower a node whose inputs have their batch at any place.

    Raises:
        UnsupportedOpError: If the operator needs it first, or works along it; and as the lowering.
    """
    operator = node.qualified_operator
    if operator in _OWN or gathers_rows(node):
        return lowering(node, graph)
    if any(any(x.merged) for x in wires(node)):
        return _lower_merged(node, graph, lowering)
    displaced = [index for index, x in enumerate(node.inputs) if isinstance(x, Wire) and x.batch]
    if not displaced or operator in RECURRENT:
        return lowering(node, graph)
    rewrite = _REWRITES.get(operator)
    if rewrite is None:
        shape = wires(node)[0].batch_shape
        raise node.unsupported(
            f"input {displaced[0]}", f"has shape {shape}; samples must come first", "transpose it before"
        )
    rewritten, batch = rewrite(node, graph)
    values = lowering(rewritten, graph)
    return tuple(_placed(value, batch) for value in (values if isinstance(values, tuple) else (values,)))


def _lower_merged(node: Node, graph: GraphBuilder, lowering: Lowering) -> tuple[Value | None, ...]:
    """Lower a node that reads values whose batch shares an axis."""
    index, x = next((index, x) for index, x in enumerate(node.inputs) if isinstance(x, Wire) and any(x.merged))
    opening = _OPENINGS.get(node.qualified_operator)
    if opening is None:
        reason = f"has shape {x.batch_shape}; samples must have an axis of their own"
        raise node.unsupported(f"input {index}", reason, "reshape it before")
    lowered = lower_anywhere(opening(node), graph, lowering)
    values = lowered if isinstance(lowered, tuple) else (lowered,)
    return tuple(replace(value, merged=x.merged) if isinstance(value, Wire) else value for value in values)


def wires(node: Node) -> list[Wire]:
    """The inputs that depend on the secret."""
    return [value for value in node.inputs if isinstance(value, Wire)]


def _placed(value: Value | None, batch: int) -> Value | None:
    return replace(value, batch=batch) if isinstance(value, Wire) else value


#: What does a node's work with the batch first, and where its result has it.
Rewrite = Callable[[Node, GraphBuilder], tuple[Node, int]]


def _each_element(node: Node, graph: GraphBuilder) -> tuple[Node, int]:  # noqa: ARG001 - as every rewrite
    """An operator of each element, or of rows, alone."""
    return Node(node.proto, [_first(value) for value in node.inputs]), wires(node)[0].batch


def _operands(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """Operands that broadcast: those of fewer axes get more in front."""
    rank = max(len(x.shape) + 1 for x in wires(node))
    places = {x.batch + rank - len(x.shape) - 1 for x in wires(node)}
    if len(places) > 1:
        shapes = ", ".join(x.batch_shape for x in wires(node))
        raise node.unsupported("inputs", f"have shapes {shapes}, which would not keep samples apart")
    (place,) = places
    inputs: list[Value | None] = []
    for value in node.inputs:
        if isinstance(value, Wire):
            inputs.append(graph.reshape(value.plain(), (1,) * (rank - len(value.shape) - 1) + value.shape))
        elif value is None or value.ndim > rank:
            inputs.append(value)
        else:
            inputs.append(np.moveaxis(value.reshape((1,) * (rank - value.ndim) + value.shape), place, 0))
    return Node(node.proto, inputs), place


def _matmul(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """A product of rows with one matrix."""
    x, weight = node.inputs[:2]
    if not isinstance(x, Wire) or not isinstance(weight, np.ndarray) or weight.ndim > 2 or x.batch == len(x.shape):
        shown = (
            value.batch_shape if isinstance(value, Wire) else str(getattr(value, "shape", None))
            for value in (x, weight)
        )
        shapes = " and ".join(shown)
        raise node.unsupported("inputs", f"have shapes {shapes}; samples must stay apart")
    return _each_element(node, graph)


def _axis(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """An operator along an axis that it names; constants beside its input have the input's axes."""
    x = wires(node)[0]
    if {other.batch for other in wires(node)} != {x.batch}:
        shapes = ", ".join(other.batch_shape for other in wires(node))
        raise node.unsupported("inputs", f"have shapes {shapes}; samples must lie along one axis")
    proto = with_attributes(node.proto, axis=_renumbered(node, x, named_axis(node)))
    moved, batch = _each_element(Node(proto, node.inputs), graph)
    if node.operator == "Concat":
        beside = [
            np.moveaxis(value, batch, 0) if isinstance(value, np.ndarray) and value.ndim == len(x.shape) + 1 else value
            for value in moved.inputs
        ]
        return Node(proto, beside), batch
    return moved, batch


def _rows(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """A normalisation along all axes from one on, behind the batch."""
    x, axis = node.wire(0), named_axis(node)
    rank = len(x.shape) + 1
    if -rank <= axis < rank and axis % rank <= x.batch:
        raise node.unsupported("axis", f"is {axis}, behind which the samples of {x.batch_shape} lie")
    return _axis(node, graph)


def _gather(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """Indices in place of an axis; one behind the batch leaves that where it is."""
    moved, batch = _axis(node, graph)
    axis = named_axis(node) % (len(node.wire(0).shape) + 1)
    return moved, batch if axis > batch else batch - 1 + _listed(node, 1).ndim


def _slice(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    x, starts, axes = node.wire(0), np.ravel(_listed(node, 1)), node.constant(3) if len(node.inputs) > 3 else None
    listed = range(len(starts)) if axes is None else np.ravel(axes).tolist()
    moved, batch = _each_element(node, graph)
    inputs = [*moved.inputs, None][:4] + list(moved.inputs[4:])
    inputs[3] = np.array([_renumbered(node, x, int(axis), along=True) for axis in listed], np.int64)
    return Node(node.proto, inputs), batch


def _reduce(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    x = node.wire(0)
    given = node.constant(1) if len(node.inputs) > 1 else None
    axes = list(node.attr("axes", [])) if given is None else np.ravel(given).tolist()
    moved, batch = _each_element(node, graph)
    if not axes:
        # Refused, or nothing to do.
        return moved, batch
    renumbered = [_renumbered(node, x, int(axis), "axes") for axis in axes]
    dropped = 0 if node.attr("keepdims", 1) else sum(axis % (len(x.shape) + 1) < batch for axis in axes)
    proto = node.proto if given is not None else with_attributes(node.proto, axes=renumbered)
    return Node(proto, [*moved.inputs[:1], np.array(renumbered, np.int64)] if given is not None else moved.inputs), (
        batch - dropped
    )


def _arg(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """An operator that leaves one element of an axis that it names, or drops the axis."""
    moved, batch = _axis(node, graph)
    axis = named_axis(node) % (len(node.wire(0).shape) + 1)
    return moved, batch - (not node.attr("keepdims", 1) and axis < batch)


def _sides(node: Node, graph: GraphBuilder) -> tuple[Node, int]:
    """A shape, or a count for each axis."""
    moved, batch = _each_element(node, graph)
    sides = [int(side) for side in np.ravel(_listed(node, 1))]
    sides = [1] * (len(node.wire(0).shape) + 1 - len(sides)) + sides
    place = batch + len(sides) - len(node.wire(0).shape) - 1
    ordered = [sides[place], *sides[:place], *sides[place + 1 :]]
    return Node(node.proto, [*moved.inputs[:1], np.array(ordered, np.int64)]), place


def _renumbered(node: Node, x: Wire, axis: int, attribute: str = "axis", *, along: bool = False) -> int:
    """An axis, counted with the batch first.

    Args:
        node: The node.
        x: Its input.
        axis: The axis as the node counts.
        attribute: What names it.
        along: Whether the lowering sees to it that samples stay apart.
    """
    rank = len(x.shape) + 1
    if not -rank <= axis < rank:
        raise node.unsupported(attribute, f"is {axis}, of {rank} axes")
    if axis % rank == x.batch and not along:
        raise node.unsupported(attribute, f"is {axis}, along which the samples of {x.batch_shape} lie")
    place = axis % rank
    return 0 if place == x.batch else place + (place < x.batch)


def _first(value: Value | None) -> Value | None:
    return value.plain() if isinstance(value, Wire) else value


def _listed(node: Node, index: int) -> NDArray[np.generic]:
    value = node.constant(index)
    return np.zeros(0) if value is None else np.asarray(value)


#: Operators whose lowerings look to the place themselves.
_OWN = {
    *("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gemm", "GatherND", "ScatterND", "IsNaN", "IsInf"),
    "BatchNormalization",
}

_REWRITES: dict[str, Rewrite] = {
    **dict.fromkeys(("Identity", "Cast", "Dropout", "Relu", "LeakyRelu", "Abs", "Neg", "Clip"), _each_element),
    **dict.fromkeys(("HardSigmoid", "HardSwish", "ThresholdedRelu", "Sigmoid", "Tanh", "Exp", "Erf"), _each_element),
    **dict.fromkeys(
        ("Gelu", "Swish", "Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Log", "Sin", "Cos"), _each_element
    ),
    **dict.fromkeys(("Sqrt", "Reciprocal", "com.microsoft.Gelu", "com.microsoft.QuickGelu"), _each_element),
    **dict.fromkeys(("Add", "Sum", "Sub", "Mul", "Div", "Mean", "Max", "Min", "PRelu", "Pow", "Where"), _operands),
    **dict.fromkeys(("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "And", "Or", "Xor"), _operands),
    **dict.fromkeys(("Not", "Sign", "Shrink", "QuantizeLinear", "DequantizeLinear"), _each_element),
    **dict.fromkeys(("Concat", "Split", "Softmax", "LogSoftmax", "LpNormalization"), _axis),
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceMax", "ReduceMin"), _reduce),
    **dict.fromkeys(("Expand", "Tile"), _sides),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _rows),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    "MatMul": _matmul,
    "TopK": _axis,
    "Gather": _gather,
    "Slice": _slice,
}

#: How what these do along other axes is done where the batch shares one.
_OPENED: dict[Rewrite, Opening] = {
    _each_element: open_each,
    _operands: open_operands,
    _axis: open_axis,
    _rows: open_rows,
    _reduce: open_reduction,
    _matmul: open_product,
}

_OPENINGS = {operator: _OPENED[rewrite] for operator, rewrite in _REWRITES.items() if rewrite in _OPENED}
