"""How often networks are right on their test sets: in floating point, and in the integers that secure runs equal.

python -m bench.accuracy --mode falcon --data DIR [--secure [N]]

One document a line. The folder holds ``mnist`` with its four files, ``cifar10``, ``cifar100``, ``usps``,
``mlperf_tiny`` and ``models``; networks that are not there are left out. Calibration takes the first training images;
where there are none, test samples, evenly spread, without their labels.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.markdown import filled
from lanner.agreement import agrees
from lanner.benchmarks.networks import CIFAR100_ORDER, CIFAR_DEVIATION, CIFAR_MEAN, load_cifar10, load_cifar100
from lanner.cli.process import ServerProcess
from lanner.embedded import CALIBRATION_SAMPLES
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.options import INTERACTIVE_MODES, MODES

Images = NDArray[np.float32]
Labels = NDArray[np.int64]

#: Images of a folder of data, of its ``train`` or ``test`` part; all, or the first of them.
Loader = Callable[[Path, str, int | None], tuple[Images, Labels]]

#: Images computed at once.
BATCH = 256

#: In percent, by mode and network: the paper's plaintext and its secure accuracy, of its own weights.
PAPERS = {("falcon", "mnist_d"): (99.31, 99.26), ("falcon", "cifar10_minionn"): (81.61, 81.61)}


@dataclass(frozen=True, slots=True)
class Tested:
    """A network with its test set.

    Attributes:
        name: Its name on the page.
        file: The ONNX file below ``models`` in the folder of data; None for a network that comes with the package.
        load: Its images, as it takes them, and their labels.
        secure: How many images the two parties compute too, if that is asked for.
        modes: The modes that it is measured in.
    """

    name: str
    file: str | None
    load: Loader
    secure: int = 50
    modes: Sequence[str] = INTERACTIVE_MODES


def accuracies(
    mode: str, data: Path, limit: int | None, *, secure: int | None = None, only: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """The documents of the networks that are there.

    Args:
        mode: What they are compiled for.
        data: The folder of data.
        limit: The first images of each test set; None for all.
        secure: How many of the first images the two parties compute too, 0 for each network's own number; what is
            learned is all scores. None for none.
        only: Names; none for all.
    """
    for tested in TESTED:
        path = None if tested.file is None else data / "models" / tested.file / "model.onnx"
        if (only and tested.name not in only) or (path is not None and not path.is_file()) or mode not in tested.modes:
            continue
        calibration, _ = tested.load(data, "train", CALIBRATION_SAMPLES)
        model = _compile(tested.name, path, calibration, mode)
        x, y = tested.load(data, "test", limit)
        x = model.manifest.input.clip(x)
        yield {
            "bench": "accuracy",
            "mode": mode,
            "name": tested.name,
            "logit_error": None if model.precision is None else model.precision.logit_error,
            **_on_references(model, x, y),
            "secure": None if secure is None else on_both_parties(model, x[: secure or tested.secure]),
        }


def _compile(name: str, path: Path | None, calibration: Images, mode: str) -> Model:
    if path is not None:
        return compile(path, calibration, mode=mode, output="logits", name=name, rounding="exact", allow_imprecise=True)
    with as_file(files("lanner") / "networks" / f"{name}.onnx") as embedded:
        return compile(
            embedded, calibration, mode=mode, output="logits", name=name, rounding="exact", allow_imprecise=True
        )


def _on_references(model: Model, x: Images, y: Labels) -> dict[str, Any]:
    batches = [slice(start, start + BATCH) for start in range(0, len(x), BATCH)]
    exact = np.concatenate([model.predict_float(x[batch]) for batch in batches]).argmax(1)
    integers = [model.predict_integers(x[batch]) for batch in batches]
    fixed = np.concatenate([values for values, _ in integers]).argmax(1)
    return {
        "images": len(x),
        "float": float((exact == y).mean()),
        "fixed": float((fixed == y).mean()),
        "labels_agree": int((exact == fixed).sum()),
        "overflows": sum(met for _, met in integers),
    }


def on_both_parties(model: Model, x: Images) -> dict[str, int]:
    """On how many images two processes give the reference's integers."""
    references = model.predict_integers(x)[0]
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / "accuracy.lanner"
        model.save(path)
        with ServerProcess([str(path)]) as server, server.connect() as client:
            predictions = client.predict_batch(x)
    equal = [
        agrees(prediction, reference, model) for prediction, reference in zip(predictions, references, strict=True)
    ]
    return {"images": len(x), "equal": sum(equal)}


def accuracy_table(lines: Sequence[dict[str, Any]]) -> str:
    """The documents of a mode as a table, beside its paper's figures."""
    columns = (
        *(
            "network",
            "images",
            "float",
            "fixed-point",
            "logit error",
            "labels as float",
            "overflows",
            "secure = fixed-point",
        ),
        *("paper's float", "paper's secure"),
    )
    return filled(columns, (_row(line) for line in lines))


def _row(line: dict[str, Any]) -> tuple[object, ...]:
    given = PAPERS.get((line["mode"], line["name"]), (None, None))
    ours = (f"{line[kind]:.2%}" for kind in ("float", "fixed"))
    papers = (None if percent is None else f"{percent:.2f}%" for percent in given)
    # Lines that were written before the parties computed images too have none.
    secure = line.get("secure")
    equal = None if secure is None else f"{secure['equal']} of {secure['images']}"
    # Nor have those that were written before precision could be asked for an error.
    error = line.get("logit_error")
    said = None if error is None else f"{error:.2%}"
    agree = f"{line['labels_agree'] / line['images']:.2%}"
    return (line["name"], line["images"], *ours, said, agree, line["overflows"], equal, *papers)


