"""``lanner compile``: an ONNX model becomes a fixed-point network with a plan and an output policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.cli.arguments import add_compile_options, check_target, compile_keywords
from lanner.cli.calibration import load_calibration
from lanner.cli.output import Output
from lanner.cli.report import input_of, policy_of
from lanner.errors import InputError, MisuseError
from lanner.model import Model, compile  # noqa: A004 - the interface's name
from lanner.wording import counted

NAME = "compile"
HELP = "compile an ONNX model for serving"

#: Fewer calibration samples are accepted with a note.
ADVISED_SAMPLES = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx", help="the network")
    parser.add_argument("-o", dest="target", type=Path, required=True, metavar="MODEL.lanner", help="the file to write")
    parser.add_argument("--name", help="the model's name on the server (default: the target's, without its suffix)")
    add_compile_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Compile, compare with the float reference on the calibration samples, and save."""
    if options.calibration is None:
        raise MisuseError(
            "--calibration is missing", where="lanner compile", fix="give typical samples, 32 or more, as a .npy file"
        )
    check_target(options.target)
    samples = load_calibration(options.calibration, options)
    name = options.name or options.target.name.removesuffix(".lanner")
    with output.progress(f"compiling {options.model.name}"):
        model = compile_file(options, samples, options.calibration, name)
        agreement = compare(model, samples)
    if agreement["samples"] < ADVISED_SAMPLES:
        output.warn(f"calibrated on {counted(agreement['samples'], 'sample')}; {ADVISED_SAMPLES} or more are advised")
    warn_of_softmax(model, output)
    model.save(options.target)
    entry = model.manifest
    output.say(f"{entry.name}: mode {entry.mode}, output {policy_of(entry)}, input {input_of(entry.input)}")
    output.say(
        f"fixed-point and float labels agree on {agreement['labels_agree']} of "
        f"{counted(agreement['samples'], 'sample')}; {_difference(agreement)}"
    )
    output.say(f"written to {options.target}; `lanner inspect {options.target}` tells its ranges and what it reveals")
    document = {"model": str(options.target), "commitment": model.commitment, "calibration": agreement}
    output.document({**document, "report": model.report()})
    return 0


def compile_file(options: argparse.Namespace, samples: NDArray[np.float32], source: Path, name: str) -> Model:
    """Compile the ONNX file with the command line's options; `source` is the file that the samples are from.

    Raises:
        InputError: If the samples do not fit the model, naming their file.
    """
    keywords: dict[str, Any] = compile_keywords(options)
    try:
        return compile(options.model, samples, name=name, **keywords)
    except InputError as error:
        raise InputError(error.what, where=str(source), fix=error.fix) from None


def warn_of_softmax(model: Model, output: Output) -> None:
    """Say that the probability is one of a softmax that the network does not have."""
    if model.softmax_appended:
        output.warn(f"{model.name} does not end in a softmax; one is appended to its scores for the probability")


def compare(model: Model, samples: NDArray[np.float32]) -> dict[str, Any]:
    """How the fixed-point network's logits compare with the float reference's."""
    exact, fixed = model.predict_float(samples), model.predict_fixed(samples)
    return {
        "samples": len(exact),
        "labels_agree": int((exact.argmax(1) == fixed.argmax(1)).sum()),
        "largest_difference": float(np.abs(exact - fixed).max()),
        "largest_share": _largest_share(exact, fixed),
    }


def _largest_share(exact: NDArray[np.float32], fixed: NDArray[np.float64]) -> float | None:
    """The largest difference over the range of its sample's logits; of a single logit, over that of all samples.

    None where there is no range.
    """
    ranges = np.ptp(exact, axis=1, keepdims=True) if exact.shape[1] > 1 else np.ptp(exact, axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float((np.abs(exact - fixed) / ranges).max())
    return share if np.isfinite(share) else None


def _difference(agreement: dict[str, Any]) -> str:
    """How far the logits are apart, for people."""
    largest, share = agreement["largest_difference"], agreement["largest_share"]
    of_range = "" if share is None else f", and by at most {share:.2%} of the range of a sample's logits"
    return f"logits differ by at most {largest:.3g}{of_range}"
