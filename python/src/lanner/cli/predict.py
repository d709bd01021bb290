"""``lanner predict``: private predictions by a server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lanner.cli.arguments import KINDS, add_peer_arguments, add_peer_options, read_peer
from lanner.cli.output import Output
from lanner.cli.prepare import keep
from lanner.client import Client
from lanner.errors import MisuseError
from lanner.inputs import Sample, fit_sources, read_sources
from lanner.prediction import Prediction
from lanner.state import state_directory, state_path

NAME = "predict"
HELP = "classify inputs by a server that does not see them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_peer_arguments(parser)
    parser.add_argument("inputs", nargs="+", type=Path, metavar="INPUT", help=KINDS)
    parser.add_argument(
        "--refill",
        type=int,
        default=0,
        metavar="N",
        help="afterwards prepare so many that N are in stock for the next time, as lanner prepare does",
    )
    add_peer_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Check every input, connect, and predict."""
    if options.refill < 0:
        raise MisuseError(f"--refill is {options.refill}", fix="give how many predictions to prepare")
    peer = read_peer(options)
    sources = read_sources(options.inputs)
    if peer.public is not None:
        fit_sources(sources, peer.public)
    with output.progress("setting up"):
        client = peer.connect(state_directory(options.state_dir) if options.refill else state_path(options.state_dir))
    with client:
        samples = fit_sources(sources, client.manifest)
        predictions = predict_samples(client, samples, output)
        show_predictions(predictions, output)
        output.document({"predictions": output.predictions})
        lacking = max(options.refill - client.stock, 0)
        if lacking:
            with output.progress("preparing for the next time", lacking) as advance:
                keep(client, lacking, advance)
    return 0


def predict_samples(
    client: Client, samples: Sequence[Sample], output: Output, doing: str = "predicting"
) -> list[Prediction]:
    """Predict samples request by request; each is kept in `output` as soon as it is made."""
    predictions: list[Prediction] = []
    with shown_if_broken(predictions, output), output.progress(doing, len(samples)) as advance:
        made = client.predict_each(np.stack([sample.values for sample in samples]))
        for sample, prediction in zip(samples, made, strict=True):
            predictions.append(prediction.placed(sample.source, sample.index))
            output.predictions.append(predictions[-1].document())
            advance()
    return predictions


@contextmanager
def shown_if_broken(predictions: Sequence[Prediction], output: Output) -> Iterator[None]:
    """Print for people what was predicted when the body fails: it was paid for, and the error follows it."""
    try:
        yield
    except BaseException:
        if predictions:
            show_predictions(predictions, output)
        raise


def show_predictions(predictions: Sequence[Prediction], output: Output) -> None:
    """Print results and costs for people."""
    results = [_result_of(prediction) for prediction in predictions]
    told = [column for column in results[0] if any(result[column] is not None for result in results)]
    rows = [
        (prediction.input, prediction.index, *(result[column] for column in told))
        for prediction, result in zip(predictions, results, strict=True)
    ]
    output.table(("input", "index", *told), rows)
    output.costs(predictions)


def _result_of(prediction: Prediction) -> dict[str, object]:
    """What a prediction tells as people read it; None for what it does not."""
    return {
        "label": prediction.label,
        "class": prediction.class_name,
        "labels": _joined(prediction.labels),
        "classes": _joined(prediction.class_names),
        "probability": prediction.probability,
        "best": _joined(prediction.top),
        "logits": _joined(prediction.logits),
        "values": _joined(prediction.values),
    }


def _joined(items: Sequence[object] | None) -> str | None:
    """Items with spaces between them, numbers to four digits; none where there is no list."""
    if items is None:
        return None
    return " ".join(f"{item:.4g}" if isinstance(item, float) else str(item) for item in items) or "none"
