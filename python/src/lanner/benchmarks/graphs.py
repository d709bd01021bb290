"""The smallest networks that hold one layer or one activation, with seeded random weights."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.embedded import compile_embedded
from lanner.errors import native_errors
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.options import CompileOptions

Built = tuple[Model, NDArray[np.float32]]

SEED = 20_260_101
SAMPLES = 32


def convolution(channels: int, side: int, kernel: int, outputs: int, mode: str) -> Built:
    """A square convolution that keeps its input's height and width."""
    graph = GraphBuilder("x", (channels, side, side))
    before = (kernel - 1) // 2
    after = kernel - 1 - before
    return _build(graph, mode, _conv(graph, graph.input, outputs, kernel, (before, before, after, after)))


def dense(inputs: int, outputs: int, mode: str) -> Built:
    """A fully connected layer."""
    graph = GraphBuilder("x", (inputs,))
    return _build(graph, mode, graph.matmul(graph.input, _weights(inputs, outputs)))


def relu(count: int, mode: str) -> Built:
    """A 1x1 convolution, then ReLU on so many values."""
    graph = GraphBuilder("x", (count // PIXELS, SIDE_HIGH, SIDE_WIDE))
    return _build(graph, mode, graph.relu(_conv(graph, graph.input, count // PIXELS, 1, (0, 0, 0, 0))))


def max_pool(count: int, mode: str) -> Built:
    """A 1x1 convolution, then 2x2 max-pooling to so many values."""
    channels = count // PIXELS
    graph = GraphBuilder("x", (channels, 2 * SIDE_HIGH, 2 * SIDE_WIDE))
    sums = _conv(graph, graph.input, channels, 1, (0, 0, 0, 0))
    window = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    return _build(graph, mode, graph.add_node("MaxPool", (sums,), (channels, SIDE_HIGH, SIDE_WIDE), window))


def arg_max(classes: int, mode: str) -> Built:
    """A fully connected layer, then the label alone."""
    graph = GraphBuilder("x", (16,))
    return _build(graph, mode, graph.matmul(graph.input, _weights(16, classes)), "label")


def embedded(name: str, mode: str) -> Built:
    """A network that comes with the package, and a digit that training did not see."""
    from lanner.datasets import load_digits

    return compile_embedded(name, mode), load_digits("test")[0][0]


def minionn(trained: Path | None, mode: str) -> Built:
    """The CIFAR-10 network of MiniONN (Liu et al. 2017), from a file or with random weights."""
    samples = np.random.default_rng(SEED).random((SAMPLES, 3, 32, 32), dtype=np.float32)
    if trained is not None:
        return compile(trained, samples, mode=mode, output="logits", name="cifar10_minionn"), samples[0]
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.input
    for outputs, kernel, pooled in MINIONN_LAYERS:
        pad = (kernel - 1) // 2
        wire = graph.relu(_conv(graph, wire, outputs, kernel, (pad, pad, pad, pad)))
        if pooled:
            window = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0], "count_include_pad": False}
            shape = (outputs, wire.shape[1] // 2, wire.shape[2] // 2)
            wire = graph.add_node("AveragePool", (wire,), shape, window)
    flat = graph.reshape(wire, (wire.size,))
    return _build(graph, mode, graph.matmul(flat, _weights(flat.size, 10)))


def _conv(graph: GraphBuilder, x: Wire, outputs: int, kernel: int, pads: tuple[int, int, int, int]) -> Wire:
    weight = _weights(outputs, x.shape[0], kernel, kernel)
    attributes = {"strides": [1, 1], "pads": list(pads), "dilations": [1, 1], "groups": 1}
    return graph.add_node("Conv", (x,), (outputs, *x.shape[1:]), attributes, {"weight": weight, "bias": None})


def _weights(*shape: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(SEED)
    weights = rng.standard_normal(shape, dtype=np.float32)
    return weights / np.float32(math.sqrt(math.prod(shape[1:])))


def _build(graph: GraphBuilder, mode: str, output: Wire, policy: str = "logits") -> Built:
    """Compile on random samples, of which the first is returned."""
    samples = np.random.default_rng(SEED).random((SAMPLES, *graph.input.shape), dtype=np.float32)
    finished, options = graph.finish(output), CompileOptions("bench", mode, policy)
    with native_errors():
        native = _native.NativeModel.compile(finished.document, finished.tensors, samples, options.document())
    return Model(native), samples[0]


#: Output channels and kernel of each convolution, and whether average pooling follows.
MINIONN_LAYERS = (
    (64, 3, False),
    (64, 3, True),
    (64, 3, False),
    (64, 3, True),
    (64, 3, False),
    (64, 1, False),
    (16, 1, False),
)

#: Activations stand on images of this height and width.
SIDE_HIGH, SIDE_WIDE = 10, 10
PIXELS = SIDE_HIGH * SIDE_WIDE
