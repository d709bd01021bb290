"""``lanner run``: both parties as two processes on this machine."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lanner.cli.arguments import KINDS, add_compile_options, read_limits, refuse_compile_options
from lanner.cli.calibration import load_calibration
from lanner.cli.compile_model import compile_file, warn_of_ending, warn_of_precision
from lanner.cli.output import Output
from lanner.cli.predict import predict_samples, show_predictions
from lanner.cli.process import ServerProcess
from lanner.inputs import fit_sources, read_sources
from lanner.model import Model, load
from lanner.network import read_network

NAME = "run"
HELP = "run a model on an input in private, with both parties on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx|MODEL.lanner")
    parser.add_argument("input", type=Path, metavar="INPUT", help=KINDS)
    add_compile_options(parser)
    parser.add_argument(
        "--network", metavar="NAME", default="loopback", help="loopback, lan, wan or FILE.toml (default: loopback)"
    )


def run(options: argparse.Namespace, output: Output) -> int:
    """Compile where needed, serve in another process, and predict over TLS."""
    network, limits = read_network(options.network), read_limits(options)
    sources = read_sources([options.input])
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        model, path = _prepare(options, Path(folder), output)
        samples = fit_sources(sources, model.manifest)
        with (
            output.progress("setting up"),
            ServerProcess([str(path)], limits=limits) as server,
            server.connect(network=network) as client,
        ):
            predictions = predict_samples(client, samples, output)
    if network.profile is not None:
        output.say(f"over {network.describe()}, emulated by a relay on this machine")
    show_predictions(predictions, output)
    output.document({"predictions": output.predictions})
    return 0


def _prepare(options: argparse.Namespace, folder: Path, output: Output) -> tuple[Model, Path]:
    """The compiled model and its file."""
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
    path = folder / "model.lanner"
    model.save(path)
    return model, path
