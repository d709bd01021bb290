"""Operators of onnxruntime's own that hold several of ONNX's, as its optimiser writes transformers: taken apart.

A file is changed before it is walked, so that masks, tables and shapes are those of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.onnx.opaque import InferredShapes

_DOMAIN = "com.microsoft"


def take_apart(proto: onnx.ModelProto) -> None:
    """Put the parts of such operators in their places; those in a form that is not known stay, and are refused."""
    left = sum(map(_is_fused, proto.graph.node))
    # Shapes behind one of them are known once that is taken apart.
    while left and (still := _take_some_apart(proto)) < left:
        left = still


def _take_some_apart(proto: onnx.ModelProto) -> int:
    """Take those apart of which enough shapes are known; how many are left."""
    graph = proto.graph
    read = {name for node in graph.node for name in node.input if name} | {entry.name for entry in graph.output}
    shapes = InferredShapes(proto).shapes | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        parts = _Parts(graph, node, shapes, read)
        graph.node.extend(parts.nodes if _is_fused(node) and _PARTS[node.op_type](parts) else [node])
    return sum(map(_is_fused, graph.node))


def _is_fused(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _PARTS


class _Parts:
    """What an operator is made of."""

    def __init__(
        self, graph: onnx.GraphProto, node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], read: set[str]
    ) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._graph, self.node, self._read = graph, node, read
        self._base = node.name or next(filter(None, node.output))
        self.shapes = shapes

    def given(self, index: int) -> str:
        """The name of an input; nothing where it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def is_read(self, *outputs: int) -> bool:
        """Whether any of some outputs is read."""
        return any(self.node.output[index] in self._read for index in outputs if index < len(self.node.output))

    def attribute(self, name: str, usual: Any) -> Any:  # noqa: ANN401 - attributes are of many types
        """An attribute."""
        held = {entry.name: helper.get_attribute_value(entry) for entry in self.node.attribute}
        return held.get(name, usual)

    def add(self, operator: str, *inputs: str, output: int | None = None, **attributes: Any) -> str:  # noqa: ANN401
        """Add a part, whose result has the name of one of the operator's outputs, or one of its own."""
        name = f"{self._base}/{operator}_{len(self.nodes)}"
        result = name if output is None or output >= len(self.node.output) else self.node.output[output] or name
        self.nodes.append(helper.make_node(operator, inputs, [result], name=name, **attributes))
        return result

    def constant(self, *values: float, kind: type[np.generic] = np.int64) -> str:
        """A constant: a row of whole numbers, or one float."""
        name = f"{self._base}/constant_{len(self._graph.initializer)}"
        value = np.array(values, kind) if kind is np.int64 else np.array(values[0], kind)
        self._graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def held(self, name: str) -> NDArray[np.generic] | None:
        """What a constant of the file holds."""
        tensor = next((tensor for tensor in self._graph.initializer if tensor.name == name), None)
        return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))

    def tensor(self, values: NDArray[np.generic]) -> str:
        """A constant of any shape."""
        name = f"{self._base}/constant_{len(self._graph.initializer)}"
        self._graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def total(self, first: str, *others: str) -> str:
        """The sum of those that are given."""
        for other in filter(None, others):
            first = self.add("Add", first, other)
        return first


def _normalized(parts: _Parts, x: str, scale: str, bias: str, *, centred: bool = True) -> bool:
    operator = "LayerNormalization" if centred else "SimplifiedLayerNormalization"
    epsilon = float(parts.attribute("epsilon", 1e-12 if centred else 1e-6))
    parts.add(operator, *filter(None, (x, scale, bias)), output=0, axis=-1, epsilon=epsilon)
    return True


def _skip(parts: _Parts, *, centred: bool) -> bool:
    """A sum in front of a normalisation, which others may read."""
    bias = parts.given(4 if centred else 3)
    if parts.is_read(1, 2):
        return False
    x = parts.add("Add", parts.given(0), parts.given(1), output=None if bias else 3)
    x = parts.add("Add", x, bias, output=3) if bias else x
    return _normalized(parts, x, parts.given(2), parts.given(3) if centred else "", centred=centred)


def _embedding(parts: _Parts) -> bool:
    """The sum of rows of tables, normalised."""
    ids, segments, words, places, table = map(parts.given, range(5))
    shape = parts.shapes.get(ids)
    if parts.is_read(1) or shape is None or len(shape) != 2:
        return False
    rows = [parts.add("Gather", words, ids)]
    if parts.given(8):
        rows.append(parts.add("Gather", places, parts.given(8)))
    else:
        rows.append(parts.add("Slice", places, parts.constant(0), parts.constant(shape[1])))
    if segments and table:
        rows.append(parts.add("Gather", table, segments))
    x = parts.total(*rows[:-1])
    return _normalized(parts, parts.add("Add", x, rows[-1], output=2), parts.given(5), parts.given(6))


