"""Labelled samples that a command measures a model on."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import InputError, MisuseError
from lanner.evaluation import Task, task_of
from lanner.inputs import as_batch, batch_of, load_arrays, load_truth, no_texts
from lanner.model import Model
from lanner.texts import LINES, read_lines
from lanner.wording import counted


@dataclass(frozen=True, slots=True)
class Labelled:
    """Samples, and what is true of them.

    Attributes:
        x: Shape (n, *input shape).
        task: What a model is measured by on them.
    """

    x: NDArray[np.float32]
    task: Task


def add_data_options(parser: argparse.ArgumentParser, *, required: bool, measured: str = "") -> None:
    """The options that name the samples; `measured` says what for."""
    parser.add_argument(
        "--data",
        type=Path,
        required=required,
        metavar="X.npz",
        help="samples `x` with the truth `y`: class names or indices, labels or values; or a .txt file with the "
        f"truth, a tab and a text on each line{measured}",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N samples")


def check_limit(options: argparse.Namespace) -> None:
    """Check how many samples are asked for.

    Raises:
        MisuseError: If it is less than one.
    """
    if options.limit is not None and options.limit < 1:
        raise MisuseError(f"--limit is {options.limit}", fix="give 1 or more")


def _read(path: Path, model: Model) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """The samples of a file, and what is true of them."""
    entry = model.manifest.cutting().input
    if path.suffix.lower() not in LINES:
        return as_batch(load_arrays(path), entry, str(path)), load_truth(path)
    lines = [line.partition("\t") for line in read_lines(path)]
    place = next((place for place, (_, tab, _) in enumerate(lines, 1) if not tab), None)
    if place is not None:
        fix = "write what is true of the text, a tab, and the text"
        raise InputError(f"line {place} has no tab", where=str(path), fix=fix)
    if entry.text is None:
        raise no_texts(model.name, str(path))
    truth = np.array([true for true, _, _ in lines])
    # Numbers are indices of classes, or values.
    with suppress(ValueError):
        numbers = truth.astype(np.float64)
        truth = numbers.astype(np.int64) if (numbers == np.rint(numbers)).all() else numbers
    return batch_of([text for _, _, text in lines], entry, str(path)), truth


def read_labelled(options: argparse.Namespace, model: Model) -> Labelled:
    """The samples that the options name.

    Raises:
        InputError: If they do not fit the model, or what is true of them does not.
    """
    path: Path = options.data
    x, y = _read(path, model)
    if len(x) != len(y):
        raise InputError(
            f"it has {counted(len(x), 'sample')} and {counted(len(y), 'label')}",
            where=str(path),
            fix="give one label each",
        )
    x, y = x[: options.limit], y[: options.limit]
    return Labelled(x, task_of(model.manifest, model.predict_float(x[:1]).shape[1], y, path))