def _mnist(change: Callable[[Images], Images], data: Path, part: str, count: int | None) -> tuple[Images, Labels]:
    """Images (n, 1, 28, 28), changed from 0 to 255."""
    stem = {"train": "train", "test": "t10k"}[part]
    pixels = _read_idx(data / "mnist" / f"{stem}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    y = _read_idx(data / "mnist" / f"{stem}-labels-idx1-ubyte.gz", 8)
    return change(pixels[:count].astype(np.float32)), y[:count].astype(np.int64)


def _cifar10(change: Callable[[Images], Images], data: Path, part: str, count: int | None) -> tuple[Images, Labels]:
    """Images (n, 3, 32, 32), changed from [0, 1]."""
    with np.load(data / "cifar10" / f"cifar10_{part}.npz") as file:
        y = file["labels"][:count].astype(np.int64)
    return change(load_cifar10(data, len(y), part)), y


def _cifar100(data: Path, _: str, count: int | None) -> tuple[Images, Labels]:
    """Images (n, 3, 32, 32) in [0, 1] of the test split, which there is alone, one class after the other."""
    with np.load(data / "cifar100" / "cifar100_test.npz") as file:
        y = file["fine_labels"][CIFAR100_ORDER[:count]].astype(np.int64)
    return load_cifar100(data, len(y)), y


def _digits(data: Path, part: str, count: int | None) -> tuple[Images, Labels]:
    """USPS (n, 16, 16)."""
    with np.load(data / "usps" / "usps_t_libsvm_test.npz") as file:
        return _spread(file["images"], file["labels"], part, count)


def _keywords(data: Path, part: str, count: int | None) -> tuple[Images, Labels]:
    """Speech commands as coefficients (n, 49, 10), labels in the order of ARM's networks."""
    with np.load(data / "mlperf_tiny" / "kws01_mfcc_int8.npz") as file:
        frames = (file["mfcc_int8"].astype(np.float32) - file["zero_point"]) * file["scale"]
    return _spread(frames, np.load(data / "mlperf_tiny" / "kws01_labels_arm_order.npy"), part, count)


def _spread(x: Images, y: Labels, part: str, count: int | None) -> tuple[Images, Labels]:
    """The first samples, or for a part to calibrate on, evenly spread ones."""
    wanted = slice(count) if part == "test" or count is None else np.linspace(0, len(x) - 1, count).astype(np.int64)
    return x[wanted].astype(np.float32), y[wanted].astype(np.int64)


def _read_idx(path: Path, header: int) -> NDArray[np.uint8]:
    """The bytes behind the header of one of MNIST's files."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


_unit = partial(_mnist, lambda pixels: pixels / np.float32(255))
_per_256 = partial(_mnist, lambda pixels: pixels / np.float32(256))
_standard = partial(_mnist, lambda pixels: ((pixels / 255 - 0.1307) / 0.3081).astype(np.float32))
_colour = partial(_cifar10, lambda x: x)
_standard_colour = partial(_cifar10, lambda x: (x - CIFAR_MEAN) / CIFAR_DEVIATION)

#: The networks, and what each one's training made of its images.
TESTED = (
    *(Tested(f"mnist_{letter}", None, _unit) for letter in "abcd"),
    Tested("mnist_crypten_a", "mnist_crypten_tfe_a", _standard),
    Tested("mnist_crypten_b", "mnist_crypten_tfe_b", _standard),
    Tested("mnist_cryptonets", "mnist_cryptonets", _per_256, secure=100, modes=MODES),
    Tested("mnist_lola", "mnist_lola_small", _per_256, modes=MODES),
    Tested("cifar10_minionn", "cifar10_delphi_minionn_relu", _colour),
    Tested("cifar10_minionn_quadratic", "cifar10_delphi_minionn_7_approx", _colour, secure=5),
    Tested("resnet20", "cifar10_resnet20", _standard_colour, secure=5),
    Tested("resnet32", "cifar10_resnet32", _standard_colour, secure=5),
    Tested("cifar100_delphi_resnet32", "cifar100_delphi_resnet32", _cifar100, secure=5, modes=("cheetah", "tabula")),
    Tested("fastgrnn_usps", "usps_fastgrnn_lr", _digits, modes=("cheetah",)),
    Tested("lstm_keywords", "kws_arm_basic_lstm_s", _keywords, secure=5, modes=("cheetah",)),
)


def main(arguments: Sequence[str]) -> int:
    """Print a document for each network."""
    parser = argparse.ArgumentParser(prog="bench.accuracy", description="Print accuracies.")
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--data", required=True, type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N images of each test set")
    parser.add_argument("--only", type=lambda names: names.split(","), default=(), metavar="NAME,...")
    parser.add_argument(
        "--secure", type=int, nargs="?", const=0, metavar="N", help="also run the first N images by both parties"
    )
    options = parser.parse_args(arguments)
    for document in accuracies(options.mode, options.data, options.limit, secure=options.secure, only=options.only):
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
