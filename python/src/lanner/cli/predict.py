"""``lanner predict``: private predictions by a server."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lanner.cli.arguments import (
    KINDS,
    Peer,
    add_csv_option,
    add_peer_arguments,
    add_peer_options,
    add_truncate_option,
    csv_header,
    cutting,
    read_peer,
)
from lanner.cli.on_ray import add_worker_options, check_workers, in_pieces, workers_on
from lanner.cli.output import Output
from lanner.cli.prepare import keep
from lanner.client import Client
from lanner.errors import MisuseError
from lanner.heads import is_map
from lanner.inputs import (
    PICTURES,
    TABLES,
    Sample,
    Source,
    each_sample,
    files_of,
    fit_sources,
    read_sources,
    text_source,
)
from lanner.manifest import Manifest
from lanner.prediction import Prediction
from lanner.state import state_directory, state_path
from lanner.texts import LINES

NAME = "predict"
HELP = "ask a server for predictions without showing it the inputs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_peer_arguments(parser)
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help=f"{KINDS}; for a model that reads texts also a text itself",
    )
    add_csv_option(parser)
    add_truncate_option(parser)
    parser.add_argument(
        "--refill",
        type=int,
        default=0,
        metavar="N",
        help="afterwards prepare material until there is enough for N predictions, as lanner prepare does",
    )
    add_worker_options(parser, "predict by clients")
    add_peer_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Check every input, connect, and predict."""
    if options.refill < 0:
        raise MisuseError(f"--refill is {options.refill}", fix="give how many predictions to prepare")
    check_workers(options)
    peer = read_peer(options)
    if options.ray is not None:
        return _by_workers(options, peer, output)
    sources = read_given(options.inputs, options)
    if peer.public is not None:
        fit_sources(sources, cutting(peer.public, options))
    with output.progress("setting up"):
        client = peer.connect(state_directory(options.state_dir) if options.refill else state_path(options.state_dir))
    with client:
        samples = fit_sources(sources, cutting(client.manifest, options))
        _name_words(sources, output)
        predictions = predict_samples(client, samples, output)
        show_predictions(predictions, output, client.manifest)
        output.document({**described(client.manifest), "predictions": output.predictions})
        lacking = max(options.refill - client.stock, 0)
        if lacking:
            keep(client, lacking, output, "preparing for the next time")
    return 0


def read_given(given: Sequence[str], options: argparse.Namespace) -> list[Source]:
    """Read what a command line gives: files, folders, and texts.

    Raises:
        InputError: As `read_sources`, also of what is named as a file and is none.
    """
    paths = [Path(each) for each in given if not _is_text(each)]
    header = csv_header(options, *paths)
    return [
        source
        for each in given
        for source in ([text_source(each)] if _is_text(each) else read_sources([Path(each)], header))
    ]


def _name_words(sources: Sequence[Source], output: Output) -> None:
    """Say which words are taken for texts: each may be a file's name, mistyped."""
    words = [text for source in sources if source.is_given for text in source.lines or () if text and " " not in text]
    if words:
        shown = ", ".join(f'"{word}"' for word in words[:_WORDS])
        output.warn(f"{shown}: no such file or folder; read as {'a text' if len(words) == 1 else 'texts'}")


#: So many words are shown that are no files.
_WORDS = 3


def _is_text(given: str) -> bool:
    """Whether a word of a command line is a text: nothing of this name is there, and no file is called so."""
    if not given.strip() or "\n" in given or len(given) > _LONGEST_NAME:
        return True
    if Path(given).exists():
        return False
    return " " in given.strip() or Path(given).suffix.lower() not in _FILES


#: Longer words of a command line are no paths.
_LONGEST_NAME = 255

#: What files are called at their ends: a word that ends so is a file, and must be there.
_FILES = (*TABLES, *PICTURES, *LINES, ".onnx", ".lanner")


def _by_workers(options: argparse.Namespace, peer: Peer, output: Output) -> int:
    """Predict by workers on a cluster; inputs are read and checked as they are needed."""
    if options.refill:
        raise MisuseError("--refill goes without --ray", fix="workers keep material by themselves while they wait")
    paths = [Path(given) for given in options.inputs]
    header, files = csv_header(options, *paths), files_of(paths)
    with workers_on(options, peer.address, peer.keywords()) as pool:
        with output.progress("setting up"):
            manifest = pool.manifest()
        predictions = collect(pool.predict(in_pieces(each_sample(files, cutting(manifest, options), header))), output)
        show_predictions(predictions, output, manifest)
        output.document({**described(manifest), "predictions": output.predictions})
    return 0


def predict_samples(
    client: Client,
    samples: Sequence[Sample],
    output: Output,
    doing: str = "predicting",
    saturated: Sequence[dict[str, int]] | None = None,
) -> list[Prediction]:
    """Predict samples request by request; each is kept in `output` as soon as it is made.

    `saturated` is told with each, where the model's owner asks.
    """
    made = client.predict_each(np.stack([sample.values for sample in samples]))
    counts = [None] * len(samples) if saturated is None else saturated
    placed = (
        replace(
            prediction.placed(sample.source, sample.index), saturated=prediction.saturated if count is None else count
        )
        for sample, prediction, count in zip(samples, made, counts, strict=True)
    )
    return collect(placed, output, len(samples), doing)


