"""Encoders of BERT's kind with seeded random weights: what they cost depends on their sizes alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lanner.benchmarks.graphs import SEED, Built
from lanner.model import compile as compile_model
from lanner.options import Protocols

#: How many texts a model is compiled on: fewer would make each number's range, which errors are relative to, too small.
_SAMPLES = 16


class _Encoder:
    """The nodes and weights of an encoder under construction; a method adds a layer and returns its output's name."""

    def __init__(self, tokens: int, width: int, heads: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._tokens, self._width, self._heads = tokens, width, heads
        self._rng = np.random.default_rng(SEED)

    def block(self, x: str) -> str:
        """Attention, then two dense layers with GELU between them; each is added to its input and normalised."""
        x = self._norm(self._node("Add", self._attention(x), x))
        inner = self._node("Gelu", self._dense(x, self._width, 4 * self._width))
        return self._norm(self._node("Add", self._dense(inner, 4 * self._width, self._width), x))

    def mean(self, x: str) -> str:
        """The mean of all tokens, as sentences are embedded."""
        return self._node("ReduceMean", x, self._constant(np.array([1])), keepdims=0)

    def _attention(self, x: str) -> str:
        query, value = (self._by_heads(x, [0, 2, 1, 3]) for _ in range(2))
        key = self._by_heads(x, [0, 2, 3, 1])
        scores = self._node("MatMul", query, key)
        root = self._constant(np.float32(math.sqrt(self._width // self._heads)))
        mixed = self._node("MatMul", self._node("Softmax", self._node("Div", scores, root), axis=-1), value)
        joined = self._node("Transpose", mixed, perm=[0, 2, 1, 3])
        rows = self._node("Reshape", joined, self._constant(np.array([0, 0, -1])))
        return self._dense(rows, self._width, self._width)

    def _by_heads(self, x: str, order: list[int]) -> str:
        sides = np.array([0, self._tokens, self._heads, self._width // self._heads])
        apart = self._node("Reshape", self._dense(x, self._width, self._width), self._constant(sides))
        return self._node("Transpose", apart, perm=order)

    def _dense(self, x: str, inputs: int, outputs: int) -> str:
        product = self._node("MatMul", x, self._constant(self._drawn(inputs, outputs, scale=1 / math.sqrt(inputs))))
        return self._node("Add", product, self._constant(self._drawn(outputs, scale=0.1)))

    def _norm(self, x: str) -> str:
        scale, bias = 1 + self._drawn(self._width, scale=0.1), self._drawn(self._width, scale=0.1)
        return self._node("LayerNormalization", x, self._constant(scale), self._constant(bias), epsilon=1e-12)

    def _drawn(self, *shape: int, scale: float) -> NDArray[np.float32]:
        return np.asarray(scale * self._rng.standard_normal(shape), np.float32)

    def _constant(self, value: NDArray[Any] | np.float32) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as ONNX's own helper
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name


def encoder_file(layers: int, width: int, heads: int, tokens: int) -> onnx.ModelProto:
    """An encoder of vectors ``x`` (1, tokens, width), the embedded tokens, to their mean ``y`` (1, width)."""
    made = _Encoder(tokens, width, heads)
    x = "x"
    for _ in range(layers):
        x = made.block(x)
    made.nodes.append(helper.make_node("Identity", [made.mean(x)], ["y"], name="mean"))
    graph = helper.make_graph(
        made.nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, tokens, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])],
        made.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def drawn_texts(count: int, tokens: int, width: int) -> NDArray[np.float32]:
    """Vectors of texts (count, tokens, width): the tokens of one text have a part in common, so that texts differ."""
    rng = np.random.default_rng(SEED)
    common, own = rng.standard_normal((count, 1, width)), rng.standard_normal((count, tokens, width))
    return ((common + own) / math.sqrt(2)).astype(np.float32)


def encoder(name: str, layers: int, width: int, heads: int, tokens: int, protocols: Protocols) -> Built:
    """An encoder whose answer is the embedding."""
    samples = drawn_texts(_SAMPLES, tokens, width)
    model = compile_model(
        encoder_file(layers, width, heads, tokens),
        samples,
        **protocols.keywords(name=name, output=protocols.output("value")),
    )
    return model, samples[0]


#: The encoders by name, with what they are the size of.
ENCODERS = {
    "encoder_2x128_128": partial(encoder, "encoder_2x128_128", 2, 128, 2, 128),  # BERT-tiny
    "encoder_6x384_128": partial(encoder, "encoder_6x384_128", 6, 384, 12, 128),  # MiniLM-L6
    "encoder_12x768_128": partial(encoder, "encoder_12x768_128", 12, 768, 12, 128),  # BERT-base
}
