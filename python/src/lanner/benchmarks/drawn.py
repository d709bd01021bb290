"""Networks of papers with seeded random weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lanner.benchmarks.graphs import Drawn, conv, weights
from lanner.onnx.builder import GraphBuilder, Wire


def lenet_graph() -> Drawn:
    """The large LeNet for MNIST of Lam et al. 2022, as their public code has it, with 58,624 ReLUs.

    3x3 convolutions that stay inside the image to 32 and to 64 channels, an average pool of 2x2, and dense layers of
    128 and 10.
    """
    graph = GraphBuilder("x", (1, 28, 28))
    wire = graph.input
    for outputs in (32, 64):
        wire = graph.relu(conv(graph, wire, outputs, 3, padded=False))
    return graph, _classify(graph, _halved(graph, wire, "AveragePool"), 10, (128,))


def cryptonets_graph() -> Drawn:
    """The network of Brutzkus et al. 2019 for MNIST: a 5x5 convolution to 5x13x13, squares, 100, squares, 10."""
    graph = GraphBuilder("x", (1, 28, 28))
    geometry = {"strides": [2, 2], "pads": [1, 1, 0, 0], "dilations": [1, 1], "groups": 1}
    tensors = {"weight": weights(5, 1, 5, 5), "bias": None}
    wire = graph.square(graph.add_node("Conv", (graph.input,), (5, 13, 13), geometry, tensors))
    wire = graph.square(graph.matmul(graph.reshape(wire, (845,)), weights(845, 100)))
    return graph, graph.matmul(wire, weights(100, 10))


def minionn_graph() -> Drawn:
    """The CIFAR-10 network of MiniONN (Liu et al. 2017), with plain ReLU."""
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.input
    for outputs, kernel, pooled in MINIONN_LAYERS:
        wire = graph.relu(conv(graph, wire, outputs, kernel))
        if pooled:
            wire = _halved(graph, wire, "AveragePool")
    return graph, _classify(graph, wire, 10)


def resnet_graph(blocks: int) -> Drawn:
    """The CIFAR-10 network of He et al. 2016 with 6 `blocks` + 2 layers; its shortcuts have no parameters."""
    return _small_resnet(blocks, _padded_shortcut, 10)


def delphi_resnet32_graph() -> Drawn:
    """The ResNet-32 of Mishra et al. 2020 for CIFAR-100, with plain ReLU: convolutions are the shortcuts."""
    return _small_resnet(5, _convolved_shortcut, 100)


def vgg16_graph() -> Drawn:
    """VGG-16 for CIFAR-100: configuration D of Simonyan and Zisserman 2015, with one dense layer, 512 to 100.

    Five max-pools leave one pixel of a 32x32 image, so nothing is left for the hidden dense layers that ImageNet's
    has. It has 276,480 ReLUs, as many as Tabula's table 2 counts.
    """
    return _vgg16("MaxPool", ())


def tabula_vgg16_graph() -> Drawn:
    """VGG-16 for CIFAR-100 of Lam et al. 2022: with average pools, as their public code has it.

    That code has one dense layer and notes two hidden ones of 4096, which ImageNet's has, and without which it has the
    276,480 ReLUs of the paper's table 2. With them, as here, it has 284,672, as many as table 4 counts.
    """
    return _vgg16("AveragePool", (4096, 4096))


def resnet34_graph() -> Drawn:
    """ResNet-34 for CIFAR-100: He et al. 2016, table 1, on 32x32 images.

    Its first layer is a 3x3 convolution of stride 1 without a pool, as such images have it; a 1x1 convolution makes
    the shortcut of a wider stage. It has 966,656 ReLUs.
    """
    return _resnet34(_as_it_is)


def tabula_resnet34_graph() -> Drawn:
    """ResNet-34 for CIFAR-100 of Lam et al. 2022, whose public code rectifies what it adds, too.

    A ReLU follows each block's second convolution, each shortcut's, and the sum: 1,474,560 in all.
    """
    return _resnet34(GraphBuilder.relu)


def _vgg16(pool: str, hidden: Sequence[int]) -> Drawn:
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.input
    for outputs, convolutions in VGG16_STAGES:
        for _ in range(convolutions):
            wire = graph.relu(conv(graph, wire, outputs, 3))
        wire = _halved(graph, wire, pool)
    return graph, _classify(graph, wire, 100, hidden)


def _resnet34(added: Callable[[GraphBuilder, Wire], Wire]) -> Drawn:
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.relu(conv(graph, graph.input, 64, 3))
    for outputs, blocks in RESNET34_STAGES:
        for _ in range(blocks):
            wire = _block(graph, wire, outputs, _convolved_shortcut, added)
    return graph, _classify(graph, graph.global_average_pool(wire), 100)


def _small_resnet(blocks: int, widen: Callable[[GraphBuilder, Wire, int], Wire], classes: int) -> Drawn:
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.relu(conv(graph, graph.input, 16, 3))
    for outputs in (16, 32, 64):
        for _ in range(blocks):
            wire = _block(graph, wire, outputs, widen, _as_it_is)
    return graph, _classify(graph, graph.global_average_pool(wire), classes)


def _halved(graph: GraphBuilder, x: Wire, pool: str) -> Wire:
    """A pool of 2x2."""
    window: dict[str, Any] = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    if pool == "AveragePool":
        window["count_include_pad"] = False
    return graph.add_node(pool, (x,), (x.shape[0], x.shape[1] // 2, x.shape[2] // 2), window)


def _block(
    graph: GraphBuilder,
    x: Wire,
    outputs: int,
    widen: Callable[[GraphBuilder, Wire, int], Wire],
    added: Callable[[GraphBuilder, Wire], Wire],
) -> Wire:
    """Two convolutions around which the input goes; the first of a wider stage halves the image.

    What `added` makes of the second's output, and of what widened the shortcut, is added.
    """
    stride = outputs // x.shape[0]
    inner = conv(graph, graph.relu(conv(graph, x, outputs, 3, stride)), outputs, 3)
    shortcut = x if stride == 1 else added(graph, widen(graph, x, outputs))
    return graph.relu(graph.add(added(graph, inner), shortcut))


def _as_it_is(_: GraphBuilder, x: Wire) -> Wire:
    return x


def _padded_shortcut(graph: GraphBuilder, x: Wire, outputs: int) -> Wire:
    """Every other pixel, among new channels of zeros."""
    stride = outputs // x.shape[0]
    every_other = (range(x.shape[0]), range(0, x.shape[1], stride), range(0, x.shape[2], stride))
    margin = (outputs - x.shape[0]) // 2
    return graph.pad(graph.slice(x, every_other), (margin, 0, 0), (margin, 0, 0))


def _convolved_shortcut(graph: GraphBuilder, x: Wire, outputs: int) -> Wire:
    return conv(graph, x, outputs, 1, outputs // x.shape[0])


def _classify(graph: GraphBuilder, x: Wire, classes: int, hidden: Sequence[int] = ()) -> Wire:
    wire = graph.reshape(x, (x.size,))
    for outputs in hidden:
        wire = graph.relu(graph.matmul(wire, weights(wire.size, outputs)))
    return graph.matmul(wire, weights(wire.size, classes))


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

#: Channels of each stage, and its convolutions, which max-pooling follows.
VGG16_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))

#: Channels of each stage, and its blocks of two convolutions.
RESNET34_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
