"""Networks for ImageNet as ONNX files, with seeded random weights.

Layer for layer those of torchvision: He et al. 2016 (ResNet-18, ResNet-50 with the stride in the 3x3 layer), Sandler et
al. 2018 (MobileNetV2), Iandola et al. 2016 (SqueezeNet 1.0), Huang et al. 2017 (DenseNet-121) and Krizhevsky 2014
(AlexNet). Weights are normal with the variance of He et al. 2015, so that activations keep their size from layer to
layer; normalisations have made-up statistics. Such a network costs what a trained one does; its labels mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.benchmarks.graphs import Built
from lanner.model import compile  # noqa: A004 - the interface's name
from lanner.options import Protocols

#: Height and width of the images that these networks are made for.
SIDE = 224
CLASSES = 1000

SEED = 20_260_101
SAMPLES = 8
OPSET = 17

#: What either party may hold of the largest.
MEMORY = "12GB"

#: What the last normalisation of a residual block multiplies by, so that sums over many blocks stay small.
RESIDUAL_GAIN = 0.5


def imagenet_model(name: str, side: int = SIDE, classes: int = CLASSES) -> onnx.ModelProto:
    """A network with input ``x`` of shape (n, 3, side, side) and output ``scores`` of shape (n, classes).

    Args:
        name: One of `NETWORKS`.
        side: Height and width of an image: 32 or more, of ``alexnet`` 64. It has fewer weights behind smaller ones.
        classes: Number of scores.
    """
    network = _Network((3, side, side))
    scores = NETWORKS[name](network, "x", classes)
    return network.finish(name, scores)


def build_imagenet(name: str, protocols: Protocols, side: int = SIDE) -> Built:
    """A network compiled on random images, of which one more is returned; with 8 bits where no precision is asked for.

    What it may take is left to the machine that measures it.
    """
    images = np.random.default_rng(SEED).random((SAMPLES + 1, 3, side, side), dtype=np.float32)
    model = compile(
        imagenet_model(name, side),
        images[:-1],
        mode=protocols.mode,
        output=protocols.output("logits"),
        name=name,
        rounding=protocols.rounding,
        precision=protocols.precision or 8,
        input_range=(0, 1),
        max_memory=MEMORY,
        network=protocols.network,
        kernel_times=protocols.kernel_times,
        batch=protocols.batch,
    )
    return model, images[-1]


class _Network:
    """Collects ONNX nodes and draws their weights, in order."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self._rng = np.random.default_rng(SEED)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._shape = shape
        self._sizes = {"x": shape}

    def channels(self, x: str) -> int:
        return self._sizes[x][0]

    def conv(
        self, x: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, *, groups: int = 1, bias: bool = False
    ) -> str:
        inputs = self.channels(x) // groups
        name = f"conv{len(self._nodes)}"
        tensors = [self._draw(f"{name}.weight", (outputs, inputs, kernel, kernel), 2 / (inputs * kernel**2))]
        if bias:
            tensors.append(self._draw(f"{name}.bias", (outputs,), 0.01))
        self._add(
            "Conv",
            name,
            [x, *tensors],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=groups,
        )
        return self._sized(name, outputs, self._windows(x, kernel, stride, pad))

    def batch_norm(self, x: str, gain: float = 1.0) -> str:
        channels = self.channels(x)
        name = f"bn{len(self._nodes)}"
        tensors = {
            "scale": gain * self._rng.uniform(0.8, 1.2, channels),
            "bias": self._rng.uniform(-0.1, 0.1, channels),
            "mean": self._rng.uniform(-0.1, 0.1, channels),
            "var": self._rng.uniform(0.8, 1.2, channels),
        }
        kept = [self._keep(f"{name}.{role}", values) for role, values in tensors.items()]
        self._add("BatchNormalization", name, [x, *kept])
        return self._sized(name, channels, self._sizes[x][1:])

    def relu(self, x: str) -> str:
        return self._same("Relu", [x])

    def relu6(self, x: str) -> str:
        bounds = [
            self._keep(f"{bound}{len(self._nodes)}", np.array(value)) for bound, value in (("low", 0.0), ("high", 6.0))
        ]
        return self._same("Clip", [x, *bounds])

    def add(self, x: str, y: str) -> str:
        return self._same("Add", [x, y])

    def concat(self, *parts: str) -> str:
        name = f"concat{len(self._nodes)}"
        self._add("Concat", name, list(parts), axis=1)
        return self._sized(name, sum(map(self.channels, parts)), self._sizes[parts[0]][1:])

    def pool(self, operator: str, x: str, kernel: int, stride: int, pad: int = 0, *, ceil: bool = False) -> str:
        name = f"pool{len(self._nodes)}"
        self._add(
            operator,
            name,
            [x],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            ceil_mode=int(ceil),
        )
        return self._sized(name, self.channels(x), self._windows(x, kernel, stride, pad, ceil=ceil))

    def flat(self, x: str, *, pooled: bool) -> str:
        """The image as a vector; the mean of each channel if it is pooled."""
        name = f"flat{len(self._nodes)}"
        size = self._sizes[x]
        if pooled:
            self._add("GlobalAveragePool", f"{name}.mean", [x])
            x = f"{name}.mean"
        self._add("Flatten", name, [x])
        return self._sized(name, size[0] if pooled else math.prod(size), (1, 1))

    def dense(self, x: str, outputs: int, *, gain: float = 2.0) -> str:
        inputs = self.channels(x)
        name = f"fc{len(self._nodes)}"
        weight = self._draw(f"{name}.weight", (outputs, inputs), gain / inputs)
        self._add("Gemm", name, [x, weight, self._draw(f"{name}.bias", (outputs,), 0.01)], transB=1)
        return self._sized(name, outputs, (1, 1))

    def finish(self, name: str, scores: str) -> onnx.ModelProto:
        self._nodes[-1].output[0] = "scores"
        shapes: Mapping[str, Sequence[int | str]] = {
            "x": ("n", *self._shape),
            "scores": ("n", self.channels(scores)),
        }
        values = [helper.make_tensor_value_info(role, onnx.TensorProto.FLOAT, shapes[role]) for role in shapes]
        graph = helper.make_graph(self._nodes, name, values[:1], values[1:], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def _same(self, operator: str, inputs: list[str]) -> str:
        name = f"{operator.lower()}{len(self._nodes)}"
        self._add(operator, name, inputs)
        return self._sized(name, self.channels(inputs[0]), self._sizes[inputs[0]][1:])

    def _add(self, operator: str, name: str, inputs: list[str], **attributes: Any) -> None:  # noqa: ANN401 - ONNX's
        self._nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))

    def _sized(self, name: str, channels: int, size: tuple[int, ...]) -> str:
        self._sizes[name] = (channels, size[0], size[1])
        return name

    def _windows(self, x: str, kernel: int, stride: int, pad: int, *, ceil: bool = False) -> tuple[int, ...]:
        room = [size + 2 * pad - kernel for size in self._sizes[x][1:]]
        return tuple((-(-left // stride) if ceil else left // stride) + 1 for left in room)

    def _draw(self, name: str, shape: tuple[int, ...], variance: float) -> str:
        return self._keep(name, self._rng.standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(variance)))

    def _keep(self, name: str, values: NDArray[np.floating]) -> str:
        self._weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name


def _normalised(network: _Network, x: str, outputs: int, kernel: int, stride: int = 1, gain: float = 1.0) -> str:
    """A convolution that covers its input, and its normalisation."""
    return network.batch_norm(network.conv(x, outputs, kernel, stride, kernel // 2), gain)


def _resnet_stem(network: _Network, x: str) -> str:
    return network.pool("MaxPool", network.relu(_normalised(network, x, 64, 7, 2)), 3, 2, 1)


def _resnet(network: _Network, x: str, classes: int, blocks: tuple[int, ...], *, bottleneck: bool) -> str:
    x = _resnet_stem(network, x)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                y = network.relu(_normalised(network, x, width, 1))
                y = network.relu(_normalised(network, y, width, 3, stride))
                y = _normalised(network, y, outputs, 1, gain=RESIDUAL_GAIN)
            else:
                y = network.relu(_normalised(network, x, width, 3, stride))
                y = _normalised(network, y, outputs, 3, gain=RESIDUAL_GAIN)
            is_same = stride == 1 and network.channels(x) == outputs
            shortcut = x if is_same else _normalised(network, x, outputs, 1, stride)
            x = network.relu(network.add(y, shortcut))
    return network.dense(network.flat(x, pooled=True), classes)


def _resnet18(network: _Network, x: str, classes: int) -> str:
    return _resnet(network, x, classes, (2, 2, 2, 2), bottleneck=False)


def _resnet50(network: _Network, x: str, classes: int) -> str:
    return _resnet(network, x, classes, (3, 4, 6, 3), bottleneck=True)


#: Expansion, output channels, blocks and first stride of MobileNetV2's stages.
_MOBILE_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _mobilenet_v2(network: _Network, x: str, classes: int) -> str:
    x = network.relu6(_normalised(network, x, 32, 3, 2))
    for expansion, outputs, blocks, first in _MOBILE_STAGES:
        for block in range(blocks):
            stride = first if block == 0 else 1
            inputs = network.channels(x)
            hidden = expansion * inputs
            y = x if expansion == 1 else network.relu6(_normalised(network, x, hidden, 1))
            y = network.relu6(network.batch_norm(network.conv(y, hidden, 3, stride, 1, groups=hidden)))
            is_same = stride == 1 and inputs == outputs
            y = _normalised(network, y, outputs, 1, gain=RESIDUAL_GAIN if is_same else 1.0)
            x = network.add(x, y) if is_same else y
    x = network.relu6(_normalised(network, x, 1280, 1))
    return network.dense(network.flat(x, pooled=True), classes)


def _fire(network: _Network, x: str, squeezed: int, expanded: int) -> str:
    x = network.relu(network.conv(x, squeezed, 1, bias=True))
    parts = (network.conv(x, expanded, 1, bias=True), network.conv(x, expanded, 3, pad=1, bias=True))
    return network.concat(*map(network.relu, parts))


#: Channels between and behind the layers of SqueezeNet's fire modules; pools stand in front of some.
_FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
_POOLED_FIRES = (0, 3, 7)


def _squeezenet(network: _Network, x: str, classes: int) -> str:
    x = network.relu(network.conv(x, 96, 7, 2, bias=True))
    for index, (squeezed, expanded) in enumerate(_FIRES):
        if index in _POOLED_FIRES:
            x = network.pool("MaxPool", x, 3, 2, ceil=True)
        x = _fire(network, x, squeezed, expanded)
    x = network.relu(network.conv(x, classes, 1, bias=True))
    return network.flat(x, pooled=True)


def _densenet121(network: _Network, x: str, classes: int) -> str:
    x = _resnet_stem(network, x)
    growth = 32
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage > 0:
            x = network.conv(network.relu(network.batch_norm(x)), network.channels(x) // 2, 1)
            x = network.pool("AveragePool", x, 2, 2)
        for _ in range(layers):
            y = network.conv(network.relu(network.batch_norm(x)), 4 * growth, 1)
            y = network.conv(network.relu(network.batch_norm(y)), growth, 3, pad=1)
            x = network.concat(x, y)
    x = network.relu(network.batch_norm(x))
    return network.dense(network.flat(x, pooled=True), classes)


def _alexnet(network: _Network, x: str, classes: int) -> str:
    pooled = (True, True, False, False, True)
    layers = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
    for is_pooled, (outputs, kernel, stride, pad) in zip(pooled, layers, strict=True):
        x = network.relu(network.conv(x, outputs, kernel, stride, pad, bias=True))
        if is_pooled:
            x = network.pool("MaxPool", x, 3, 2)
    x = network.flat(x, pooled=False)
    for _ in range(2):
        x = network.relu(network.dense(x, 4096))
    return network.dense(x, classes)


#: Each adds its layers behind an image; the result is the scores.
NETWORKS: Mapping[str, Callable[[_Network, str, int], str]] = {
    "resnet18": _resnet18,
    "resnet50": _resnet50,
    "mobilenet_v2": _mobilenet_v2,
    "squeezenet": _squeezenet,
    "densenet121": _densenet121,
    "alexnet": _alexnet,
}
