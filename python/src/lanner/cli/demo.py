"""``lanner demo``: real handwritten digits, classified in private by the embedded network."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import agreement_name, agrees
from lanner.cli.arguments import add_kernel_times_option, add_protocol_options
from lanner.cli.build import build_facts
from lanner.cli.example import save_example
from lanner.cli.output import Output, duration
from lanner.cli.predict import predict_samples
from lanner.cli.process import ServerProcess
from lanner.embedded import compile_embedded, require_scikit_learn
from lanner.errors import MisuseError
from lanner.inputs import samples_of
from lanner.kernel_times import measured_times
from lanner.options import Protocols
from lanner.prediction import Prediction
from lanner.wording import counted

NAME = "demo"
HELP = "classify handwritten digits privately, with a server and a client on this machine"

NETWORK = "mnist_d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_protocol_options(parser)
    add_kernel_times_option(parser, "stored, which the first demo or estimate measures in a second")
    parser.add_argument("--images", type=int, default=10, metavar="N", help="number of digits (default: 10)")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="write the network and digits into this folder instead, to try other commands",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Serve the embedded network in another process and classify digits that training did not see, or save both."""
    if options.save is not None:
        return save_example(options.save, NETWORK, output)
    x, y = _digits(options.images)
    times = None
    if options.mode != "auto" and options.kernel_times is not None:
        raise MisuseError(
            f"only mode auto chooses by kernel times, and the mode is {options.mode}",
            where="--kernel-times",
            fix="leave the option out",
        )
    if options.mode == "auto":
        with output.progress("measuring this machine"):
            times = measured_times(options.kernel_times, options.state_dir)
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        with output.progress(f"compiling {NETWORK}"):
            shown = Protocols(options.mode, options.rounding).output("probability")
            model = compile_embedded(
                NETWORK, mode=options.mode, output=shown, rounding=options.rounding, kernel_times=times
            )
            path = Path(folder) / f"{NETWORK}.lanner"
            model.save(path)
        predictions, seconds = _classify(path, x, output)
    reference = model.predict_integers(x)[0]
    agreement = [agrees(prediction, row, model) for prediction, row in zip(predictions, reference, strict=True)]
    document = [
        {**prediction.document(), "truth": int(truth), agreement_name(model): agree}
        for prediction, truth, agree in zip(predictions, y, agreement, strict=True)
    ]
    _show(predictions, y, agreement, model.manifest.is_exact, output)
    done = f"{counted(len(x), 'digit')} in {duration(seconds)} in mode {model.manifest.mode}"
    output.say(f"{done}; the server saw no pixel, the client no weight")
    if build_facts()["profile"] != "release":
        output.say("this build is for tests and checks its arithmetic; wheels, and `make install`, are faster")
    if times is not None:
        output.say(times.describe())
        if times.note is not None:
            output.warn(times.note)
    output.document({"predictions": document, "kernel_times": None if times is None else times.document()})
    return 0 if all(agreement) else 1


def _digits(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    require_scikit_learn()
    from lanner.datasets import load_digits

    x, y = load_digits("test")
    if not 1 <= count <= len(x):
        raise MisuseError(f"--images is {count}", fix=f"give 1 to {len(x)}")
    return x[:count], y[:count]


def _classify(path: Path, x: NDArray[np.float32], output: Output) -> tuple[list[Prediction], float]:
    """The predictions and the seconds they took, from connecting on."""
    with ServerProcess([str(path)]) as server:
        started = time.perf_counter()
        with server.connect() as client:
            predictions = predict_samples(client, samples_of(x), output, "classifying")
        return predictions, time.perf_counter() - started


def _show(
    predictions: Sequence[Prediction],
    y: NDArray[np.int64],
    agreement: Sequence[bool],
    is_exact: bool,
    output: Output,
) -> None:
    agrees_with = "agrees with the fixed-point reference" if is_exact else "within its bound of the reference"
    columns = ["index", "label", "truth", agrees_with]
    rows: list[list[object]] = [
        [prediction.index, prediction.label, int(truth), agree]
        for prediction, truth, agree in zip(predictions, y, agreement, strict=True)
    ]
    if any(prediction.probability is not None for prediction in predictions):
        columns.append("probability")
        shown = [prediction.rounded_probability for prediction in predictions]
        rows = [[*row, probability] for row, probability in zip(rows, shown, strict=True)]
    output.table(columns, rows)
    output.costs(predictions)