def collect(
    made: Iterable[Prediction], output: Output, count: int | None = None, doing: str = "predicting"
) -> list[Prediction]:
    """Wait for predictions, of which there are `count` if that is known; each is kept in `output` as it is made."""
    predictions: list[Prediction] = []
    with shown_if_broken(predictions, output, count), output.progress(doing, count) as advance:
        for prediction in made:
            predictions.append(prediction)
            output.predictions.append(prediction.document())
            advance(f"{doing}: {len(predictions)}" if count is None else None)
    return predictions


@contextmanager
def shown_if_broken(predictions: Sequence[Prediction], output: Output, count: int | None = None) -> Iterator[None]:
    """Print for people what was predicted when the body fails: it was paid for, and the error follows it."""
    try:
        yield
    except BaseException:
        if predictions:
            show_predictions(predictions, output)
            of_all = "" if count is None else f" of {count}"
            done = f"{len(predictions)}{of_all} predictions are done"
            output.warn(f"{done}; run the command again for the inputs behind the last one above")
        raise


def described(manifest: Manifest) -> dict[str, str]:
    """The title and the note of a model, as far as its owner gave them."""
    found = {"title": manifest.title, "note": manifest.note}
    return {name: text for name, text in found.items() if text is not None}


def show_predictions(predictions: Sequence[Prediction], output: Output, manifest: Manifest | None = None) -> None:
    """Print results and costs for people, below the title and the note of the model, where it is given."""
    for text in () if manifest is None else described(manifest).values():
        output.say(text)
    results = [_result_of(prediction) for prediction in predictions]
    told = [column for column in results[0] if any(result[column] is not None for result in results)]
    # Of files with one sample each the place in the file says nothing.
    is_placed = any(prediction.index for prediction in predictions)
    rows = [
        (prediction.input, prediction.index if is_placed else None, *(result[column] for column in told))
        for prediction, result in zip(predictions, results, strict=True)
    ]
    output.table(("input", "index", *told), rows)
    output.costs(predictions)


def _result_of(prediction: Prediction) -> dict[str, object]:
    """What a prediction tells as people read it; None for what it does not."""
    names = prediction.class_names
    return {
        "label": prediction.label,
        "class": prediction.class_name,
        "labels": _joined(prediction.labels) if prediction.shape is None else _counted_places(prediction),
        "classes": _joined(names) if prediction.labels is not None and prediction.shape is None else None,
        "probability": prediction.rounded_probability,
        "best": _joined(prediction.top) if names is None else _listed(prediction.top, names),
        "logits": _named(prediction.logits, prediction.shape) if names is None else _listed(prediction.logits, names),
        "values": _named(prediction.values, prediction.shape),
        "saturated": _counted(prediction.saturated),
    }


def _counted_places(prediction: Prediction) -> str | None:
    """Of a map with a label at each place, each token with its label, or how often each label is there."""
    if prediction.labels is None or not isinstance(prediction.shape, list):
        return None
    names = prediction.class_names or [str(label) for label in prediction.labels]
    if prediction.tokens is not None:
        pairs = zip(prediction.tokens, names, strict=True)
        return ", ".join(f"{token} {name}" for token, name in pairs if token is not None)
    frequent = Counter(names).most_common()
    shown = ", ".join(f"{name} {count}" for name, count in frequent[:_SHOWN])
    more = f", and {len(frequent) - _SHOWN} more" if len(frequent) > _SHOWN else ""
    return f"map of {' x '.join(map(str, prediction.shape))}: {shown}{more}"


#: Labels of a map that are listed.
_SHOWN = 8


def _named(values: Sequence[float] | Mapping[str, Sequence[float]] | None, shape: Any) -> str | None:  # noqa: ANN401
    """Values, of several outputs each behind its name; those of a map as its shape and range."""
    if not isinstance(values, Mapping):
        return _numbers(values, shape)
    told = {name: _numbers(each, shape[name] if is_map(shape[name]) else None) for name, each in values.items()}
    return "\n".join(f"{name}: {each}" for name, each in told.items())


def _numbers(numbers: Sequence[float] | None, shape: Sequence[int] | None) -> str | None:
    """Logits or values; of a map its shape and range, since --json has them all."""
    if numbers is None or shape is None:
        return _joined(numbers)
    return f"map of {' x '.join(map(str, shape))}, from {min(numbers):.4g} to {max(numbers):.4g}"


def _listed(items: Sequence[int] | Sequence[float] | None, names: Sequence[str]) -> str | None:
    """Indices or scores, each with the name of its class: `2 cat, 0 ant`, or `ant -1.5, bee 3`.

    Of an index that is its class's name there is one alone.
    """
    if items is None:
        return None
    pairs = zip(items, names, strict=True)
    texts = (f"{name} {item:.4g}" if isinstance(item, float) else f"{item} {name}" for item, name in pairs)
    return ", ".join(names if names == [str(item) for item in items] else texts)


def _counted(saturated: dict[str, int] | bool | None) -> str | None:
    """Where values saturated, and how many, or whether any did; none where there are none."""
    if isinstance(saturated, bool):
        return "yes" if saturated else "no"
    return ", ".join(f"{name} {count}" for name, count in (saturated or {}).items()) or None


def _joined(items: Sequence[object] | None) -> str | None:
    """Items with spaces between them, numbers to four digits; none where there is no list."""
    if items is None:
        return None
    return " ".join(f"{item:.4g}" if isinstance(item, float) else str(item) for item in items) or "none"
