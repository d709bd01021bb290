"""``lanner evaluate``: accuracy of the float, the fixed-point and the secure computation on labelled data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.cli.output import Output
from lanner.cli.process import ServerProcess
from lanner.errors import InputError, MisuseError
from lanner.inputs import as_batch, load_array, load_labels
from lanner.model import Model, load
from lanner.prediction import Prediction
from lanner.wording import counted

NAME = "evaluate"
HELP = "measure accuracy on labelled data: float, fixed-point and secure"

#: Samples computed at once by the references.
BATCH = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.lanner")
    parser.add_argument("--data", type=Path, required=True, metavar="X.npz", help="samples `x` and labels `y`")
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N samples")
    parser.add_argument("--secure", action="store_true", help="also run every sample through the protocol")


def run(options: argparse.Namespace, output: Output) -> int:
    """Evaluate the references and, if asked, the protocol, which must agree with the fixed-point reference."""
    if options.limit is not None and options.limit < 1:
        raise MisuseError(f"--limit is {options.limit}", fix="give 1 or more")
    model = load(options.model)
    x, y = _read_data(options.data, model, options.limit)
    exact, integers, overflows = _references(model, x, output)
    fixed_labels = integers.argmax(1)
    document: dict[str, Any] = {
        "samples": len(x),
        "float": {"accuracy": _accuracy(exact.argmax(1), y)},
        "fixed": {
            "accuracy": _accuracy(fixed_labels, y),
            "labels_agree": int((exact.argmax(1) == fixed_labels).sum()),
            "overflows": overflows,
        },
        "secure": None,
    }
    predictions = []
    if options.secure:
        predictions = _secure(options.model, x, output)
        document["secure"] = _compare(predictions, y, integers, model)
    _show(document, predictions, output)
    output.document(document)
    return 0


def _read_data(path: Path, model: Model, limit: int | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    x = as_batch(load_array(path, "x"), model.manifest.input, f"{path}, x")
    y = load_labels(path)
    if len(x) != len(y):
        raise InputError(
            f"it has {counted(len(x), 'sample')} and {counted(len(y), 'label')}",
            where=str(path),
            fix="give one label each",
        )
    return x[:limit], y[:limit]


def _references(
    model: Model, x: NDArray[np.float32], output: Output
) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
    """Float logits, fixed-point integer logits, and the overflows met; inputs out of range count among these."""
    exact, integers, overflows = [], [], 0
    entry = model.manifest.input
    with output.progress("references", len(x)) as advance:
        for start in range(0, len(x), BATCH):
            batch = x[start : start + BATCH]
            exact.append(model.predict_float(batch))
            within = np.clip(batch, entry.low, entry.high)
            overflows += int((within != batch).reshape(len(batch), -1).any(1).sum())
            values, met = model.predict_integers(within)
            integers.append(values)
            overflows += met
            advance(steps=len(batch))
    return np.concatenate(exact), np.concatenate(integers), overflows


def _secure(path: Path, x: NDArray[np.float32], output: Output) -> list[Prediction]:
    """Run every sample through the protocol, with the server in another process."""
    predictions = []
    with ServerProcess([str(path)]) as server, server.connect() as client:
        entry = client.manifest.input
        with output.progress("secure", len(x)) as advance:
            for index, sample in enumerate(x):
                prediction = client.predict(np.clip(sample, entry.low, entry.high)).placed(None, index)
                predictions.append(prediction)
                output.predictions.append(prediction.document())
                advance()
    return predictions


def _compare(
    predictions: list[Prediction], y: NDArray[np.int64], integers: NDArray[np.int64], model: Model
) -> dict[str, Any]:
    """Accuracy of the protocol, and on how many samples it equals the reference in all that it reveals."""
    labels = np.array([prediction_label(prediction) for prediction in predictions])
    agree = [agrees(prediction, reference, model) for prediction, reference in zip(predictions, integers, strict=True)]
    return {"accuracy": _accuracy(labels, y), "agrees_with_reference": sum(agree), "samples": len(predictions)}


def prediction_label(prediction: Prediction) -> int:
    """The label that a prediction reveals, from its logits where the policy is ``logits``."""
    if prediction.label is not None:
        return prediction.label
    return int(np.argmax(prediction.logits or [0.0]))


def agrees(prediction: Prediction, reference: NDArray[np.int64], model: Model) -> bool:
    """Whether all that a prediction reveals is what the reference's scores give.

    Only the label of a model that rounds faithfully may be that of scores within `Model.secure_error` of them.
    """
    if prediction.values is not None and list(prediction.values) != reference.tolist():
        return False
    if prediction.top is not None and not are_best(prediction.top, reference, 0):
        return False
    if prediction.probability is not None and prediction.probability != model.probability_of(reference):
        return False
    return are_best([prediction_label(prediction)], reference, model.secure_error)


def are_best(classes: Sequence[int], reference: NDArray[np.int64], error: int) -> bool:
    """Whether these can be the best classes, the best first, when no score is off by more than `error`.

    Without an error, ties go to the lowest index.
    """
    order = np.argsort(-reference, kind="stable")[: len(classes)]
    if error == 0:
        return list(classes) == list(order)
    distances = np.abs(reference[list(classes)] - reference[order])
    return len(set(classes)) == len(classes) and bool((distances <= 2 * error).all())


def _show(document: dict[str, Any], predictions: list[Prediction], output: Output) -> None:
    samples, fixed, secure = document["samples"], document["fixed"], document["secure"]
    rows: list[tuple[object, ...]] = [
        ("float", f"{document['float']['accuracy']:.2%}", ""),
        ("fixed-point", f"{fixed['accuracy']:.2%}", f"labels as float on {fixed['labels_agree']} of {samples}"),
    ]
    if secure is not None:
        agreement = f"as fixed-point on {secure['agrees_with_reference']} of {secure['samples']}"
        rows.append(("secure", f"{secure['accuracy']:.2%}", agreement))
    output.table(("computation", "accuracy", "agreement"), rows)
    output.say(f"{counted(samples, 'sample')}, {counted(fixed['overflows'], 'overflow')}")
    output.costs(predictions)


def _accuracy(labels: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    return float((labels == y).mean())
