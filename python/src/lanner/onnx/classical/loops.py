"""Distances of a row to the rows of a table: skl2onnx loops over the table in a ``Scan``, where one product will do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import Edit, attributes, is_of


def expand_loops(edit: Edit) -> None:
    """Let distances to constant rows be products."""
    edit.each(_distances)


def _distances(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """The squared distances of a row to those that a ``Scan`` goes through, turned."""
    if not is_of(node, ("Transpose",)) or list(attributes(node).get("perm", [])) != [1, 0]:
        return None
    loop = edit.maker(node.input[0], "Scan")
    if loop is None or len(loop.input) != 2 or loop.output[1] != node.input[0] or not _is_distance(edit, loop):
        return None
    table = edit.constant(loop.input[1])
    if table is None or table.ndim != 2:
        return None
    rows = table.astype(np.float64)
    middle = rows.mean(0)
    around = rows - middle
    own = (around**2).sum(1)
    name = node.output[0]
    names = [edit.fresh(f"{name}_{part}") for part in ("centred", "squares", "own", "products")]
    centred, squares, size, products = names
    weight = edit.hold((-2.0 * around.T).astype(np.float32), f"{name}_rows")
    term = edit.hold(own.astype(np.float32), f"{name}_sizes")
    return [
        helper.make_node("Sub", [loop.input[0], edit.hold(middle.astype(np.float32), f"{name}_middle")], [centred]),
        helper.make_node("Mul", [centred, centred], [squares], name=squares),
        edit.sum_along(squares, size, 1, keepdims=1),
        helper.make_node("Gemm", [centred, weight, term], [products], name=products),
        helper.make_node("Add", [products, size], [name], name=name),
    ]


def _is_distance(edit: Edit, loop: onnx.NodeProto) -> bool:
    """Whether a loop's body gives the sum of the squares of what the row differs by."""
    held = attributes(loop)
    body = held["body"]
    if held.get("num_scan_inputs") != 1 or any(name in held for name in _DIRECTIONS) or len(body.input) != 2:
        return False
    made = {node.output[0]: node for node in body.node}

    def source(name: str) -> str:
        while name in made and made[name].op_type == "Identity":
            name = str(made[name].input[0])
        return name

    if source(body.output[0].name) != body.input[0].name:
        return False
    total = made.get(source(body.output[1].name))
    if total is None or total.op_type != "ReduceSumSquare" or attributes(total).get("keepdims", 1):
        return False
    inner = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in body.initializer}
    given = attributes(total).get("axes")
    if given is None and len(total.input) > 1:
        axes = inner.get(total.input[1])
        axes = edit.constant(total.input[1]) if axes is None else axes
        given = None if axes is None else np.ravel(axes).tolist()
    less = made.get(source(total.input[0]))
    if given not in ([1], [-1]) or less is None or less.op_type != "Sub":
        return False
    return {source(name) for name in less.input} == {entry.name for entry in body.input}


#: Attributes of loops that go another way than from the first row to the last.
_DIRECTIONS = ("scan_input_directions", "scan_output_directions", "scan_input_axes", "scan_output_axes")
