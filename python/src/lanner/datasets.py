"""Handwritten digits that the demo classifies and the embedded networks were trained on.

scikit-learn carries 1,797 handwritten digits of Alpaydin and Kaynak (UCI): 8 x 8 pixels with integer values 0 to 16.
They are scaled here to the 28 x 28 pixels that MNIST networks expect, and split once and for all: the first 80% may
be used to train and to calibrate, the last 20% are for tests and the demo alone.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Split = Literal["train", "test"]

TRAIN_COUNT = 1437
"""The digits ``[0, TRAIN_COUNT)`` may be trained on; ``[TRAIN_COUNT, 1797)`` may not."""

SIDE = 28
"""Height and width of a scaled digit, in pixels."""

BOX = 20
"""The digit itself fills a box of 20 x 20 pixels in the middle, as MNIST's digits do."""


def load_digits(split: Split) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return scikit-learn's handwritten digits of one split, scaled to 28 x 28.

    Returns:
        ``(x, y)``: pixels of shape ``(n, 1, 28, 28)`` in [0, 1], 1 for ink, and labels of shape ``(n,)``, 0 to 9.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed.
    """
    from sklearn import datasets  # An optional dependency, needed by the demo only.

    images, labels = datasets.load_digits(return_X_y=True)
    chosen = slice(None, TRAIN_COUNT) if split == "train" else slice(TRAIN_COUNT, None)
    return scale_digits(images[chosen].reshape(-1, 8, 8)), labels[chosen].astype(np.int64)


def scale_digits(images: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Scale ``(n, 8, 8)`` digits with values 0 to 16 to ``(n, 1, 28, 28)`` in [0, 1].

    Bilinear between pixel centres to 20 x 20, then four blank pixels on each side.
    """
    stretch = _bilinear(images.shape[-1], BOX)
    scaled = stretch @ (images / 16.0) @ stretch.T
    margin = (SIDE - BOX) // 2
    padded = np.pad(scaled, ((0, 0), (margin, margin), (margin, margin)))
    return padded[:, np.newaxis].astype(np.float32)


def _bilinear(source: int, target: int) -> npt.NDArray[np.float64]:
    """The ``(target, source)`` matrix that interpolates linearly between pixel centres and repeats the border."""
    centres = (np.arange(target) + 0.5) * source / target - 0.5
    centres = centres.clip(0, source - 1)
    left = np.minimum(np.floor(centres).astype(int), source - 2)
    fraction = centres - left
    matrix = np.zeros((target, source))
    matrix[np.arange(target), left] = 1 - fraction
    matrix[np.arange(target), left + 1] = fraction
    return matrix
