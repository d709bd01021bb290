"""Reads the official MNIST files (idx format, gzip) from a folder."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

_PREFIX = {"train": "train", "test": "t10k"}


def load_mnist(folder: Path, split: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return MNIST's ``train`` or ``test`` part.

    Returns:
        ``(x, y)``: pixels ``(n, 1, 28, 28)`` in [0, 1], 1 for ink, and labels ``(n,)``, 0 to 9.

    Raises:
        ValueError: if a file is not the idx file its name promises.
    """
    images = _read(folder / f"{_PREFIX[split]}-images-idx3-ubyte.gz", dimensions=3)
    labels = _read(folder / f"{_PREFIX[split]}-labels-idx1-ubyte.gz", dimensions=1)
    return (images[:, np.newaxis] / np.float32(255)).astype(np.float32), labels.astype(np.int64)


def _read(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    content = gzip.decompress(path.read_bytes())
    header = 4 + 4 * dimensions
    unsigned_bytes = 0x0800
    magic, *shape = struct.unpack(f">{1 + dimensions}I", content[:header])
    if magic != unsigned_bytes + dimensions or len(content) != header + int(np.prod(shape)):
        raise ValueError(f"{path} is not an idx file of {dimensions} dimensions")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
