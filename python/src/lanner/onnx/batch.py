"""A batch that the file fixes: samples are computed one at a time, whatever it is."""

from __future__ import annotations

import onnx

#: The name that a batch axis gets whose size was fixed.
_SYMBOL = "batch"


def free_batch(proto: onnx.ModelProto) -> None:
    """Make the batch axis of a model symbolic where it is fixed at two or more, in place.

    A first axis counts as a batch where the only input and every output have the same: a model without a batch axis has
    other outputs. The lowerings then check node by node that samples stay apart, as they do for every model; a node
    that needs the fixed size is refused.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [entry for entry in proto.graph.input if entry.name not in constants]
    sizes = {_first(entry) for entry in (*inputs, *proto.graph.output)}
    if len(inputs) != 1 or len(sizes) != 1 or min(sizes) < 2:
        return
    for entry in (*inputs, *proto.graph.output):
        entry.type.tensor_type.shape.dim[0].dim_param = _SYMBOL
    # They state the fixed size.
    del proto.graph.value_info[:]


def _first(entry: onnx.ValueInfoProto) -> int:
    """The first axis where it has a number, else 0."""
    sides = entry.type.tensor_type.shape.dim
    return int(sides[0].dim_value) if len(sides) > 1 else 0
