"""What scores tell, and whether a secure prediction is what the fixed-point reference's scores give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.model import Model
from lanner.prediction import Prediction


def labels_of(
    scores: NDArray[np.floating] | NDArray[np.integer], output: str, places: int = 1
) -> NDArray[np.int64] | None:
    """The labels that scores tell under an output policy.

    Args:
        scores: Shape (n, outputs).
        output: The model's output policy.
        places: For ``label-map``, how many places there are.

    Returns:
        A class index for each sample, shape (n,), 1 for one score above 0; for ``labels`` 1 where one holds, shape
        (n, outputs); for ``label-map`` a class index for each place, shape (n, places); None for ``value``, which tells
        no label.
    """
    if output == "value":
        return None
    if output == "label-map":
        at_places: NDArray[np.int64] = scores.reshape(len(scores), places, -1).argmax(2).astype(np.int64)
        return at_places
    if output == "labels":
        held: NDArray[np.int64] = (scores > 0).astype(np.int64)
        return held
    if scores.shape[1] == 1:
        above: NDArray[np.int64] = (scores[:, 0] > 0).astype(np.int64)
        return above
    best: NDArray[np.int64] = scores.argmax(1).astype(np.int64)
    return best


def agreement_name(model: Model) -> str:
    """What it is called in a document that a prediction is what it must be.

    Results of a model that does not round exactly are never said to agree with the reference, only to be as near as is
    proved.
    """
    return "agrees_with_reference" if model.manifest.is_exact else "within_bound_of_reference"


def agreeing(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """On how many samples two sets of labels are equal."""
    return int((a == b).reshape(len(a), -1).all(1).sum())


def agrees(prediction: Prediction, reference: NDArray[np.int64], model: Model) -> bool:
    """Whether all that a prediction reveals is what the reference's scores give.

    Only the label of a model that does not round exactly may be that of scores within `Model.secure_error` of them.
    """
    if prediction.integers is not None:
        return bool(list(prediction.integers) == reference.tolist())
    if prediction.labels is not None and (places := model.manifest.places) is not None:
        return np.array_equal(prediction.labels, reference.reshape(math.prod(places), -1).argmax(1))
    if prediction.labels is not None:
        return np.array_equal(prediction.labels, np.flatnonzero(reference > 0))
    if prediction.top is not None and not are_best(prediction.top, reference, 0):
        return False
    if prediction.probability is not None and prediction.probability != model.probability_of(reference):
        return False
    return prediction.label is not None and are_best([prediction.label], reference, model.secure_error)


def are_best(classes: Sequence[int], reference: NDArray[np.int64], error: int) -> bool:
    """Whether these can be the best classes, the best first, when no score is off by more than `error`.

    Without an error, ties go to the lowest index.
    """
    order = np.argsort(-reference, kind="stable")[: len(classes)]
    if error == 0:
        return list(classes) == list(order)
    distances = np.abs(reference[list(classes)] - reference[order])
    return len(set(classes)) == len(classes) and bool((distances <= 2 * error).all())
