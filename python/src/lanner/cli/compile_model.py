"""``lanner compile``: an ONNX model becomes a fixed-point network with a plan and an output policy."""

from __future__ import annotations

import argparse
import math
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import agreeing, labels_of
from lanner.cli.arguments import (
    add_compile_options,
    add_kernel_times_option,
    check_outputs,
    compile_keywords,
    read_limits,
    refuse_compile_options,
)
from lanner.cli.calibration import load_calibration, require_calibration
from lanner.cli.on_ray import add_ray_option, tracer_on
from lanner.cli.output import Advance, Output
from lanner.cli.report import input_of, policy_of
from lanner.cli.written import Written
from lanner.errors import InputError, MisuseError
from lanner.inputs import Arrays, batch_of
from lanner.kernel_times import KernelTimes, stored_times
from lanner.model import Model, compile, load  # noqa: A004 - the interface's name
from lanner.precision import PrecisionWarning
from lanner.tracing import Tracer
from lanner.wording import counted

NAME = "compile"
HELP = "compile an ONNX model for serving"

#: Fewer calibration samples are accepted with a note.
ADVISED_SAMPLES = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx", help="the network")
    parser.add_argument(
        "-o",
        dest="target",
        type=Path,
        action=Written,
        required=True,
        metavar="MODEL.lanner",
        help="the file to write",
    )
    parser.add_argument(
        "--name", help="the model's name on the server (default: the name of the file written, without its suffix)"
    )
    parser.add_argument(
        "--network",
        metavar="NAME",
        help="mode auto: the network between the parties: loopback, lan, wan or FILE.toml (default: lan)",
    )
    add_compile_options(parser)
    add_kernel_times_option(parser, "stored, or shipped if there is none")
    add_ray_option(parser, "search for the precision")


def run(options: argparse.Namespace, output: Output) -> int:
    """Compile, compare with the float reference on the calibration samples, and save."""
    require_calibration(options, "lanner compile")
    check_outputs(options)
    _choose_times(options)
    samples = load_calibration(options.calibration, options)
    name = options.name or options.target.name.removesuffix(".lanner")
    with output.progress(f"compiling {options.model.name}") as advance:
        with tracer_on(options) as tracer:
            model = compile_file(options, samples, options.calibration, name, advance, tracer)
        advance(stage_of(options, "comparing with the float network"))
        agreement = compare(model, samples)
    if agreement["samples"] < ADVISED_SAMPLES:
        # Where the owner states the range, samples do not decide what is accepted.
        advice = "" if options.input_range else "inputs beyond twice what was seen are rejected; "
        few = counted(agreement["samples"], "sample")
        output.warn(f"calibrated on {few}: {advice}{ADVISED_SAMPLES} or more samples are advised")
    warn_of_ending(model, output)
    warn_of_precision(model, output)
    warn_of_digits(model, agreement, output)
    model.save(options.target)
    entry = model.manifest
    output.say(f"{entry.name}: mode {entry.mode}, output {policy_of(entry)}, input {input_of(entry.input)}")
    if options.mode in (None, "auto"):
        output.say(_chosen(model, options), whole=True)
        _tell_times(options.kernel_times, output)
    output.say(_said_of(agreement, model))
    for input_name, table in model.published.items():
        weights = counted(table.size, "weight")
        told = f"published: the table of {input_name}, {' x '.join(map(str, table.shape))} = {weights}"
        output.say(f"{told}; lanner export writes it beside the public half, and clients need it", whole=True)
    inspecting = shlex.join(["lanner", "inspect", str(options.target)])
    output.say(f"written to {options.target}; `{inspecting}` shows its ranges and what it reveals", whole=True)
    document = {"model": str(options.target), "commitment": model.commitment, "calibration": agreement}
    output.document({**document, "report": model.report()})
    return 0


def compile_file(
    options: argparse.Namespace,
    samples: Arrays | list[str],
    source: Path,
    name: str,
    advance: Advance,
    tracer: Tracer | None = None,
) -> Model:
    """Compile the ONNX file with the command line's options; `source` is the file that the samples are from.

    `advance` shows the stages; `tracer` is as for `lanner.compile`.

    Raises:
        InputError: If the samples do not fit the model, naming their file.
    """
    keywords: dict[str, Any] = compile_keywords(options)
    try:
        with warnings.catch_warnings():
            # `warn_of_precision` says it.
            warnings.simplefilter("ignore", PrecisionWarning)
            return compile(
                options.model,
                samples,
                name=name,
                progress=lambda stage: advance(stage_of(options, stage)),
                tracer=tracer,
                **keywords,
            )
    except InputError as error:
        raise InputError(error.what, where=_place(error.where or "", source), fix=error.fix) from None


def _place(where: str, source: Path) -> str:
    """Where an error of calibration is, by the samples' file; a constant's file is another one."""
    if where.endswith(".npy") and where != str(source):
        return where
    head, comma, name = where.partition(", ")
    return f"{source}, {name}" if comma and head == "calibration" else str(source)


