"""Networks for digits, compiled under several output policies, and digits as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import lanner
from lanner import ImageDescription, Model
from lanner.datasets import load_digits

MODELS = Path(__file__).parents[3] / "models"

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: Dark ink on light paper, as on the gateway's page.
PICTURE = ImageDescription(1, (28, 28), invert=True)


@dataclass(frozen=True, slots=True)
class DigitModels:
    """Compiled models and their files."""

    folder: Path
    models: dict[str, Model]

    @property
    def files(self) -> list[Path]:
        """The files, whose names are the models'."""
        return [self.folder / f"{name}.lanner" for name in self.models]


def compile_digit_models(folder: Path) -> DigitModels:
    """`digits` tells a probability of a picture's class; `best`, `scores` and `plain` have no names and no pictures."""
    x = load_digits("train")[0][:256]
    mnist_d, mnist_a = MODELS / "mnist_d.onnx", MODELS / "mnist_a.onnx"
    models = {
        "digits": lanner.compile(
            mnist_d, x, input_range=(0, 1), output="probability", image=PICTURE, classes=list(NAMES), name="digits"
        ),
        "best": lanner.compile(mnist_a, x, input_range=(0, 1), output="top-k", k=3, name="best"),
        "scores": lanner.compile(mnist_a, x, input_range=(0, 1), output="logits", name="scores"),
        "plain": lanner.compile(mnist_a, x, input_range=(0, 1), output="label", name="plain"),
    }
    made = DigitModels(folder, models)
    for file, model in zip(made.files, models.values(), strict=True):
        model.save(file)
    return made


def save_picture(path: Path, pixels: NDArray[np.float32]) -> Path:
    """Write a digit of shape (1, 28, 28), 1 for ink, as dark ink on light paper."""
    Image.fromarray(np.rint(255 * (1 - pixels[0])).astype(np.uint8)).save(path)
    return path
