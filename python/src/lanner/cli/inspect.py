"""``lanner inspect``: what a model is made of, its ranges and scales, and what using it reveals."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lanner.cli.arguments import ACCEPTING, add_accepting_options, add_limit_options, read_limits
from lanner.cli.html import add_html_option, check_page, page, picture
from lanner.cli.inspect_onnx import inspect_onnx
from lanner.cli.labelled import Labelled, add_data_options, check_limit, read_labelled
from lanner.cli.output import Output, size
from lanner.cli.report import show_identity, show_known
from lanner.cli.sweep import add_bits_options, check_samples, draw_bits, measure_bits, show_bits
from lanner.curve import SIZE
from lanner.errors import MisuseError
from lanner.files import check_exported
from lanner.model import Model, load
from lanner.pairings import pairings
from lanner.pictures import draw_estimate, size_of, spoken
from lanner.state import state_path
from lanner.wording import counted

NAME = "inspect"
HELP = (
    "show a model's layers, ranges and parameters, and what each party learns; check whether an ONNX file can be "
    "compiled"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx|MODEL.lanner")
    add_accepting_options(parser)
    add_html_option(parser)
    add_data_options(parser, required=False, measured="; measure what accuracy each number of --bits leaves on them")
    add_bits_options(parser, f" (default: {BITS[0]}..{BITS[-1]})")
    add_limit_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Show an ONNX file as imported, or a compiled model with its report."""
    check_exported(options.model)
    if options.model.suffix == ".onnx":
        for name in ("html", "data", *_WITH_DATA):
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise MisuseError("a network that is not compiled has no report", where=option, fix="compile it")
        return inspect_onnx(options, read_limits(options), output)
    for name in ACCEPTING:
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise MisuseError("this is fixed in a compiled model", where=option, fix="leave it out")
    _check_data(options)
    check_page(options)
    model = load(options.model, **read_limits(options))
    labelled = None if options.data is None else read_labelled(options, model)
    with page(options, output, "A model, and what using it reveals"):
        show_model(model, output)
        accuracy = None if labelled is None else _show_accuracy(options, model, labelled, output)
        if output.page is not None:
            if accuracy is None:
                output.page.say(_NO_DATA)
            _draw_estimate(model, options, output)
    stock = [entry for entry in pairings(state_path(options.state_dir)) if entry["commitment"] == model.commitment]
    for entry in stock:
        output.say(f"kept as {entry['party']}: {entry['predictions']} predictions, {size(entry['bytes'])}")
    output.document(
        {"manifest": dict(model.manifest.document), "report": model.report(), "accuracy": accuracy, "stock": stock}
    )
    return 0


def _check_data(options: argparse.Namespace) -> None:
    """Check, before anything is computed, that what goes with --data is given with it alone."""
    if options.data is None:
        for name in _WITH_DATA:
            if getattr(options, name) is not None:
                raise MisuseError(f"--{name.replace('_', '-')} goes with --data", fix="give both, or leave it out")
        return
    check_limit(options)
    check_samples(options)


def _show_accuracy(options: argparse.Namespace, model: Model, labelled: Labelled, output: Output) -> dict[str, Any]:
    """Show what accuracy each number of bits leaves, and return it as `lanner evaluate --bits` prints it."""
    document = measure_bits(options, BITS if options.bits is None else options.bits, model, labelled, output)
    show_bits(document, output, "Accuracy by the bits that lookups keep")
    caption = (
        f"What lookups of mode tabula leave of the float network on {counted(len(labelled.x), 'sample')}, compiled "
        f"again for each number of bits; this model is of mode {model.manifest.mode}."
    )
    picture(output, SIZE, caption, lambda drawn: draw_bits(drawn, model, document))
    return document


def _draw_estimate(model: Model, options: argparse.Namespace, output: Output) -> None:
    found = model.estimate("lan", state_dir=options.state_dir)
    caption = (
        "What a prediction takes over a local network, by layer, as lanner estimate predicts; lanner run --html adds "
        "what it took."
    )
    picture(output, size_of(len(spoken(found.layers))), caption, lambda drawn: draw_estimate(drawn, found))


def show_model(model: Model, output: Output) -> None:
    """Print a compiled model's manifest and report for people."""
    report = model.report()
    show_identity(model.manifest, report.get("rounding"), output)
    show_report(show_known(report, output), output)


def show_report(report: Mapping[str, Any], output: Output) -> None:
    """Print a report: each list of objects as a table, everything else as lines; nothing that is empty."""
    for key, value in report.items():
        name = key.replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            rows = [_flat(row) for row in value]
            found = dict.fromkeys(column for row in rows for column in row)
            columns = sorted(found, key=lambda column: column != "name")
            output.table(columns, [[_cell(row.get(column)) for column in columns] for row in rows], name)
        elif isinstance(value, dict):
            output.section(name, [(inner.replace("_", " "), _said(entry)) for inner, entry in value.items()])
        elif value not in (None, [], ""):
            output.say(f"{name}: {_said(value)}")


def _said(value: object) -> str:
    """A value for people: yes and no instead of JSON's words, lists without brackets."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(_cell(value))


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """An object's members, those of inner objects among them under both names."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name} {inner}": entry for inner, entry in value.items()}
        elif value is not None:
            flat[name] = value
    return flat


def _cell(value: object) -> object:
    return value if isinstance(value, int | float | str | None) else json.dumps(value)


#: The options that go with ``--data`` alone.
_WITH_DATA = ("limit", "bits", "calibration", "csv_header")

#: Numbers of bits that are measured where none are named.
BITS = range(4, 13)

_NO_DATA = (
    "To see how accuracy depends on the bits that lookups keep, run `lanner inspect --html` with --data and "
    "--calibration."
)
