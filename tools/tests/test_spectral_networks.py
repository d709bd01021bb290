"""The networks with squares alone in models/: circulant weights, exact integers, and the accuracy told of them."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import os
from pathlib import Path

import fixed_point
import numpy as np
import pytest
from mnist import load_mnist
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
DATA = Path(os.environ.get("LANNER_DATA") or ROOT.parent / "shared" / "data")

CIFAR_IMAGES = 500

MODULI_BITS = 93
"""Three plaintext primes of 31 bits."""


def is_circulant(weight: NDArray[np.float64], block: int) -> bool:
    """Whether each weight at row a and column b of a block is that of the other a and b with the same (a - b) mod k."""
    rows, columns = weight.shape[:2]
    row, column = np.indices((rows, columns))
    place = row // block, column // block, (row - column) % block
    sides = (-(-rows // block), -(-columns // block), block, *weight.shape[2:])
    least, most = np.full(sides, np.inf), np.full(sides, -np.inf)
    np.minimum.at(least, place, weight)
    np.maximum.at(most, place, weight)
    return bool((weight == least[place]).all() and (weight == most[place]).all())


def cifar10(part: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The first images of CIFAR-10, which the folder keeps as differences between neighbours and colours."""
    path = DATA / "cifar10" / f"cifar10_{part}.npz"
    if not path.is_file():
        pytest.skip(f"CIFAR-10 is not in {DATA}; set LANNER_DATA to a folder that holds cifar10/")
    with np.load(path) as file:
        residual, y = file["residual"][:, :CIFAR_IMAGES], file["labels"][:CIFAR_IMAGES]
    pixels = residual.cumsum(axis=3, dtype=np.uint8).cumsum(axis=2, dtype=np.uint8)
    pixels[[0, 2]] += pixels[1]
    return pixels.swapaxes(0, 1) / 255, y.astype(np.int64)


def mnist(part: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if not (DATA / "mnist").is_dir():
        pytest.skip(f"MNIST is not in {DATA}; set LANNER_DATA to a folder that holds mnist/")
    x, y = load_mnist(DATA / "mnist", part)
    return x.astype(np.float64), y


@pytest.mark.parametrize(("name", "layer", "block"), [("mnist_b_circulant", 1, 8), ("lola_cifar_circulant", 1, 16)])
def test_weights_are_circulant_to_the_last_bit(name: str, layer: int, block: int) -> None:
    weight = fixed_point.read(MODELS / f"{name}.onnx")[layer].weight
    assert is_circulant(weight, block)
    assert not is_circulant(weight, 2 * block)
    changed = weight.copy()
    changed[-1, -1] = np.nextafter(changed[-1, -1], np.inf)
    assert not is_circulant(changed, block)


def test_dense_weights_are_not_circulant() -> None:
    assert not is_circulant(fixed_point.read(MODELS / "mnist_b.onnx")[1].weight, 8)


def test_double_precision_finds_the_integers() -> None:
    bits, pixels = (4, 5, 5, 6), np.random.default_rng(1).random((3, 1, 28, 28))
    layers, brightest = fixed_point.in_integers(fixed_point.read(MODELS / "mnist_b.onnx"), bits)
    x = np.rint(pixels * brightest)
    convolution, *matrices = layers
    # The convolution's sums are below 2^53, so exact in double precision; Python's integers go on from there.
    values = convolution(x).reshape(len(x), -1)
    assert np.abs(values).max() < 2**40
    for layer in matrices:
        values = whole(values) ** 2 @ whole(layer.weight.T) + whole(layer.bias)
    assert np.abs(values).max() > 2**53
    found = fixed_point.logits(layers, x)
    assert np.abs(found - values.astype(np.float64)).max() <= 1e-12 * np.abs(found).max()


def whole(values: NDArray[np.float64]) -> NDArray[np.object_]:
    return np.vectorize(int, otypes=[object])(values)


@pytest.mark.parametrize(
    ("name", "bits", "told"),
    [
        ("mnist_b", (3, 5, 4, 4), 0.9891),
        ("mnist_b_circulant", (3, 5, 6, 6), 0.9887),
        ("mnist_b_circulant", (5, 5, 6, 6), 0.9892),
        ("lola_cifar", (7, 8, 8, 8), 0.758),
        ("lola_cifar_circulant", (7, 8, 8, 8), 0.714),
    ],
)
def test_accuracy_in_integers_is_what_is_told(name: str, bits: tuple[int, ...], told: float) -> None:
    part = mnist if name.startswith("mnist") else cifar10
    calibration = part("train")[0][: fixed_point.CALIBRATION_SAMPLES]
    result = fixed_point.evaluate(fixed_point.read(MODELS / f"{name}.onnx"), bits, calibration, *part("test"))
    assert result.undecided == 0
    assert result.seen <= MODULI_BITS
    assert result.accuracy == pytest.approx(told, abs=1e-9)
