"""How well a network with squares does in integers that are never rounded, and how many bits they take.

    python models/fixed_point.py models/mnist_b.onnx --data DIR --bits 3 4 5 6
    python models/fixed_point.py models/mnist_b.onnx --data DIR --bits 2-4 3-6 3-6 4-8

DIR holds MNIST's official files, or those of CIFAR-10's binary version, as the network's input asks. Of the choices in
given ranges those are printed that no other beats with as few bits.

Ciphertexts of mode ``spectral`` are added, multiplied and never rescaled. So pixels become integers of ``bits[0]``
bits, each layer's weights signed integers of that layer's bits, biases integers at the scale of their sums, and the
logits are what this polynomial with integer coefficients gives, which the product of the plaintext moduli must exceed.

Sums are taken in double precision, whose relative error, around 1e-13 here, is nothing beside the distance between two
logits; images for which that is not so are counted and printed. ``python/tests`` compares with Python's integers.
Needs onnx and numpy alone.
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from cifar10 import load_cifar10
from mnist import load_mnist
from onnx import numpy_helper

Array = npt.NDArray[np.float64]

CALIBRATION_SAMPLES = 256
MARGIN = 2
"""How many times the largest logit of the calibration samples must fit."""

UNDECIDED = 1e-9
"""Two largest logits that differ by less than this part of their size are not told apart with certainty."""

BATCH = 100


@dataclass(frozen=True)
class Layer:
    """A convolution ``(outputs, channels, height, width)`` or a matrix ``(outputs, inputs)``, and its bias."""

    weight: Array
    bias: Array
    stride: int = 1
    padding: int = 0

    def __call__(self, x: Array) -> Array:
        """The sums ``(n, outputs, ...)`` of ``x``, ``(n, ...)``."""
        if self.weight.ndim == 2:
            return x.reshape(len(x), -1) @ self.weight.T + self.bias
        width = (self.padding, self.padding)
        x = np.pad(x, [(0, 0), (0, 0), width, width])
        windows = np.lib.stride_tricks.sliding_window_view(x, self.weight.shape[2:], axis=(2, 3))
        windows = windows[:, :, :: self.stride, :: self.stride]
        sums = np.tensordot(windows, self.weight, axes=([1, 4, 5], [1, 2, 3]))
        return np.moveaxis(sums + self.bias, -1, 1)


def read(path: Path) -> list[Layer]:
    """The layers of a network in which a square stands behind each but the last.

    Raises:
        ValueError: if the network is of another form.
    """
    graph = onnx.load(path).graph
    values = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in graph.initializer}
    layers = []
    operators = [node.op_type for node in graph.node if node.op_type != "Flatten"]
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm"):
            named = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
            layers.append(
                Layer(
                    values[node.input[1]],
                    values[node.input[2]],
                    named.get("strides", [1])[0],
                    named.get("pads", [0])[0],
                )
            )
    if operators[1::2] != ["Mul"] * (len(layers) - 1) or len(operators) != 2 * len(layers) - 1:
        raise ValueError(f"{path} is not made of layers with squares between them")
    return layers


def in_integers(layers: list[Layer], bits: tuple[int, ...]) -> tuple[list[Layer], int]:
    """The layers with integer weights and biases, and the largest integer of a pixel.

    Args:
        layers: As `read` gives them.
        bits: Of a pixel, then of each layer's weights with their sign.
    """
    brightest = 2 ** bits[0] - 1
    scale = 1 / brightest
    whole = []
    for layer, width in zip(layers, bits[1:], strict=True):
        unit = np.abs(layer.weight).max() / (2 ** (width - 1) - 1)
        scale *= unit
        whole.append(Layer(np.rint(layer.weight / unit), np.rint(layer.bias / scale), layer.stride, layer.padding))
        scale *= scale
    return whole, brightest


def logits(layers: list[Layer], x: Array) -> Array:
    """The logits ``(n, classes)`` of ``x``, ``(n, channels, height, width)``."""
    return np.concatenate([_forward(layers, x[start : start + BATCH]) for start in range(0, len(x), BATCH)])


def _forward(layers: list[Layer], x: Array) -> Array:
    for layer in layers[:-1]:
        x = layer(x) ** 2
    return layers[-1](x)


def needed_bits(largest: float) -> float:
    """The bits of a plaintext modulus that holds `MARGIN` times this largest magnitude, of either sign."""
    return math.log2(2 * MARGIN * largest)


@dataclass(frozen=True)
class Result:
    """What a choice of bits gives."""

    bits: tuple[int, ...]
    needed: float
    """From the calibration samples."""
    seen: float
    """What the test part takes without a margin: all of it fits unless this is more."""
    accuracy: float
    undecided: int

    def __str__(self) -> str:
        choice = " ".join(map(str, self.bits))
        line = f"bits {choice}: {self.accuracy:.2%} with {self.needed:.1f} bits (test part {self.seen:.1f})"
        return line + (f", {self.undecided} images undecided" if self.undecided else "")


def evaluate(
    layers: list[Layer], bits: tuple[int, ...], calibration: Array, x: Array, y: npt.NDArray[np.int64]
) -> Result:
    """Classify ``x``, pixels in [0, 1] whose labels are ``y``, with these bits."""
    whole, brightest = in_integers(layers, bits)
    largest = np.abs(logits(whole, np.rint(calibration * brightest))).max()
    found = logits(whole, np.rint(x * brightest))
    second, first = np.sort(found, axis=1)[:, -2:].T
    size = np.abs(found).max(axis=1)
    return Result(
        bits,
        needed_bits(largest),
        math.log2(2 * np.abs(found).max()),
        float((found.argmax(axis=1) == y).mean()),
        int((first - second <= UNDECIDED * size).sum()),
    )


def unbeaten(results: list[Result]) -> list[Result]:
    """Those to which no other is as accurate with as few bits, by bits."""
    kept: list[Result] = []
    for result in sorted(results, key=lambda result: (result.needed, -result.accuracy)):
        if not kept or result.accuracy > kept[-1].accuracy:
            kept.append(result)
    return kept


def _span(text: str) -> range:
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def main() -> None:
    """Parse the command line, evaluate each choice of bits, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", type=Path)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--bits", type=_span, nargs="+", required=True, help="of a pixel, then of each layer's weights")
    parser.add_argument("--images", type=int, help="how many images of the test part, its first; all if not given")
    options = parser.parse_args()

    layers = read(options.network)
    load = load_mnist if layers[0].weight.shape[1] == 1 else load_cifar10
    calibration = load(options.data, "train")[0][:CALIBRATION_SAMPLES].astype(np.float64)
    x, y = load(options.data, "test")
    x, y = x[: options.images].astype(np.float64), y[: options.images]
    choices = itertools.product(*options.bits)
    for result in unbeaten([evaluate(layers, bits, calibration, x, y) for bits in choices]):
        print(result)


if __name__ == "__main__":
    main()
