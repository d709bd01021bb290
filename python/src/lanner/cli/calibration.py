"""The calibration samples of a command line: in every kind of file that ``predict`` takes."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner.cli.arguments import csv_header
from lanner.errors import MisuseError
from lanner.extras import require
from lanner.images import ImageDescription
from lanner.inputs import NUMPY, load_array, read_sources, stack_sources
from lanner.manifest import InputDescription


def require_calibration(options: argparse.Namespace, command: str) -> None:
    """Check that there is ``--calibration``.

    Raises:
        MisuseError: If there is none.
    """
    if options.calibration is None:
        fix = "give typical samples, 32 or more, as a .npy file"
        raise MisuseError("--calibration is missing", where=command, fix=fix)


def load_calibration(source: Path, options: argparse.Namespace) -> NDArray[np.float32]:
    """Read typical samples of the ONNX model that the options name: an array, rows, pictures, or a folder.

    Returns:
        Shape (n, *sample), or that of the array in the file, which is checked when the model is compiled.

    Raises:
        InputError: If they cannot be read, or do not fit the model's input.
        MisuseError: If the description of pictures is wrong, or onnx is not installed.
        ModelError: If the model cannot be read.
    """
    header = csv_header(options, source, getattr(options, "input", None))
    if source.suffix.lower() in NUMPY and not source.is_dir():
        return load_array(source)
    sources = read_sources([source], header)
    image = None if options.image is None else ImageDescription.read(options.image)
    picture = next((each.path for each in sources if each.values is None), None)
    if picture is not None and image is None:
        raise MisuseError(
            "nothing says how a picture becomes an input", where=str(picture), fix="give --image; see README.md"
        )
    shape = _input_shape(options)
    if image is not None:
        image.check_shape(shape)
    return stack_sources(sources, InputDescription("calibration", shape), image, options.model.name)


def _input_shape(options: argparse.Namespace) -> tuple[int, ...]:
    """The shape of one sample: rows and pictures say nothing of it."""
    require("onnx", "compiling")
    from lanner.onnx import import_model

    return import_model(options.model, options.output, options.output_name).input_shape
