"""``lanner predict``: private predictions by a server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lanner.cli.arguments import KINDS, add_peer_arguments, add_peer_options, read_peer
from lanner.cli.output import Output
from lanner.client import Client
from lanner.inputs import Sample, fit_sources, read_sources
from lanner.prediction import Prediction

NAME = "predict"
HELP = "classify inputs by a server that does not see them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_peer_arguments(parser)
    parser.add_argument("inputs", nargs="+", type=Path, metavar="INPUT", help=KINDS)
    add_peer_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Check every input, connect, and predict one by one."""
    peer = read_peer(options)
    sources = read_sources(options.inputs)
    if peer.public is not None:
        fit_sources(sources, peer.public)
    with output.progress("setting up"):
        client = peer.connect()
    with client:
        samples = fit_sources(sources, client.manifest)
        predictions = predict_samples(client, samples, output)
    show_predictions(predictions, output)
    output.document({"predictions": output.predictions})
    return 0


def predict_samples(client: Client, samples: Sequence[Sample], output: Output) -> list[Prediction]:
    """Predict samples one by one; each is kept in `output` as soon as it is done."""
    predictions: list[Prediction] = []
    with shown_if_broken(predictions, output), output.progress("predicting", len(samples)) as advance:
        for sample in samples:
            prediction = client.predict(sample.values).placed(sample.source, sample.index)
            predictions.append(prediction)
            output.predictions.append(prediction.document())
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
    rows: list[tuple[object, ...]] = [
        (prediction.input, prediction.index, *result_of(prediction)) for prediction in predictions
    ]
    columns = ["input", "index", "label", "class", "probability", "logits"]
    if any(prediction.top is not None for prediction in predictions):
        columns.append("best")
        bests = [" ".join(map(str, prediction.top or [])) for prediction in predictions]
        rows = [(*row, best) for row, best in zip(rows, bests, strict=True)]
    output.table(columns, rows)
    output.costs(predictions)


def result_of(prediction: Prediction) -> tuple[object, ...]:
    """Label, class name, probability and logits as people read them."""
    logits = None if prediction.logits is None else " ".join(f"{logit:.4g}" for logit in prediction.logits)
    return (prediction.label, prediction.class_name, prediction.probability, logits)
