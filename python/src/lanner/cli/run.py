"""``lanner run``: both parties as two processes on this machine."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np

from lanner.cli.arguments import KINDS, add_compile_options, add_truncate_option, csv_header, cutting, read_limits
from lanner.cli.compile_model import compiled_model
from lanner.cli.counters import await_counters
from lanner.cli.html import add_html_option, check_page, page
from lanner.cli.output import Output, duration, size
from lanner.cli.predict import described, predict_samples, show_predictions
from lanner.cli.process import ServerProcess
from lanner.cli.waterfall import show_waterfall
from lanner.estimate import Estimate
from lanner.inputs import fit_sources, read_sources
from lanner.network import read_network
from lanner.prediction import PHASES, Prediction
from lanner.wording import counted

NAME = "run"
HELP = "run a model privately on an input, with both parties on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx|MODEL.lanner")
    parser.add_argument("input", type=Path, metavar="INPUT", help=KINDS)
    add_compile_options(parser)
    add_truncate_option(parser)
    add_html_option(parser)
    parser.add_argument(
        "--network",
        metavar="NAME",
        default="loopback",
        help="emulate this network between the parties: loopback, lan, wan or FILE.toml (default: loopback)",
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Compile where needed, serve in another process, and predict over TLS."""
    check_page(options)
    network, limits = read_network(options.network), read_limits(options)
    sources = read_sources([options.input], csv_header(options, options.input, options.calibration))
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        model, path = compiled_model(options, output)
        if path is None:
            path = Path(folder) / "model.lanner"
            model.save(path)
        samples = fit_sources(sources, cutting(model.manifest, options))
        # Who runs both parties may know: a client of a server is told nothing of it.
        saturated = model.predict_saturating(np.stack([sample.values for sample in samples]))[2]
        with (
            output.progress("setting up"),
            ServerProcess([str(path)], metrics=options.html is not None, limits=limits) as server,
            server.connect(network=network) as client,
        ):
            predictions = predict_samples(client, samples, output, saturated=saturated)
            batch = client.manifest.batch
            requests = math.ceil(len(samples) / batch)
            computed = None if options.html is None else await_counters(server, requests).computed
    with page(
        options, output, f"{counted(len(predictions), 'prediction')} by {model.name}, mode {model.manifest.mode}"
    ):
        if network.profile is not None:
            output.say(f"over {network.describe()}, emulated by a relay on this machine")
        show_predictions(predictions, output, model.manifest)
        count = sum(map(bool, saturated))
        if count:
            output.warn(
                f"{count} of {counted(len(samples), 'input')} exceeded the network's limits; results for such inputs "
                "may be wrong. Add inputs like these to --calibration."
            )
        if computed is not None:
            found = model.estimate(network, state_dir=options.state_dir)
            _show_estimate(found, predictions[-(len(predictions) % batch or batch) :], output)
            show_waterfall(predictions, computed, network, output)
    output.document({**described(model.manifest), "predictions": output.predictions})
    return 0


def _show_estimate(found: Estimate, last: Sequence[Prediction], output: Output) -> None:
    """Estimate against measured, of the last request, whose predictions have a part of its cost each."""
    rows = []
    for name in PHASES:
        estimated = getattr(found, name)
        # The set-up is the session's, and told with every prediction.
        parts = [prediction.phases[name] for prediction in (last[:1] if name == "setup" else last)]
        measured = reduce(add, parts)
        rows.append(
            (
                name,
                duration(estimated.seconds),
                duration(measured.seconds),
                size(estimated.bytes),
                size(measured.bytes),
                estimated.rounds,
                measured.rounds,
            )
        )
    columns = ("phase", *(f"{what} {which}" for what in ("time", "bytes", "rounds") for which in _WHICH))
    output.table(columns, rows, "Estimate against measured")


_WHICH = ("estimated", "measured")
