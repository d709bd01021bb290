"""The calibration samples of a command line: in every kind of file that ``predict`` takes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from lanner.cli.arguments import csv_header
from lanner.errors import MisuseError
from lanner.extras import require
from lanner.images import ImageDescription
from lanner.inputs import NUMPY, Arrays, load_arrays, read_sources, stack_sources, stack_tables, table_of
from lanner.manifest import InputDescription
from lanner.model import input_of


def require_calibration(options: argparse.Namespace, command: str) -> None:
    """Check that there is ``--calibration``.

    Raises:
        MisuseError: If there is none.
    """
    if options.calibration is None:
        fix = "give typical samples, 32 or more, as a .npy file"
        raise MisuseError("--calibration is missing", where=command, fix=fix)


def load_calibration(source: Path, options: argparse.Namespace) -> Arrays | list[str]:
    """Read typical samples of the ONNX model that the options name: an array, rows, pictures, or a folder.

    Returns:
        Shape (n, *sample), or what is in the file, arrays by name where it has several, which is checked when the model
        is compiled; of a file of texts these.

    Raises:
        InputError: If they cannot be read, or do not fit the model's input.
        MisuseError: If the description of pictures is wrong, or onnx is not installed.
        ModelError: If the model cannot be read.
    """
    header = csv_header(options, source, getattr(options, "input", None))
    if source.suffix.lower() in NUMPY and not source.is_dir():
        return _unnamed(load_arrays(source))
    sources = read_sources([source], header)
    if all(each.lines is not None for each in sources):
        if options.text is None:
            fix = "give --text TOKENIZER.json,length=N; see docs/how-to/classify-text.md"
            raise MisuseError("nothing says how a text becomes tokens", where=str(source), fix=fix)
        return [line for each in sources for line in each.lines or ()]
    image = None if options.image is None else ImageDescription.read(options.image)
    picture = next((each.path for each in sources if each.is_picture), None)
    if picture is not None and image is None:
        fix = "give --image FILE.toml; see docs/how-to/classify-pictures.md"
        raise MisuseError("nothing says how a picture becomes an input", where=str(picture), fix=fix)
    is_json = len(sources) == 1 and source.suffix.lower() == ".json"
    if is_json and sources[0].values is not None and options.columns is None:
        return _unnamed(sources[0].values)
    entry = _input(options)
    if image is not None:
        image.check_shape(entry.shape)
    if (table := table_of(entry)) is not None:
        return stack_tables(sources, table)
    if is_json and sources[0].values is not None:
        return _unnamed(sources[0].values)
    if entry.named:
        # What is made of a row is made of it when the model is compiled.
        entry = InputDescription("calibration", entry.named[0].shape)
    return stack_sources(sources, entry, image, options.model.name)


def _unnamed(arrays: Arrays) -> Arrays:
    """The samples of a file that has nothing but `x`."""
    return arrays["x"] if isinstance(arrays, dict) and list(arrays) == ["x"] else arrays


def _input(options: argparse.Namespace) -> InputDescription:
    """What a sample is: rows and pictures say nothing of its shape."""
    require("onnx", "compiling")
    from lanner.onnx import Frame, import_model

    frame = Frame.of(
        options.shape,
        options.fix,
        options.output_name,
        options.columns,
        publishes_words=bool(options.public_preprocessing),
    )
    entry = input_of(import_model(options.model, options.output, frame))
    # Of a row that no tree reads the names are all that there is.
    return entry if entry.named else replace(entry, columns=frame.columns)
