"""Transformers of known sizes with seeded random weights: what they cost depends on their sizes alone."""

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


class _Transformer:
    """The nodes and weights of a network under construction; a method adds a layer and returns its output's name."""

    def __init__(self, tokens: int, width: int, heads: int, *, causal: bool = False) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._tokens, self._width, self._heads, self._causal = tokens, width, heads, causal
        self._rng = np.random.default_rng(SEED)

    def block(self, x: str) -> str:
        """A layer of BERT's: attention, then two dense layers; each is added to its input, and the sum normalised."""
        x = self.norm(self._node("Add", self._attention(x), x))
        return self.norm(self._node("Add", self._inner(x), x))

    def normed_block(self, x: str) -> str:
        """A layer of GPT-2's and ViT's: the same, where each reads its input normalised, and sums are as they are."""
        x = self._node("Add", self._attention(self.norm(x)), x)
        return self._node("Add", self._inner(self.norm(x)), x)

    def mean(self, x: str) -> str:
        """The mean of all tokens, as sentences are embedded."""
        return self._node("ReduceMean", x, self._constant(np.array([1])), keepdims=0)

    def token(self, x: str, number: int) -> str:
        """One token's vector."""
        return self._node("Gather", x, self._constant(np.array(number)), axis=1)

    def patches(self, x: str, side: int) -> str:
        """The tokens of a picture in squares of `side` pixels, behind a token for the class."""
        filters = self._constant(self._drawn(self._width, 3, side, side, scale=1 / math.sqrt(3 * side**2)))
        image = self._node("Conv", x, filters, kernel_shape=[side, side], strides=[side, side])
        columns = self._node("Reshape", image, self._constant(np.array([0, 0, -1])))
        first = self._constant(self._drawn(1, 1, self._width, scale=1))
        tokens = self._node("Concat", first, self._node("Transpose", columns, perm=[0, 2, 1]), axis=1)
        return self._node("Add", tokens, self._constant(self._drawn(1, self._tokens, self._width, scale=0.1)))

    def scores(self, x: str, count: int) -> str:
        """Scores of classes, or of the words of a vocabulary."""
        return self._dense(x, self._width, count)

    def model(self, inputs: list[int], y: str, outputs: list[int]) -> onnx.ModelProto:
        """The network from ``x`` to ``y``."""
        self.nodes.append(helper.make_node("Identity", [y], ["y"], name="output"))
        graph = helper.make_graph(
            self.nodes,
            "transformer",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, outputs)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def norm(self, x: str) -> str:
        """A normalised vector for each token."""
        scale, bias = 1 + self._drawn(self._width, scale=0.1), self._drawn(self._width, scale=0.1)
        return self._node("LayerNormalization", x, self._constant(scale), self._constant(bias), epsilon=1e-12)

    def _inner(self, x: str) -> str:
        inner = self._node("Gelu", self._dense(x, self._width, 4 * self._width))
        return self._dense(inner, 4 * self._width, self._width)

    def _attention(self, x: str) -> str:
        query, value = (self._by_heads(x, [0, 2, 1, 3]) for _ in range(2))
        key = self._by_heads(x, [0, 2, 3, 1])
        root = self._constant(np.float32(math.sqrt(self._width // self._heads)))
        scores = self._node("Div", self._node("MatMul", query, key), root)
        if self._causal:
            later = np.triu(np.full((self._tokens, self._tokens), np.finfo(np.float32).min), k=1)
            scores = self._node("Add", scores, self._constant(later.astype(np.float32)))
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
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
    """BERT's kind: embedded tokens ``x`` (1, tokens, width) to their mean ``y`` (1, width)."""
    made = _Transformer(tokens, width, heads)
    x = "x"
    for _ in range(layers):
        x = made.block(x)
    return made.model([1, tokens, width], made.mean(x), [1, width])


def decoder_file(layers: int, width: int, heads: int, tokens: int, words: int) -> onnx.ModelProto:
    """GPT-2's kind: embedded tokens ``x`` (1, tokens, width) to the next word's scores ``y`` (1, words)."""
    made = _Transformer(tokens, width, heads, causal=True)
    x = "x"
    for _ in range(layers):
        x = made.normed_block(x)
    last = made.token(made.norm(x), tokens - 1)
    return made.model([1, tokens, width], made.scores(last, words), [1, words])


def vision_file(layers: int, width: int, heads: int, side: int, patch: int, classes: int) -> onnx.ModelProto:
    """ViT's kind: a picture ``x`` (1, 3, side, side), in squares of `patch` pixels, to scores ``y`` (1, classes)."""
    made = _Transformer((side // patch) ** 2 + 1, width, heads)
    x = made.patches("x", patch)
    for _ in range(layers):
        x = made.normed_block(x)
    first = made.token(made.norm(x), 0)
    return made.model([1, 3, side, side], made.scores(first, classes), [1, classes])


def drawn_texts(count: int, tokens: int, width: int) -> NDArray[np.float32]:
    """Vectors of texts (count, tokens, width): the tokens of one text have a part in common, so that texts differ."""
    rng = np.random.default_rng(SEED)
    common, own = rng.standard_normal((count, 1, width)), rng.standard_normal((count, tokens, width))
    return ((common + own) / math.sqrt(2)).astype(np.float32)


def drawn_pictures(count: int, side: int) -> NDArray[np.float32]:
    """Pictures (count, 3, side, side) from 0 to 1, each of 4x4 coloured areas: all noise is alike to a network."""
    colours = np.random.default_rng(SEED).random((count, 3, 4, 4), dtype=np.float32)
    return colours.repeat(side // 4, axis=2).repeat(side // 4, axis=3)


def encoder(name: str, layers: int, width: int, heads: int, tokens: int, protocols: Protocols) -> Built:
    """An encoder whose answer is the embedding."""
    samples = drawn_texts(_SAMPLES, tokens, width)
    model = compile_model(
        encoder_file(layers, width, heads, tokens),
        samples,
        **protocols.keywords(name=name, output=protocols.output("value")),
    )
    return model, samples[0]


def decoder(name: str, layers: int, width: int, heads: int, tokens: int, words: int, protocols: Protocols) -> Built:
    """A decoder whose answer is the five likeliest words."""
    samples = drawn_texts(_SAMPLES, tokens, width)
    model = compile_model(
        decoder_file(layers, width, heads, tokens, words),
        samples,
        **protocols.keywords(name=name, output=protocols.output("top-k"), k=5),
    )
    return model, samples[0]


def vision(
    name: str, layers: int, width: int, heads: int, side: int, patch: int, classes: int, protocols: Protocols
) -> Built:
    """A classifier of pictures, whose answer is all scores."""
    samples = drawn_pictures(_SAMPLES, side)
    model = compile_model(
        vision_file(layers, width, heads, side, patch, classes),
        samples,
        **protocols.keywords(name=name, output=protocols.output("logits")),
    )
    return model, samples[0]


#: The networks by name, with what they are the size of.
TRANSFORMERS = {
    "encoder_2x128_128": partial(encoder, "encoder_2x128_128", 2, 128, 2, 128),  # BERT-tiny
    "encoder_6x384_128": partial(encoder, "encoder_6x384_128", 6, 384, 12, 128),  # MiniLM-L6
    "encoder_12x768_128": partial(encoder, "encoder_12x768_128", 12, 768, 12, 128),  # BERT-base
    "decoder_12x768_64": partial(decoder, "decoder_12x768_64", 12, 768, 12, 64, 50257),  # GPT-2 small
    "vision_12x768_224": partial(vision, "vision_12x768_224", 12, 768, 12, 224, 16, 1000),  # ViT-base
}
