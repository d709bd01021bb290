"""Random small networks: what exporters write, in any order, from one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from helpers.opset_writer import OpsetWriter

T = TypeVar("T")


@dataclass(frozen=True)
class RandomNetwork:
    """A network, samples for it, and what it is made of.

    Attributes:
        model: The model.
        x: Samples, shape (n, *input shape).
        batched: Whether it takes them at once.
        poison: The name of the node that lanner must refuse; empty where there is none.
    """

    model: onnx.ModelProto
    x: NDArray[np.float32]
    batched: bool
    poison: str


def random_network(seed: int, opset: int, poison: str = "") -> RandomNetwork:
    """The network of a seed; with a poison, an operator of `POISONS` is one of its steps."""
    rng = np.random.default_rng(seed)
    graph = RandomGraph(rng, OpsetWriter(opset, as_nodes=bool(rng.random() < 0.2)))
    shape = graph.shape
    steps = list(rng.permutation([*STEPS])[: rng.integers(3, 7)])
    if poison:
        steps.insert(int(rng.integers(0, len(steps))), poison)
    refused = ""
    for step in steps:
        if step == poison:
            POISONS[step](graph)
            refused = graph.value
        elif opset >= FIRST_OPSET.get(step, 0):
            STEPS[step](graph)
    graph.classify()
    batched = bool(rng.random() < 0.5)
    listed = bool(rng.random() < 0.3)
    model = graph.write.model(["n" if batched else 1, *shape], graph.value, listed=listed)
    x = rng.uniform(-1.0, 1.0, (24, *shape)).astype(np.float32)
    return RandomNetwork(model, x, batched, refused)


class RandomGraph:
    """A network that grows at its end, which holds an image until it is classified.

    Attributes:
        rng: The only source of randomness.
        write: The model so far.
        value: The last value's name.
        shape: The last value's shape, without the batch: channels, height, width.
    """

    def __init__(self, rng: np.random.Generator, write: OpsetWriter) -> None:
        self.rng = rng
        self.write = write
        self.value = "x"
        self.shape: tuple[int, ...] = (int(rng.integers(1, 4)), int(rng.integers(6, 10)), int(rng.integers(6, 10)))

    def then(self, operator: str, *inputs: str, **attributes: Any) -> None:  # noqa: ANN401 - as ONNX's own helper
        """Add a node that keeps the shape."""
        self.value = self.write.node(operator, self.value, *inputs, **attributes)

    def pick(self, *choices: T) -> T:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def weights(self, *shape: int, scale: float = 1.0) -> str:
        """Weights that keep values near one, times a scale."""
        spread = scale / math.sqrt(math.prod(shape[1:]))
        return self.write.floats(self.rng.standard_normal(shape) * spread)

    def numbers(self, *shape: int, low: float = -0.5, high: float = 0.5) -> str:
        """Uniform constants."""
        return self.write.floats(self.rng.uniform(low, high, shape))

    def conv_like(self, scale: float) -> str:
        """A convolution of the last value that keeps its shape; returns its name."""
        channels = self.shape[0]
        weight = self.weights(channels, channels, 3, 3, scale=scale)
        return self.write.node("Conv", self.value, weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def within(self, window: list[int]) -> list[int]:
        """The sides of a window that is no larger than the image."""
        return [min(wanted, side) for wanted, side in zip(window, self.shape[1:], strict=True)]

    def windowed(self, window: list[int], dilations: Sequence[int] = (1, 1)) -> dict[str, Any]:
        """Attributes of a window with pads of some kind; the shape becomes what comes out."""
        strides = [int(self.rng.integers(1, 3)), int(self.rng.integers(1, 3))]
        spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
        attributes: dict[str, Any] = {"kernel_shape": window, "strides": strides}
        auto = self.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
        sides = list(self.shape[1:])
        # onnxruntime takes these with neither dilations nor steps longer than the window.
        plain = set(dilations) == {1} and all(stride <= span for stride, span in zip(strides, spans, strict=True))
        if auto in ("SAME_UPPER", "SAME_LOWER") and plain:
            attributes["auto_pad"] = auto
            self.shape = (self.shape[0], *(-(-side // stride) for side, stride in zip(sides, strides, strict=True)))
            return attributes
        pads = [0, 0, 0, 0]
        if auto == "VALID":
            attributes["auto_pad"] = auto
        else:
            pads = [int(self.rng.integers(0, span)) if span < 4 else 0 for span in [*spans, *spans]]
            attributes["pads"] = pads
        padded = [side + pads[axis] + pads[axis + 2] for axis, side in enumerate(sides)]
        counts = [(whole - span) // stride + 1 for whole, span, stride in zip(padded, spans, strides, strict=True)]
        self.shape = (self.shape[0], *counts)
        return attributes

    def classify(self) -> None:
        """End in one row of scores."""
        size = math.prod(self.shape)
        head = self.pick("flatten", "flatten", "pool", "mean", "reshape", "subgraph")
        if head == "pool":
            self.then("GlobalAveragePool")
            self.value, size = self.write.node("Flatten", self.value), self.shape[0]
        elif head == "mean":
            self.value, size = self.write.reduce("ReduceMean", self.value, [2, 3], 0), self.shape[0]
        elif head == "flatten":
            self.value = self.write.node("Flatten", self.value, axis=1)
        elif head == "reshape":
            self.value = self.write.node("Reshape", self.value, self.write.integers([-1, size]))
        else:
            self.value = self._reshaped_by_subgraph()
        if self.rng.random() < 0.5:
            hidden = int(self.rng.integers(4, 12))
            self._dense(size, hidden)
            self.then(self.pick("Relu", "LeakyRelu"))
            size = hidden
        self._dense(size, int(self.rng.integers(2, 8)))
        if self.rng.random() < 0.3:
            self.then("Softmax", axis=1)

    def _dense(self, size: int, outputs: int) -> None:
        if self.rng.random() < 0.5:
            bias = self.numbers(outputs)
            self.value = self.write.node("Gemm", self.value, self.weights(outputs, size), bias, transB=1)
        else:
            weight = self.write.floats(self.rng.standard_normal((size, outputs)) / math.sqrt(size))
            self.value = self.write.node("MatMul", self.value, weight)
            self.then("Add", self.numbers(outputs))

    def _reshaped_by_subgraph(self) -> str:
        """As exporters write ``x.view(x.size(0), -1)``."""
        write = self.write
        batch = write.node("Gather", write.node("Shape", self.value), write.integers(0), axis=0)
        target = write.node("Concat", write.with_axes("Unsqueeze", batch, [0]), write.integers([-1]), axis=0)
        return write.node("Reshape", self.value, target)


def _conv(graph: RandomGraph) -> None:
    channels = graph.shape[0]
    groups = graph.pick(1, 1, channels)
    outputs = groups * int(graph.rng.integers(1, 4))
    window = [min(int(graph.rng.integers(1, 4)), side) for side in graph.shape[1:]]
    dilations = [2, 1] if graph.rng.random() < 0.2 and graph.shape[1] > 5 else [1, 1]
    inputs = [graph.weights(outputs, channels // groups, *window)]
    if graph.rng.random() < 0.5:
        inputs.append(graph.numbers(outputs))
    attributes = graph.windowed(window, dilations)
    graph.then("Conv", *inputs, group=groups, dilations=dilations, **attributes)
    graph.shape = (outputs, *graph.shape[1:])


def _max_pool(graph: RandomGraph) -> None:
    graph.then("MaxPool", **graph.windowed(graph.within([2, int(graph.rng.integers(1, 4))])))


def _average_pool(graph: RandomGraph) -> None:
    counted = int(graph.rng.integers(0, 2))
    window = graph.within([int(graph.rng.integers(1, 4)), 2])
    graph.then("AveragePool", count_include_pad=counted, **graph.windowed(window))


def _pool_rounding_up(graph: RandomGraph) -> None:
    graph.shape = (graph.shape[0], -(-graph.shape[1] // 2), -(-graph.shape[2] // 2))
    graph.then(graph.pick("MaxPool", "AveragePool"), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)


def _batch_normalization(graph: RandomGraph) -> None:
    channels = graph.shape[0]
    constants = [graph.numbers(channels, low=-1.5, high=1.5) for _ in range(3)]
    graph.then("BatchNormalization", *constants, graph.numbers(channels, low=0.5, high=2.0), epsilon=1e-3)


def _clip(graph: RandomGraph) -> None:
    low, high = graph.pick((0.0, 6.0), (0.0, 0.5), (-0.5, 0.5))
    graph.value = graph.write.clip(graph.value, low, high)


def _arithmetic(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    shape = graph.pick((), (1,), (channels, 1, 1), (1, channels, 1, 1), (width,), (height, width))
    operator = graph.pick("Add", "Sub", "Mul", "Div")
    constant = graph.numbers(*shape, low=0.5, high=2.0)
    if operator != "Div" and graph.rng.random() < 0.5:
        graph.value = graph.write.node(operator, constant, graph.value)
    else:
        graph.then(operator, constant)


def _residual(graph: RandomGraph) -> None:
    shortcut = graph.value
    scale = graph.pick(0.05, 1.0, 20.0)
    branch = graph.write.node("Relu", graph.conv_like(scale)) if graph.rng.random() < 0.5 else graph.conv_like(scale)
    graph.value = graph.write.node(graph.pick("Add", "Sub"), branch, shortcut)


def _square(graph: RandomGraph) -> None:
    if graph.rng.random() < 0.5:
        graph.then("Mul", graph.value)
    else:
        graph.then("Pow", graph.write.floats(2.0))


def _channels_last(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    graph.then("Transpose", perm=[0, 2, 3, 1])
    if graph.rng.random() < 0.5:
        channels = int(graph.rng.integers(2, 5))
        weight = graph.rng.standard_normal((graph.shape[0], channels)) / math.sqrt(graph.shape[0])
        graph.then("MatMul", graph.write.floats(weight))
    graph.then("Add", graph.numbers(channels))
    graph.then("Relu")
    graph.then("Transpose", perm=[0, 3, 1, 2])
    graph.shape = (channels, height, width)


def _pad(graph: RandomGraph) -> None:
    before, after = ([0, 0, *graph.rng.integers(0, 3, 2).tolist()] for _ in range(2))
    graph.value = graph.write.pad(graph.value, before, after, graph.pick(0.0, 0.0, 0.5))
    graph.shape = (graph.shape[0], *(side + before[2 + i] + after[2 + i] for i, side in enumerate(graph.shape[1:])))


def _slice(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    if graph.write.opset >= 10 and graph.rng.random() < 0.5:
        graph.value = graph.write.slice(graph.value, [2, 3], [0, 1], [2**40, 2**40], 2)
        graph.shape = (channels, -(-height // 2), width // 2)
    else:
        graph.value = graph.write.slice(graph.value, [-1, 2], [1, 0], [width, -1], 1)
        graph.shape = (channels, height - 1, width - 1)


def _split(graph: RandomGraph) -> None:
    axis = int(graph.rng.integers(1, 4))
    side = graph.shape[axis - 1]
    if side < 2:
        return
    first, second = graph.write.split(graph.value, axis, [1, side - 1])
    active = graph.write.node("Relu", first)
    graph.value = graph.write.node("Concat", second, active, axis=axis - 4)


def _concat(graph: RandomGraph) -> None:
    branch = graph.conv_like(graph.pick(0.1, 1.0, 5.0))
    graph.value = graph.write.node("Concat", graph.value, branch, axis=1)
    graph.shape = (2 * graph.shape[0], *graph.shape[1:])


def _concat_constant(graph: RandomGraph) -> None:
    graph.then("Concat", graph.numbers(1, 1, *graph.shape[1:]), axis=1)
    graph.shape = (graph.shape[0] + 1, *graph.shape[1:])


def _views(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    if graph.rng.random() < 0.5:
        graph.value = graph.write.with_axes("Unsqueeze", graph.value, [2])
        graph.value = graph.write.with_axes("Squeeze", graph.value, [2])
    else:
        graph.value = graph.write.node("Reshape", graph.value, graph.write.integers([0, 0, -1]))
        graph.value = graph.write.node("Reshape", graph.value, graph.write.integers([-1, channels, height, width]))


def _transposed(graph: RandomGraph) -> None:
    graph.then("Transpose", perm=[0, 1, 3, 2])
    channels, height, width = graph.shape
    graph.shape = (channels, width, height)


def _dropout(graph: RandomGraph) -> None:
    graph.value = graph.write.dropout(graph.value)


def _slopes(graph: RandomGraph) -> None:
    graph.then("PRelu", graph.numbers(graph.shape[0], 1, 1, low=0.0))


def _gate(graph: RandomGraph) -> None:
    channels = graph.shape[0]
    mean = graph.write.node("GlobalAveragePool", graph.value)
    gate = graph.write.node("HardSigmoid", graph.write.node("Conv", mean, graph.weights(channels, channels, 1, 1)))
    graph.then("Mul", gate)
    # Squares of squares would have more bits than rings hold: a layer comes first.
    graph.value = graph.conv_like(1.0)


def _hard_swish(graph: RandomGraph) -> None:
    graph.then("HardSwish")
    graph.value = graph.conv_like(1.0)


def _extremum(graph: RandomGraph) -> None:
    if graph.rng.random() < 0.5:
        graph.then(graph.pick("Max", "Min"), graph.numbers(graph.shape[0], 1, 1))
    else:
        graph.then(graph.pick("Max", "Min"), graph.conv_like(1.0))


def _conv_transpose(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    weight = graph.write.floats(graph.rng.standard_normal((channels, 2, 3, 2)) / math.sqrt(3 * channels))
    graph.then("ConvTranspose", weight, strides=[2, 1], pads=[1, 0, 1, 1])
    graph.shape = (2, 2 * height - 1, width)


def _upsample(graph: RandomGraph) -> None:
    channels, height, width = graph.shape
    graph.value = graph.write.upsample(graph.value, [1.0, 1.0, 2.0, 1.0])
    graph.shape = (channels, 2 * height, width)


def _reduced(graph: RandomGraph) -> None:
    """What is left of an axis, beside the image."""
    reduced = graph.write.reduce("ReduceMax", graph.value, [3], 1)
    graph.value = graph.write.node("Concat", graph.value, reduced, axis=3)
    graph.shape = (*graph.shape[:2], graph.shape[2] + 1)


def _attention(graph: RandomGraph) -> None:
    """Rows of the image by how like each other they are."""
    alike = graph.write.node("MatMul", graph.value, graph.write.node("Transpose", graph.value, perm=[0, 1, 3, 2]))
    graph.value = graph.write.node("MatMul", graph.write.node("Softmax", alike, axis=3), graph.value)


def _normalised(graph: RandomGraph) -> None:
    scale = graph.numbers(*graph.shape, low=0.5, high=1.5)
    graph.then("LayerNormalization", scale, graph.numbers(*graph.shape), axis=1)


STEPS: dict[str, Callable[[RandomGraph], None]] = {
    "conv": _conv,
    "second conv": _conv,
    "max pool": _max_pool,
    "average pool": _average_pool,
    "pool rounding up": _pool_rounding_up,
    "batch normalization": _batch_normalization,
    "relu": lambda graph: graph.then("Relu"),
    "leaky relu": lambda graph: graph.then("LeakyRelu", alpha=0.1),
    "clip": _clip,
    "arithmetic": _arithmetic,
    "residual": _residual,
    "square": _square,
    "channels last": _channels_last,
    "pad": _pad,
    "slice": _slice,
    "split": _split,
    "concat": _concat,
    "concat with a constant": _concat_constant,
    "views": _views,
    "transposed": _transposed,
    "magnitudes": lambda graph: graph.then("Abs"),
    "slopes by channel": _slopes,
    "hard swish": _hard_swish,
    "gate": _gate,
    "extremum": _extremum,
    "transposed convolution": _conv_transpose,
    "upsample": _upsample,
    "reduced": _reduced,
    "sigmoid": lambda graph: graph.then("Sigmoid"),
    "tangent": lambda graph: graph.then("Tanh"),
    "exponential linear unit": lambda graph: graph.then("Elu"),
    "softplus": lambda graph: graph.then("Softplus"),
    "silu": lambda graph: graph.then("Mul", graph.write.node("Sigmoid", graph.value)),
    "softmax": lambda graph: graph.then("Softmax", axis=3),
    "attention": _attention,
    "normalised": _normalised,
    "product of two": lambda graph: graph.then("Mul", graph.conv_like(1.0)),
    "identity": lambda graph: graph.then("Identity"),
    "dropout": _dropout,
}

#: Steps that older opsets do not have.
FIRST_OPSET = {"pool rounding up": 10, "hard swish": 14, "extremum": 8, "normalised": 17}

#: Operators that lanner does not take, each as a step on an image; they are named after this.
POISONS: dict[str, Callable[[RandomGraph], None]] = {
    "Tan": lambda graph: graph.then("Tan"),
    "Atan": lambda graph: graph.then("Atan"),
    "MaxPool": lambda graph: graph.then("MaxPool", kernel_shape=[1, 1], strides=[1, 1], auto_pad="SAME"),
    "Floor": lambda graph: graph.then("Floor"),
}
