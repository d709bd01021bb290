"""Whole networks: those that come with the package, and CIFAR's.

CIFAR-10's are trained where a folder of data holds them; all others have seeded random weights.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.benchmarks.graphs import Built, Drawn, build, conv, weights
from lanner.embedded import CALIBRATION_SAMPLES, compile_embedded
from lanner.errors import InputError
from lanner.model import compile  # noqa: A004 - the interface's name
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.options import Protocols


def embedded(name: str, protocols: Protocols) -> Built:
    """A network that comes with the package, and a digit that training did not see."""
    from lanner.datasets import load_digits

    model = compile_embedded(name, protocols.mode, protocols.output("logits"), protocols.rounding, protocols.precision)
    return model, load_digits("test")[0][0]


def pneumonia(data: Path | None, protocols: Protocols) -> Built:
    """The network for chest X-rays that comes with the package; the client learns the label and its probability.

    X-rays do not come with it: where a folder of data has none, digits stand in, of the same size and range.
    """
    from lanner.datasets import load_digits

    path = None if data is None else data / "medmnist" / "pneumoniamnist.npz"
    if path is None or not path.is_file():
        samples = load_digits("train")[0][: CALIBRATION_SAMPLES + 1]
    else:
        with np.load(path) as file:
            pixels = file["train_images"][: CALIBRATION_SAMPLES + 1, np.newaxis]
        samples = pixels.astype(np.float32) / np.float32(255)
    with as_file(files("lanner") / "networks" / "pneumonia.onnx") as network:
        return trained(network, "pneumonia", samples, protocols, "probability")


def minionn(folder: Path | None, protocols: Protocols) -> Built:
    """The CIFAR-10 network of MiniONN (Liu et al. 2017): seven convolutions, two average pools."""
    if folder is not None:
        samples = load_cifar10(folder.parents[1], CALIBRATION_SAMPLES + 1)
        return trained(folder / "model.onnx", "cifar10_minionn", samples, protocols)
    return build(*minionn_graph(), protocols)


def minionn_graph() -> Drawn:
    """MiniONN's network with plain ReLU and random weights."""
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.input
    for outputs, kernel, pooled in MINIONN_LAYERS:
        wire = graph.relu(conv(graph, wire, outputs, kernel))
        if pooled:
            window = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0], "count_include_pad": False}
            shape = (outputs, wire.shape[1] // 2, wire.shape[2] // 2)
            wire = graph.add_node("AveragePool", (wire,), shape, window)
    return graph, _classify(graph, wire, 10)


def resnet(blocks: int, folder: Path | None, protocols: Protocols) -> Built:
    """The CIFAR-10 network of He et al. 2016 with 6 `blocks` + 2 layers; its shortcuts have no parameters."""
    if folder is not None:
        samples = (load_cifar10(folder.parents[1], CALIBRATION_SAMPLES + 1) - CIFAR_MEAN) / CIFAR_DEVIATION
        return trained(folder / "model.onnx", f"resnet{6 * blocks + 2}", samples, protocols)
    return build(*resnet_graph(blocks), protocols)


def resnet_graph(blocks: int) -> Drawn:
    """The same with random weights."""
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.relu(conv(graph, graph.input, 16, 3))
    for outputs in (16, 32, 64):
        for _ in range(blocks):
            wire = _block(graph, wire, outputs, _padded_shortcut)
    return graph, _classify(graph, graph.global_average_pool(wire), 10)


def vgg16(protocols: Protocols) -> Built:
    """`vgg16_graph`, compiled."""
    return build(*vgg16_graph(), protocols)


def vgg16_graph() -> Drawn:
    """VGG-16 for CIFAR-100: configuration D of Simonyan and Zisserman 2015, with one dense layer, 512 to 100.

    Five max-pools leave one pixel of a 32x32 image, so nothing is left for the hidden dense layers that ImageNet's
    has. It has 276,480 ReLUs, as many as Tabula's table 2 counts.
    """
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.input
    for outputs, convolutions in VGG16_STAGES:
        for _ in range(convolutions):
            wire = graph.relu(conv(graph, wire, outputs, 3))
        window = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
        shape = (outputs, wire.shape[1] // 2, wire.shape[2] // 2)
        wire = graph.add_node("MaxPool", (wire,), shape, window)
    return graph, _classify(graph, wire, 100)


def resnet34(protocols: Protocols) -> Built:
    """`resnet34_graph`, compiled."""
    return build(*resnet34_graph(), protocols)


def resnet34_graph() -> Drawn:
    """ResNet-34 for CIFAR-100: He et al. 2016, table 1, on 32x32 images.

    Its first layer is a 3x3 convolution of stride 1 without a pool, as such images have it; a 1x1 convolution makes
    the shortcut of a wider stage. It has 966,656 ReLUs.
    """
    graph = GraphBuilder("x", (3, 32, 32))
    wire = graph.relu(conv(graph, graph.input, 64, 3))
    for outputs, blocks in RESNET34_STAGES:
        for _ in range(blocks):
            wire = _block(graph, wire, outputs, _convolved_shortcut)
    return graph, _classify(graph, graph.global_average_pool(wire), 100)


def load_cifar10(data: Path, count: int, split: str = "test") -> NDArray[np.float32]:
    """The first images of CIFAR-10's ``test`` or ``train`` split, shape (count, 3, 32, 32) in [0, 1].

    The file keeps differences: along rows and columns, and of red and blue from green, all modulo 256.

    Raises:
        InputError: If the file is not there or is not one.
    """
    path = data / "cifar10" / f"cifar10_{split}.npz"
    try:
        with np.load(path) as file:
            planes = file["residual"][:, :count]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), fix="give the folder with --data") from None
    planes = planes.cumsum(3, np.uint8).cumsum(2, np.uint8)
    planes[0] += planes[1]
    planes[2] += planes[1]
    images: NDArray[np.float32] = planes.swapaxes(0, 1).astype(np.float32) / np.float32(255)
    return images


