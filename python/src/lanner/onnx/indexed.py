"""Elements picked by two rows of indices, ``x[rows, columns]``, as the first exporter of torch.onnx writes them.

It flattens x, and gathers at ``rows * size + columns``; masks of transformers are read so, where the rows number the
samples. A file is changed before it is walked: one GatherND picks, which keeps samples apart.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper


def gather_at_pairs(proto: onnx.ModelProto) -> None:
    """Put a GatherND in the place of each Gather from the rows that a Flatten makes of the first two axes."""
    graph = proto.graph
    makers = {name: node for node in graph.node for name in node.output}
    flat = {id(node): makers[node.input[0]] for node in graph.node if _picks_from_flat(node, makers)}
    if not flat:
        return
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        if id(node) in flat:
            graph.node.extend(_pairs(graph, node, flat[id(node)].input[0]))
        else:
            graph.node.append(node)
    _skip_rows(graph, {node.output[0] for node in nodes if id(node) in flat}, makers)


def _picks_from_flat(node: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> bool:
    if node.op_type != "Gather" or node.domain or _attribute(node, "axis", 0) != 0:
        return False
    maker = makers.get(node.input[0])
    return maker is not None and maker.op_type == "Flatten" and not maker.domain and _attribute(maker, "axis", 1) == 2


def _pairs(graph: onnx.GraphProto, node: onnx.NodeProto, source: str) -> list[onnx.NodeProto]:
    """The nodes that pick the same, of which the first axis of the source is one."""
    base = node.name or node.output[0]
    nodes: list[onnx.NodeProto] = []

    def add(operator: str, *inputs: str, output: str = "", **attributes: int) -> str:
        name = f"{base}/{operator}_{len(nodes)}"
        node = helper.make_node(operator, inputs, [output or name], name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        nodes.append(node)
        return output or name

    def constant(value: int) -> str:
        name = f"{base}/pairs_{value}"
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
        return name

    indices, one, last = node.input[1], constant(1), constant(-1)
    size = add("Gather", add("Shape", source), one, axis=0)
    parts = (add("Unsqueeze", add(operator, indices, size), last) for operator in ("Div", "Mod"))
    picked = add("GatherND", source, add("Concat", *parts, axis=-1))
    # Behind the indices, what is left of the source's axes is one axis.
    shape = add("Concat", add("Shape", indices), last, axis=0)
    add("Reshape", picked, shape, output=node.output[0])
    return nodes


def _skip_rows(graph: onnx.GraphProto, picked: set[str], makers: Mapping[str, onnx.NodeProto]) -> None:
    """Let a Reshape of what was picked read it as it is, not all elements in one row, where samples have no axis."""
    constants = {tensor.name: tensor for tensor in graph.initializer}

    def held(name: str) -> list[int] | None:
        maker = makers.get(name)
        if maker is not None and maker.op_type == "Constant":
            value = _attribute(maker, "value", None)
            return np.ravel(numpy_helper.to_array(value)).tolist() if isinstance(value, onnx.TensorProto) else None
        return np.ravel(numpy_helper.to_array(constants[name])).tolist() if name in constants else None

    for node in graph.node:
        row = makers.get(node.input[0]) if node.op_type == "Reshape" else None
        if row is None or row.op_type != "Reshape" or row.input[0] not in picked or held(row.input[1]) != [-1]:
            continue
        # A side of 0 is the side of what is read, which would be another.
        if 0 not in (held(node.input[1]) or []):
            node.input[0] = row.input[0]


def _attribute(node: onnx.NodeProto, name: str, usual: object) -> object:
    return next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == name), usual)
