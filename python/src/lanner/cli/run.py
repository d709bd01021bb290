"""``lanner run``: both parties as two processes on this machine."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lanner.cli.arguments import KINDS, add_compile_options, read_limits
from lanner.cli.compile_model import compiled_model
from lanner.cli.html import add_html_option, check_page, page, picture
from lanner.cli.output import Output, duration, size
from lanner.cli.predict import predict_samples, show_predictions
from lanner.cli.process import ServerProcess
from lanner.inputs import fit_sources, read_sources
from lanner.model import Model
from lanner.network import Network, read_network
from lanner.pictures import draw_waterfall
from lanner.prediction import PHASES, Prediction
from lanner.wording import counted

NAME = "run"
HELP = "run a model on an input in private, with both parties on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx|MODEL.lanner")
    parser.add_argument("input", type=Path, metavar="INPUT", help=KINDS)
    add_compile_options(parser)
    add_html_option(parser)
    parser.add_argument(
        "--network", metavar="NAME", default="loopback", help="loopback, lan, wan or FILE.toml (default: loopback)"
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Compile where needed, serve in another process, and predict over TLS."""
    check_page(options)
    network, limits = read_network(options.network), read_limits(options)
    sources = read_sources([options.input])
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        model, path = compiled_model(options, output)
        if path is None:
            path = Path(folder) / "model.lanner"
            model.save(path)
        samples = fit_sources(sources, model.manifest)
        with (
            output.progress("setting up"),
            ServerProcess([str(path)], limits=limits) as server,
            server.connect(network=network) as client,
        ):
            predictions = predict_samples(client, samples, output)
    with page(
        options, output, f"{counted(len(predictions), 'prediction')} by {model.name}, mode {model.manifest.mode}"
    ):
        if network.profile is not None:
            output.say(f"over {network.describe()}, emulated by a relay on this machine")
        show_predictions(predictions, output)
        if output.page is not None:
            _show_waterfall(model, predictions, network, options, output)
    output.document({"predictions": output.predictions})
    return 0


def _show_waterfall(
    model: Model, predictions: list[Prediction], network: Network, options: argparse.Namespace, output: Output
) -> None:
    """Estimate against measured, and the last prediction as the client waited for it, layer by layer."""
    last, found = predictions[-1], model.estimate(network, state_dir=options.state_dir)
    rows = []
    for name in PHASES:
        estimated, measured = getattr(found, name), last.phases[name]
        rows.append(
            (
                name,
                duration(estimated.seconds),
                duration(measured.seconds),
                size(estimated.bytes),
                size(measured.bytes),
                f"{estimated.rounds} / {measured.rounds}",
            )
        )
    columns = ("phase", "estimated", "measured", "bytes estimated", "bytes measured", "rounds")
    output.table(columns, rows, "Estimate against measured")
    caption = "The last prediction as the client saw it: one layer behind the other, computing, sending and waiting."
    shown = [layer for layer in last.layers if layer.phase != "setup"]
    picture(output, len(shown), caption, lambda drawn: draw_waterfall(drawn, shown))