def compiled_model(options: argparse.Namespace, output: Output) -> tuple[Model, Path | None]:
    """The model that a command is given, and its file: a compiled one, or an ONNX network, which has no such file.

    Without ``--calibration`` the network is calibrated on the command's input.

    Raises:
        MisuseError: If a compile option is given with a compiled model.
    """
    if options.model.suffix != ".onnx":
        refuse_compile_options(options)
        return load(options.model, **read_limits(options)), options.model
    if options.calibration is None:
        output.warn("calibrated on the input itself; give --calibration for ranges that hold for other inputs")
    source = options.calibration or options.input
    samples = load_calibration(source, options)
    with output.progress(f"compiling {options.model.name}") as advance:
        model = compile_file(options, samples, source, options.model.stem, advance)
    warn_of_ending(model, output)
    warn_of_precision(model, output)
    return model, None


def stage_of(options: argparse.Namespace, stage: str) -> str:
    """A stage of compiling as a progress bar describes it."""
    return f"compiling {options.model.name}: {stage}"


def warn_of_ending(model: Model, output: Output) -> None:
    """Say how the network's end is taken, where that is not plain."""
    for note in model.notes:
        output.warn(f"{model.name}: {note}")


def warn_of_precision(model: Model, output: Output) -> None:
    """Say by how much the precision that is aimed at is missed."""
    if model.precision is not None and (shortfall := model.precision.shortfall()) is not None:
        output.warn(shortfall)


def warn_of_digits(model: Model, agreement: dict[str, Any], output: Output) -> None:
    """Say that a probability has digits which are not the float network's."""
    difference, digits = agreement["probability_difference"], model.manifest.digits
    # The last digit is rounded.
    if difference is not None and digits is not None and difference > 10.0**-digits:
        output.warn(
            f"{model.name}: probabilities have {digits} digits and are off by up to {difference:.2g} on the "
            "calibration samples; ask for fewer --digits or a smaller --precision"
        )


def compare(model: Model, samples: Arrays | list[str]) -> dict[str, Any]:
    """How the fixed-point network's results compare with the float reference's; None of what it does not tell."""
    if isinstance(samples, list):
        samples = batch_of(samples, model.manifest.cutting().input, "calibration")
    exact, (integers, _) = model.predict_float(samples), model.predict_integers(samples)
    fixed = model.reals(integers)
    entry = model.manifest
    told = "value" if entry.is_map and entry.output == "logits" else entry.output
    places = math.prod(entry.places or ())
    labels = [labels_of(scores, told, places) for scores in (exact, fixed)]
    if entry.places is not None:
        # Each place is judged by itself.
        labels = [None if each is None else each.ravel() for each in labels]
    return {
        "samples": len(exact),
        "labels": None if labels[0] is None else len(labels[0]),
        "labels_agree": None if labels[0] is None or labels[1] is None else agreeing(labels[0], labels[1]),
        "largest_difference": float(np.abs(exact - fixed).max()),
        "probability_difference": _probability_difference(model, exact, integers),
    }


def _probability_difference(model: Model, exact: NDArray[np.float32], integers: NDArray[np.int64]) -> float | None:
    """The largest error of the probability of a sample's label; None where the policy reveals none."""
    if model.manifest.output != "probability":
        return None
    shifted = np.exp(exact.astype(np.float64) - exact.max(1, keepdims=True))
    probabilities = shifted / shifted.sum(1, keepdims=True)
    told = np.array([model.probability_of(scores) for scores in integers], np.float64)
    of_label = np.take_along_axis(probabilities, integers.argmax(1, keepdims=True), 1)[:, 0]
    return float(np.abs(of_label - told).max())


def _chosen(model: Model, options: argparse.Namespace) -> str:
    """What mode auto has chosen, for people."""
    objective, network = options.optimize or "latency", options.network or "lan"
    if options.against is not None:
        return f"mode auto chose mode {model.manifest.mode}, which is the one against {options.against}"
    chosen = "a protocol for each layer" if model.manifest.mode == "auto" else f"mode {model.manifest.mode}"
    estimating = shlex.join(["lanner", "estimate", str(options.target), "--network", network])
    return (
        f"mode auto chose {chosen} for the least {objective} over {network}; `{estimating}` shows the plan and its cost"
    )


def _choose_times(options: argparse.Namespace) -> None:
    """Put the table of kernel times that mode auto chooses by in the place of its name.

    Raises:
        MisuseError: If a table is named that nothing is chosen by, or there is no such table.
    """
    if options.mode in (None, "auto"):
        options.kernel_times = stored_times(options.kernel_times, options.state_dir)
    elif options.kernel_times is not None:
        raise MisuseError(
            f"only mode auto chooses by kernel times, and the mode is {options.mode}",
            where="--kernel-times",
            fix="compile with mode auto, or leave the option out",
        )


def _tell_times(times: KernelTimes, output: Output) -> None:
    """Say which table mode auto chose by."""
    advice = "; run lanner estimate to measure this machine in a second" if times.table == "shipped" else ""
    output.say(f"{times.describe()}{advice}")
    if times.note is not None:
        output.warn(times.note)


def _said_of(agreement: dict[str, Any], model: Model) -> str:
    """The comparison for people."""
    largest, samples = f"{agreement['largest_difference']:.3g}", counted(agreement["samples"], "sample")
    of_range = "" if model.precision is None else f", {model.precision.reached} of their range"
    if agreement["labels_agree"] is None:
        return f"fixed-point and float values differ by at most {largest}{of_range}, on {samples}"
    of = samples if model.manifest.places is None else f"{agreement['labels']} places of {samples}"
    agree = f"fixed-point and float labels agree on {agreement['labels_agree']} of {of}"
    return f"{agree}; logits differ by at most {largest}{of_range}"
