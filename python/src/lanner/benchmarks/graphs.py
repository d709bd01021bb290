"""The smallest networks that hold one layer or one activation, with seeded random weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.errors import native_errors
from lanner.model import Model
from lanner.onnx.builder import FloatGraph, GraphBuilder, Wire
from lanner.options import CompileOptions, Protocols

Built = tuple[Model, NDArray[np.float32]]

#: A graph and its output.
Drawn = tuple[GraphBuilder, Wire]

SEED = 20_260_101
SAMPLES = 32


def convolution(channels: int, side: int, kernel: int, outputs: int, stride: int, protocols: Protocols) -> Built:
    """A square convolution, padded so that its outputs cover the input."""
    graph = GraphBuilder("x", (channels, side, side))
    return build(graph, conv(graph, graph.input, outputs, kernel, stride), protocols)


def inner_convolution(channels: int, side: int, kernel: int, outputs: int, protocols: Protocols) -> Built:
    """A square convolution without padding: its filters stay inside the image."""
    graph = GraphBuilder("x", (channels, side, side))
    return build(graph, conv(graph, graph.input, outputs, kernel, padded=False), protocols)


def dense(inputs: int, outputs: int, protocols: Protocols) -> Built:
    """A fully connected layer."""
    graph = GraphBuilder("x", (inputs,))
    return build(graph, graph.matmul(graph.input, weights(inputs, outputs)), protocols)


def square(count: int, protocols: Protocols) -> Built:
    """A 1x1 convolution, then the square of so many values."""
    graph = GraphBuilder("x", (count // SQUARED_PIXELS, SQUARED_SIDE, SQUARED_SIDE))
    return build(graph, graph.square(conv(graph, graph.input, count // SQUARED_PIXELS, 1)), protocols)


def relu(count: int, protocols: Protocols) -> Built:
    """A 1x1 convolution, then ReLU on so many values."""
    graph = GraphBuilder("x", (count // PIXELS, SIDE, SIDE))
    return build(graph, graph.relu(conv(graph, graph.input, count // PIXELS, 1)), protocols)


def wide_relu(count: int, protocols: Protocols) -> Built:
    """A factor for each channel, which leaves a small ring, then ReLU on so many values of large images."""
    channels = count // WIDE_PIXELS
    graph = GraphBuilder("x", (channels, WIDE_SIDE, WIDE_SIDE))
    return build(graph, graph.relu(conv(graph, graph.input, channels, 1, groups=channels)), protocols)


def rescale(count: int, protocols: Protocols) -> Built:
    """Two 1x1 convolutions, between which so many values are rescaled."""
    channels = count // PIXELS
    graph = GraphBuilder("x", (channels, SIDE, SIDE))
    return build(graph, conv(graph, conv(graph, graph.input, channels, 1), 1, 1), protocols)


def max_pool(channels: int, side: int, protocols: Protocols) -> Built:
    """A 1x1 convolution, then 2x2 max-pooling of its channels."""
    graph = GraphBuilder("x", (channels, side, side))
    return build(graph, _pooled(graph, conv(graph, graph.input, channels, 1)), protocols)


def relu_max_pool(channels: int, side: int, protocols: Protocols) -> Built:
    """A 1x1 convolution, then ReLU and 2x2 max-pooling of its channels, in the order in which networks have them."""
    graph = GraphBuilder("x", (channels, side, side))
    return build(graph, _pooled(graph, graph.relu(conv(graph, graph.input, channels, 1))), protocols)


def arg_max(classes: int, protocols: Protocols) -> Built:
    """A fully connected layer, then the label alone."""
    graph = GraphBuilder("x", (16,))
    return build(graph, graph.matmul(graph.input, weights(16, classes)), protocols, "label")


def softmax(classes: int, digits: int, protocols: Protocols) -> Built:
    """A fully connected layer whose scores spread over some units, then the label and its probability."""
    graph = GraphBuilder("x", (16,))
    spread = weights(16, classes) * np.float32(math.sqrt(classes))
    return build(graph, graph.matmul(graph.input, spread), protocols, "probability", digits=digits)


def function(name: str, count: int, protocols: Protocols) -> Built:
    """A 1x1 convolution, then a smooth function of so many values, by its operator's name."""
    graph = GraphBuilder("x", (count // PIXELS, SIDE, SIDE))
    return build(graph, graph.function(conv(graph, graph.input, count // PIXELS, 1), name), protocols)


def product(count: int, protocols: Protocols) -> Built:
    """Two 1x1 convolutions of the input, and the products of so many values of theirs."""
    graph = GraphBuilder("x", (count // PIXELS, SIDE, SIDE))
    left, right = (conv(graph, graph.input, count // PIXELS, 1) for _ in range(2))
    return build(graph, graph.multiply(left, right), protocols)


def matrix_product(side: int, protocols: Protocols) -> Built:
    """Two dense layers of the input, and the product of the square matrices that they make."""
    graph = GraphBuilder("x", (side,))
    left, right = (
        graph.reshape(graph.matmul(graph.input, weights(side, side * side)), (1, side, side)) for _ in range(2)
    )
    return build(graph, graph.matrix_product(left, right), protocols)


def top_k(classes: int, k: int, protocols: Protocols) -> Built:
    """A fully connected layer, then the labels of its largest scores."""
    graph = GraphBuilder("x", (16,))
    return build(graph, graph.matmul(graph.input, weights(16, classes)), protocols, "top-k", k=k)


def _pooled(graph: GraphBuilder, x: Wire) -> Wire:
    window = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    return graph.add_node("MaxPool", (x,), (x.shape[0], x.shape[1] // 2, x.shape[2] // 2), window)


def conv(
    graph: GraphBuilder,
    x: Wire,
    outputs: int,
    kernel: int,
    stride: int = 1,
    *,
    padded: bool = True,
    groups: int = 1,
) -> Wire:
    """A square convolution: (outputs, height, width).

    Padded, its outputs cover the input: sides are divided by the stride and rounded up.
    """
    before = (kernel - 1) // 2 if padded else 0
    after = kernel - 1 - before if padded else 0
    attributes = {
        "strides": [stride, stride],
        "pads": [before, before, after, after],
        "dilations": [1, 1],
        "groups": groups,
    }
    sides = tuple((side + before + after - kernel) // stride + 1 for side in x.shape[1:])
    tensors = {"weight": weights(outputs, x.shape[0] // groups, kernel, kernel), "bias": None}
    return graph.add_node("Conv", (x,), (outputs, *sides), attributes, tensors)


def weights(*shape: int) -> NDArray[np.float32]:
    """Seeded normal weights, scaled so that sums of products stay near one."""
    rng = np.random.default_rng(SEED)
    values = rng.standard_normal(shape, dtype=np.float32)
    return values / np.float32(math.sqrt(math.prod(shape[1:])))


def build(
    graph: GraphBuilder, output: Wire, protocols: Protocols, policy: str = "logits", *, digits: int = 2, k: int = 1
) -> Built:
    """Compile on random samples, of which the first is returned; with 8 bits where no precision is asked for."""
    samples = random_samples(graph.input.shape)
    precise = replace(protocols, precision=protocols.precision or 8)
    chosen = precise.keywords(name="bench", output=protocols.output(policy), k=k, digits=digits)
    return compile_graph(graph.finish(output), samples, CompileOptions(**chosen)), samples[0]


def random_samples(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Seeded inputs in [0, 1): shape (`SAMPLES`, *shape)."""
    return np.random.default_rng(SEED).random((SAMPLES, *shape), dtype=np.float32)


def compile_graph(graph: FloatGraph, samples: NDArray[np.float32], options: CompileOptions) -> Model:
    """Compile a graph, calibrated on samples."""
    with native_errors():
        return Model(_native.NativeModel.compile(graph.document, graph.tensors, samples, options.document()))


#: Activations stand on images of this height and width.
SIDE = 10
PIXELS = SIDE * SIDE

#: As many values as large layers have stand on larger ones.
WIDE_SIDE = 100
WIDE_PIXELS = WIDE_SIDE * WIDE_SIDE

#: Squares stand on others, whose pixels divide the paper's count.
SQUARED_SIDE = 16
SQUARED_PIXELS = SQUARED_SIDE * SQUARED_SIDE