def _packed_attention(parts: _Parts) -> bool:
    """An attention whose queries, keys and values are one product with one matrix."""
    x, weight, bias, mask, past, added = map(parts.given, range(6))
    shape, of_weight = parts.shapes.get(x), parts.shapes.get(weight)
    if past or parts.is_read(1) or of_weight is None or parts.attribute("do_rotary", 0):
        return False
    sizes = list(parts.attribute("qkv_hidden_sizes", [])) or [of_weight[1] // 3] * 3
    product = parts.total(parts.add("MatMul", x, weight), bias)
    starts = np.cumsum([0, *sizes])
    apart = [
        parts.add("Slice", product, parts.constant(int(low)), parts.constant(int(high)), parts.constant(2))
        for low, high in pairwise(starts)
    ]
    sides = None if shape is None else (shape[1], shape[1])
    return _attention(parts, apart, sides, sizes, mask, added)


def _apart_attention(parts: _Parts) -> bool:
    """An attention of queries, keys and values."""
    given = [parts.given(index) for index in range(3)]
    bias, mask, added, *past = (parts.given(index) for index in range(3, 8))
    shapes = [parts.shapes.get(name) for name in given]
    if any(past) or parts.is_read(1, 2) or any(shape is None or len(shape) != 3 for shape in shapes):
        return False
    sizes = [shape[2] for shape in shapes if shape is not None]
    rows = [shape[1] for shape in shapes if shape is not None]
    if bias:
        starts = np.cumsum([0, *sizes])
        given = [
            parts.add("Add", name, parts.add("Slice", bias, parts.constant(int(low)), parts.constant(int(high))))
            for name, low, high in zip(given, starts, starts[1:], strict=False)
        ]
    return _attention(parts, given, (rows[0], rows[1]), sizes, mask, added)


def _attention(
    parts: _Parts, given: Sequence[str], sides: tuple[int, int] | None, sizes: Sequence[int], mask: str, added: str
) -> bool:
    """Scores of all heads, a softmax, and the sums of values that it weighs; a mask's bits say what is seen."""
    heads, is_causal = int(parts.attribute("num_heads", 0)), bool(parts.attribute("unidirectional", 0))
    seen = {2: [1, 2], 3: [1]}.get(len(parts.shapes.get(mask, ())), [])
    if heads < 1 or any(size % heads for size in sizes) or bool(mask) != bool(seen) or (is_causal and sides is None):
        return False
    split = parts.constant(0, 0, heads, -1)
    query, value = (
        parts.add("Transpose", parts.add("Reshape", given[index], split), perm=[0, 2, 1, 3]) for index in (0, 2)
    )
    key = parts.add("Transpose", parts.add("Reshape", given[1], split), perm=[0, 2, 3, 1])
    scale = float(parts.attribute("scale", 0.0)) or 1.0 / math.sqrt(sizes[0] // heads)
    scores = parts.add("Mul", parts.add("MatMul", query, key), parts.constant(scale, kind=np.float32))
    scores = parts.total(scores, added)
    least = float(parts.attribute("mask_filter_value", -10000.0))
    if seen:
        floats = parts.add("Cast", parts.add("Unsqueeze", mask, parts.constant(*seen)), to=onnx.TensorProto.FLOAT)
        hidden = parts.add("Sub", parts.constant(1.0, kind=np.float32), floats)
        scores = parts.add("Add", scores, parts.add("Mul", hidden, parts.constant(least, kind=np.float32)))
    if is_causal and sides is not None:
        future = helper.make_tensor(
            "future", onnx.TensorProto.FLOAT, sides, np.triu(np.full(sides, least), 1 + sides[1] - sides[0]).ravel()
        )
        scores = parts.add("Add", scores, parts.add("Constant", value=future))
    y = parts.add("MatMul", parts.add("Softmax", scores, axis=-1), value)
    y = parts.add("Transpose", y, perm=[0, 2, 1, 3])
    parts.add("Reshape", y, parts.constant(0, 0, sizes[2]), output=0)
    return True


def _quantised_recurrent(parts: _Parts) -> bool:
    """An LSTM whose weights are integers: a range that follows each value cuts nothing off of what it reads."""
    weights = []
    for index, at in ((1, 8), (2, 10)):
        whole, scale = parts.held(parts.given(index)), parts.held(parts.given(at))
        if whole is None or scale is None or whole.ndim != 3:
            return False
        zero = parts.held(parts.given(at + 1))
        zero = np.zeros(scale.shape) if zero is None else zero
        # A scale for each direction, or for each of its columns.
        scales, zeros = (each.astype(np.float32).reshape(whole.shape[0], 1, -1) for each in (scale, zero))
        turned = ((whole.astype(np.float32) - zeros) * scales).transpose(0, 2, 1)
        weights.append(parts.tensor(np.ascontiguousarray(turned)))
    kept = {entry.name: helper.get_attribute_value(entry) for entry in parts.node.attribute}
    rest = [parts.given(index) for index in range(3, 8)]
    name = parts.node.name or parts.node.output[0]
    inputs = [parts.given(0), *weights, *rest]
    while not inputs[-1]:
        inputs.pop()
    parts.nodes.append(helper.make_node("LSTM", inputs, parts.node.output, name=name, **kept))
    return True


#: What makes the parts of each; False where its form is not known.
_PARTS: dict[str, Callable[[_Parts], bool]] = {
    "SkipLayerNormalization": lambda parts: _skip(parts, centred=True),
    "SkipSimplifiedLayerNormalization": lambda parts: _skip(parts, centred=False),
    "EmbedLayerNormalization": _embedding,
    "Attention": _packed_attention,
    "DynamicQuantizeLSTM": _quantised_recurrent,
    "MultiHeadAttention": _apart_attention,
}
