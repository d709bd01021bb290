"""Small transformers as torch.onnx writes them, with seeded random weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from helpers.models import make_model

Array = NDArray[np.generic]


class Exported:
    """The nodes and weights of a model under construction; every method adds a layer and returns its output's name.

    Args:
        seed: What weights are drawn from.
        opset: The opset: from 17 on LayerNormalization is an operator.
    """

    def __init__(self, seed: int, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.opset = opset
        self._rng = np.random.default_rng(seed)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as ONNX's own helper
        """Add a node named as torch names it."""
        name = f"/{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_output_0"], name=name, **attributes))
        return f"{name}_output_0"

    def constant(self, value: object) -> str:
        """Add an initializer: numbers, or integers where all are whole."""
        array = np.asarray(value)
        name = f"onnx::const_{len(self.weights)}"
        self.weights[name] = array.astype(np.int64 if array.dtype.kind == "i" else np.float32)
        return name

    def drawn(self, *shape: int, scale: float | None = None) -> str:
        """Add normal weights, by default scaled so that sums of products stay near one."""
        size = 1 / math.sqrt(shape[0]) if scale is None else scale
        return self.constant(self._rng.standard_normal(shape) * size)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A dense layer of the last axis."""
        product = self.node("MatMul", x, self.drawn(inputs, outputs))
        return self.node("Add", self.drawn(outputs, scale=0.1), product)

    def norm(self, x: str, width: int) -> str:
        """Layer normalization of the last axis, in parts before opset 17."""
        scale = self.constant(1 + 0.2 * self._rng.standard_normal(width))
        bias = self.drawn(width, scale=0.1)
        if self.opset >= 17:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        mean = self.node("ReduceMean", x, axes=[-1])
        centred = self.node("Sub", x, mean)
        squares = self.node("Pow", centred, self.constant(2.0))
        variance = self.node("ReduceMean", squares, axes=[-1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        normal = self.node("Div", centred, deviation)
        return self.node("Add", self.node("Mul", normal, scale), bias)

    def gelu(self, x: str) -> str:
        """GELU in parts."""
        bent = self.node("Erf", self.node("Div", x, self.constant(math.sqrt(2))))
        gate = self.node("Add", bent, self.constant(1.0))
        return self.node("Mul", self.node("Mul", x, gate), self.constant(0.5))

    def heads(self, x: str, sides: tuple[int, int, int], order: list[int]) -> str:
        """Cut the last axis into heads: (n, tokens, heads, width) in another order."""
        apart = self.node("Reshape", x, self.constant([0, *sides]))
        return self.node("Transpose", apart, perm=order)

    def attention(self, x: str, tokens: int, width: int, heads: int) -> str:
        """Multi-head attention by scaled dot products, the scale shared by queries and keys as torch exports it."""
        sides = (tokens, heads, width // heads)
        query = self.heads(self.linear(x, width, width), sides, [0, 2, 1, 3])
        key = self.heads(self.linear(x, width, width), sides, [0, 2, 3, 1])
        value = self.heads(self.linear(x, width, width), sides, [0, 2, 1, 3])
        last = self.node("Slice", self.node("Shape", query), self.constant([-1]), self.constant([2**62]))
        root = self.node("Sqrt", self.node("Cast", last, to=onnx.TensorProto.FLOAT))
        scale = self.node("Sqrt", self.node("Div", self.constant([1.0]), root))
        scores = self.node("MatMul", self.node("Mul", query, scale), self.node("Mul", key, scale))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant([0, 0, -1]))
        return self.linear(joined, width, width)

    def block(self, x: str, tokens: int, width: int, heads: int) -> str:
        """A block that normalises before attention and before its two dense layers."""
        x = self.node("Add", x, self.attention(self.norm(x, width), tokens, width, heads))
        hidden = self.gelu(self.linear(self.norm(x, width), width, 2 * width))
        return self.node("Add", x, self.linear(hidden, 2 * width, width))

    def model(self, output: str, shape: list[int | str]) -> onnx.ModelProto:
        """The model of input ``x`` that ends in an output."""
        return make_model(self.nodes, shape, self.weights, opset=self.opset, output=output)


def transformer(opset: int = 17, tokens: int = 6, width: int = 8, heads: int = 2) -> onnx.ModelProto:
    """A block on rows of features, and a classifier of three classes on their mean."""
    net = Exported(1, opset)
    x = net.block(net.linear("x", width, width), tokens, width, heads)
    pooled = net.node("ReduceMean", net.norm(x, width), axes=[1], keepdims=0)
    return net.model(net.node("Gemm", pooled, net.drawn(width, 3), net.drawn(3)), ["batch", tokens, width])


def vision_transformer(blocks: int = 2, width: int = 8, heads: int = 2) -> onnx.ModelProto:
    """Patches of an image, a token for the class, blocks, and a classifier of four classes on that token."""
    net, side, patch = Exported(2), 8, 4
    patches = (side // patch) ** 2
    kernel = net.constant(np.random.default_rng(3).standard_normal((width, 3, patch, patch)) / 7)
    x = net.node("Conv", "x", kernel, net.drawn(width, scale=0.1), kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = net.node("Transpose", net.node("Reshape", x, net.constant([0, width, patches])), perm=[0, 2, 1])
    count = net.node("Gather", net.node("Shape", "x"), net.constant(0))
    one = net.node("Unsqueeze", count, net.constant([0]))
    sides = net.node("Concat", one, net.constant([-1]), net.constant([-1]), axis=0)
    where = net.node("Where", net.node("Equal", sides, net.constant([-1, -1, -1])), net.constant([1, 1, 1]), sides)
    token = net.node("Expand", net.drawn(1, 1, width, scale=0.5), where)
    x = net.node("Add", net.node("Concat", token, x, axis=1), net.drawn(1, patches + 1, width, scale=0.2))
    for _ in range(blocks):
        x = net.block(x, patches + 1, width, heads)
    first = net.node("Gather", net.norm(x, width), net.constant(0), axis=1)
    return net.model(net.node("Gemm", first, net.drawn(width, 4), net.drawn(4)), ["batch", 3, side, side])
