"""Reads PneumoniaMNIST's file, and writes from it what lanner's commands take.

    python models/pneumoniamnist.py DATA/pneumoniamnist.npz --output DIR [--pictures examples/pneumonia]

DIR receives ``calibration.npy``, the first 256 training images, and ``test.npz``, the whole test split. ``--pictures``
writes the ten pictures of the example: the first five of each class of the test split, in the file's order.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

CLASSES = ("normal", "pneumonia")

CALIBRATION_SAMPLES = 256
PICTURES_OF_A_CLASS = 5


def load_pneumonia(path: Path, split: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the ``train``, ``val`` or ``test`` split.

    Returns:
        ``(x, y)``: pixels ``(n, 1, 28, 28)`` in [0, 1], 1 for white, and labels ``(n,)``: 0 normal, 1 pneumonia.

    Raises:
        ValueError: if the file does not hold grey images of 28x28 and a label 0 or 1 for each.
    """
    with np.load(path, allow_pickle=False) as file:
        images, labels = file[f"{split}_images"], file[f"{split}_labels"].reshape(-1)
    grey = images.dtype == np.uint8 and images.shape == (len(labels), 28, 28)
    if not grey or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path} does not hold PneumoniaMNIST's {split} split")
    return (images[:, np.newaxis] / np.float32(255)).astype(np.float32), labels.astype(np.int64)


def main() -> None:
    """Parse the command line and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="pneumoniamnist.npz")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="also write the example's pictures")
    options = parser.parse_args()

    options.output.mkdir(parents=True, exist_ok=True)
    np.save(options.output / "calibration.npy", load_pneumonia(options.data, "train")[0][:CALIBRATION_SAMPLES])
    x, y = load_pneumonia(options.data, "test")
    np.savez(options.output / "test.npz", x=x, y=y)
    if options.pictures:
        write_pictures(x, y, options.pictures)


def write_pictures(x: npt.NDArray[np.float32], y: npt.NDArray[np.int64], folder: Path) -> None:
    """Write the first images of each class as ``normal-1.png`` and so on, and ``labels.csv`` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["picture,label"]
    for label, name in enumerate(CLASSES):
        for number, index in enumerate(np.flatnonzero(y == label)[:PICTURES_OF_A_CLASS], 1):
            picture = f"{name}-{number}.png"
            Image.fromarray(np.rint(x[index, 0] * 255).astype(np.uint8)).save(folder / picture, optimize=True)
            lines.append(f"{picture},{label}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
