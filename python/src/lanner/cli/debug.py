"""``lanner debug``: one input layer by layer, by the float network, in fixed point, and by both parties."""

from __future__ import annotations

import argparse
from pathlib import Path

from lanner.cli.arguments import KINDS, add_compile_options, add_truncate_option, csv_header, cutting
from lanner.cli.compile_model import compiled_model
from lanner.cli.html import add_html_option, check_page, page, picture
from lanner.cli.output import Output
from lanner.divergence import Divergence, diverge
from lanner.errors import MisuseError
from lanner.inputs import fit_sources, read_sources
from lanner.pictures import draw_divergence, size_of

NAME = "debug"
HELP = "find the layer where float, fixed-point and secure results differ, for one input"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx|MODEL.lanner")
    parser.add_argument("input", type=Path, metavar="INPUT", help=KINDS)
    parser.add_argument("--index", type=int, default=0, metavar="I", help="which sample of the file (default: 0)")
    add_compile_options(parser)
    add_truncate_option(parser)
    parser.add_argument(
        "--network", metavar="NAME", default="loopback", help="the network that mode auto plans for (default: loopback)"
    )
    add_html_option(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Trace the sample, and name the first layers that depart."""
    check_page(options)
    sources = read_sources([options.input], csv_header(options, options.input, options.calibration))
    model, _ = compiled_model(options, output)
    samples = list(fit_sources(sources, cutting(model.manifest, options)))
    if not 0 <= options.index < len(samples):
        raise MisuseError(f"--index is {options.index}", fix=f"give 0 to {len(samples) - 1}")
    with output.progress("running both parties in this process"):
        found = diverge(model, samples[options.index].values)
    title = f"{model.name}, mode {model.manifest.mode}, sample {options.index}"
    output.say(title)
    with page(options, output, title):
        show(found, output)
        caption = "Error of each layer as a part of its largest value, and how much of its ring it uses."
        picture(output, size_of(len(found.layers)), caption, lambda drawn: draw_divergence(drawn, found.layers))
    output.document(found.document)
    return 0


def show(found: Divergence, output: Output) -> None:
    """The layers, and what departs."""
    columns = (
        "layer",
        "operator",
        "protocol",
        "off by",
        "of calibrated",
        "of ring",
        "overflows",
        "saturated",
        "parties differ in",
    )
    rows = [
        (
            layer.name,
            layer.operator,
            layer.protocol,
            _percent(layer.relative_error, 2),
            _percent(layer.of_calibrated_range, 0),
            _percent(layer.of_ring, 1),
            layer.overflows or None,
            layer.saturated or None,
            layer.secure_differences,
        )
        for layer in found.layers
    ]
    output.table(columns, rows)
    for departure in found.departures:
        output.say(f"{departure.layer}: {departure.what}; {departure.fix}")
    if not found.departures:
        tolerance = 100 * found.document["tolerance"]
        output.say(
            f"no layer differs: the scores are within {tolerance:g}% of the float network's, and both parties compute "
            "the reference"
        )


def _percent(part: float | None, digits: int) -> str | None:
    return None if part is None else f"{100 * part:.{digits}f}%"
