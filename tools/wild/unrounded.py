"""Files that quantise values as they run, without that rounding: what they mean, which is what lanner computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Constants = dict[str, NDArray[Any]]
Made = Iterator[onnx.NodeProto | onnx.TensorProto]


def rounds(document: onnx.ModelProto) -> bool:
    """Whether a file quantises values by ranges that they have as it runs."""
    return any(node.op_type.startswith("DynamicQuantize") for node in document.graph.node)


def unrounded(document: onnx.ModelProto) -> onnx.ModelProto:
    """The file with floats in place of such integers.

    Raises:
        ValueError: If weights that meet them are no constants.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(document)
    graph = copy.graph
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    nodes = []
    for node in document.graph.node:
        replace = _REPLACED.get(node.op_type)
        for made in (node,) if replace is None else replace(node, held):
            if isinstance(made, onnx.TensorProto):
                graph.initializer.append(made)
            else:
                nodes.append(made)
    del graph.node[:]
    graph.node.extend(nodes)
    graph.ClearField("value_info")
    return copy


def _quantized(node: onnx.NodeProto, _held: Constants) -> Made:
    value, scale, zero = node.output
    yield helper.make_node("Identity", [node.input[0]], [value], name=node.name)
    yield numpy_helper.from_array(np.array(1, np.float32), scale)
    yield numpy_helper.from_array(np.array(0, np.uint8), zero)


def _product(node: onnx.NodeProto, held: Constants) -> Made:
    zero = held.get(node.input[3]) if len(node.input) > 3 else None
    weight = _constant(node, 1, held).astype(np.float32)
    if zero is not None:
        shape = (-1, *[1] * (weight.ndim - 1)) if node.op_type == "ConvInteger" and zero.size > 1 else zero.shape
        weight = weight - zero.astype(np.float32).reshape(shape)
    name = f"{node.output[0]}/weight"
    yield numpy_helper.from_array(weight, name)
    made = helper.make_node(
        node.op_type.removesuffix("Integer"), [node.input[0], name], list(node.output), name=node.name
    )
    made.attribute.extend(node.attribute)
    yield made


def _lstm(node: onnx.NodeProto, held: Constants) -> Made:
    inputs = list(node.input[:8])
    for place, scale in ((1, 8), (2, 10)):
        weight = _constant(node, place, held).astype(np.float32)
        # One number for each direction, or for each of its columns.
        unit, zero = (
            _constant(node, scale + at, held).astype(np.float32).reshape(len(weight), 1, -1) for at in range(2)
        )
        inputs[place] = f"{node.name}/weight{place}"
        real = (weight - zero) * unit
        yield numpy_helper.from_array(np.ascontiguousarray(real.transpose(0, 2, 1)), inputs[place])
    made = helper.make_node("LSTM", inputs, list(node.output), name=node.name)
    made.attribute.extend(node.attribute)
    yield made


def _constant(node: onnx.NodeProto, place: int, held: Constants) -> NDArray[Any]:
    if node.input[place] not in held:
        raise ValueError(f"{node.op_type} {node.name}: input {place} is no constant")
    return held[node.input[place]]


_REPLACED: dict[str, Callable[[onnx.NodeProto, Constants], Made]] = {
    "DynamicQuantizeLinear": _quantized,
    "MatMulInteger": _product,
    "ConvInteger": _product,
    "DynamicQuantizeLSTM": _lstm,
}