def trained(
    network: onnx.ModelProto | Path,
    name: str,
    samples: NDArray[np.float32],
    protocols: Protocols,
    output: str = "logits",
) -> Built:
    """A network, or that of an ONNX file, calibrated on all samples but the last, which is returned."""
    model = compile(
        network,
        samples[:-1],
        mode=protocols.mode,
        output=protocols.output(output),
        name=name,
        rounding=protocols.rounding,
        precision=protocols.precision,
    )
    return model, model.manifest.input.clip(samples[-1])


def _block(graph: GraphBuilder, x: Wire, outputs: int, widen: Callable[[GraphBuilder, Wire, int], Wire]) -> Wire:
    """Two convolutions around which the input goes; the first of a wider stage halves the image."""
    stride = outputs // x.shape[0]
    inner = conv(graph, graph.relu(conv(graph, x, outputs, 3, stride)), outputs, 3)
    shortcut = x if stride == 1 else widen(graph, x, outputs)
    return graph.relu(graph.add(inner, shortcut))


def _padded_shortcut(graph: GraphBuilder, x: Wire, outputs: int) -> Wire:
    """Every other pixel, among new channels of zeros."""
    stride = outputs // x.shape[0]
    every_other = (range(x.shape[0]), range(0, x.shape[1], stride), range(0, x.shape[2], stride))
    margin = (outputs - x.shape[0]) // 2
    return graph.pad(graph.slice(x, every_other), (margin, 0, 0), (margin, 0, 0))


def _convolved_shortcut(graph: GraphBuilder, x: Wire, outputs: int) -> Wire:
    return conv(graph, x, outputs, 1, outputs // x.shape[0])


def _classify(graph: GraphBuilder, x: Wire, classes: int) -> Wire:
    flat = graph.reshape(x, (x.size,))
    return graph.matmul(flat, weights(flat.size, classes))


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

#: How the residual networks' training normalized red, green and blue.
CIFAR_MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
CIFAR_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
