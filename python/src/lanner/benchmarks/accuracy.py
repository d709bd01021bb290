"""How often networks are right on their test sets: in floating point, and in the integers that secure runs equal.

python -m lanner.benchmarks.accuracy --mode falcon --data DIR

One document a line. The folder holds ``mnist`` with its four files, and ``cifar10`` and ``models`` as `lanner bench`
reads them. Calibration takes the first training images.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.markdown import filled
from lanner.benchmarks.networks import load_cifar10
from lanner.embedded import CALIBRATION_SAMPLES
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.options import AVAILABLE_MODES

Images = NDArray[np.float32]
Labels = NDArray[np.int64]

#: Images computed at once.
BATCH = 256

#: In percent, by mode and network: the paper's plaintext and its secure accuracy, of its own weights.
PAPERS = {("falcon", "mnist_d"): (99.31, 99.26), ("falcon", "cifar10_minionn"): (81.61, 81.61)}


def accuracies(mode: str, data: Path, limit: int | None) -> Iterator[dict[str, Any]]:
    """The documents of the networks that papers give an accuracy for."""
    for name, model, x, y in (_mnist(mode, data, limit), _cifar10(mode, data, limit)):
        batches = [slice(start, start + BATCH) for start in range(0, len(x), BATCH)]
        exact = np.concatenate([model.predict_float(x[batch]) for batch in batches]).argmax(1)
        integers = [model.predict_integers(x[batch]) for batch in batches]
        fixed = np.concatenate([values for values, _ in integers]).argmax(1)
        yield {
            "bench": "accuracy",
            "mode": mode,
            "name": name,
            "images": len(x),
            "float": float((exact == y).mean()),
            "fixed": float((fixed == y).mean()),
            "labels_agree": int((exact == fixed).sum()),
            "overflows": sum(met for _, met in integers),
        }


def accuracy_table(lines: Sequence[dict[str, Any]]) -> str:
    """The documents of a mode as a table, beside its paper's figures."""
    columns = ("network", "images", "float", "secure", "labels as float", "paper's float", "paper's secure")
    return filled(columns, (_row(line) for line in lines))


def _row(line: dict[str, Any]) -> tuple[object, ...]:
    given = PAPERS.get((line["mode"], line["name"]), (None, None))
    ours = (f"{line[kind]:.2%}" for kind in ("float", "fixed"))
    papers = (None if percent is None else f"{percent:.2f}%" for percent in given)
    return (line["name"], line["images"], *ours, f"{line['labels_agree'] / line['images']:.2%}", *papers)


def _mnist(mode: str, data: Path, limit: int | None) -> tuple[str, Model, Images, Labels]:
    folder = data / "mnist"
    calibration = _digits(folder / "train-images-idx3-ubyte.gz", CALIBRATION_SAMPLES)
    x = _digits(folder / "t10k-images-idx3-ubyte.gz", limit)
    y = _read_idx(folder / "t10k-labels-idx1-ubyte.gz", 8)[:limit].astype(np.int64)
    with as_file(files("lanner") / "networks" / "mnist_d.onnx") as path:
        model = compile(path, calibration, mode=mode, name="mnist_d")
    return "mnist_d", model, x, y


def _cifar10(mode: str, data: Path, limit: int | None) -> tuple[str, Model, Images, Labels]:
    calibration = load_cifar10(data, CALIBRATION_SAMPLES, "train")
    with np.load(data / "cifar10" / "cifar10_test.npz") as file:
        y = file["labels"][:limit].astype(np.int64)
    x = load_cifar10(data, len(y))
    path = data / "models" / "cifar10_delphi_minionn_relu" / "model.onnx"
    model = compile(path, calibration, mode=mode, name="cifar10_minionn")
    return "cifar10_minionn", model, x.clip(model.manifest.input.low, model.manifest.input.high), y


def _digits(path: Path, count: int | None) -> Images:
    """The first images, (n, 1, 28, 28) in [0, 1]."""
    return _read_idx(path, 16).reshape(-1, 1, 28, 28)[:count].astype(np.float32) / np.float32(255)


def _read_idx(path: Path, header: int) -> NDArray[np.uint8]:
    """The bytes behind the header of one of MNIST's files."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def main(arguments: Sequence[str]) -> int:
    """Print a document for each network."""
    parser = argparse.ArgumentParser(prog="lanner.benchmarks.accuracy", description="Print accuracies.")
    parser.add_argument("--mode", choices=AVAILABLE_MODES, required=True)
    parser.add_argument("--data", required=True, type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N images of each test set")
    options = parser.parse_args(arguments)
    for document in accuracies(options.mode, options.data, options.limit):
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
