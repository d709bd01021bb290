"""Reads the official CIFAR-10 files (binary version) from a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

_FILES = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}

_PIXELS = 3 * 32 * 32


def load_cifar10(folder: Path, split: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return CIFAR-10's ``train`` or ``test`` part.

    Returns:
        ``(x, y)``: pixels ``(n, 3, 32, 32)`` in [0, 1], red, green, blue, and labels ``(n,)``, 0 to 9.

    Raises:
        ValueError: if a file does not hold whole records of a label and 3,072 pixels.
    """
    records = np.concatenate([_read(folder / name) for name in _FILES[split]])
    images = records[:, 1:].reshape(-1, 3, 32, 32)
    return images / np.float32(255), records[:, 0].astype(np.int64)


def _read(path: Path) -> npt.NDArray[np.uint8]:
    content = np.fromfile(path, np.uint8)
    if not len(content) or len(content) % (1 + _PIXELS) or (content[:: 1 + _PIXELS] > 9).any():
        raise ValueError(f"{path} is not a file of CIFAR-10's binary version")
    return content.reshape(-1, 1 + _PIXELS)
