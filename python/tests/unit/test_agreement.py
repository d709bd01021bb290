"""Which secure results agree with the fixed-point reference."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from lanner.agreement import agreeing, agrees, are_best, labels_of
from lanner.model import Model
from lanner.prediction import Prediction

REFERENCE = np.array([40, 10, 44, 43], dtype=np.int64)
SCALE = 8.0


#: The most likely class of the reference's scores.
PROBABILITY = 0.53


def _model(error: int, places: tuple[int, ...] | None = None) -> Model:
    manifest = SimpleNamespace(places=places)
    return cast(Model, SimpleNamespace(secure_error=error, probability_of=lambda _: PROBABILITY, manifest=manifest))


def _prediction(
    values: list[int] | None = None, label: int | None = None, probability: float | None = None
) -> Prediction:
    logits = None if values is None else [value / SCALE for value in values]
    return Prediction(label, probability, logits, {}, [], "cheetah", "net", integers=values)


@pytest.mark.parametrize("error", [0, 3])
def test_scores_are_the_references(error: int) -> None:
    for off in range(-5, 6):
        values = [int(value) for value in REFERENCE]
        values[1] += off
        assert agrees(_prediction(values=values), REFERENCE, _model(error)) == (off == 0)
    assert not agrees(_prediction(values=[40, 10, 44]), REFERENCE, _model(error))


def test_labels_differ_only_where_scores_are_near() -> None:
    agreed = [[label for label in range(4) if agrees(_prediction(label=label), REFERENCE, _model(e))] for e in range(4)]
    assert agreed == [[2], [2, 3], [0, 2, 3], [0, 2, 3]]


def test_order_differs_only_where_scores_are_near() -> None:
    assert are_best([2, 3, 0], REFERENCE, 0)
    assert not are_best([3, 2], REFERENCE, 0)
    assert are_best([3, 2], REFERENCE, 1)
    assert not are_best([3, 0], REFERENCE, 1)
    assert are_best([0, 3, 2], REFERENCE, 2)
    assert not are_best([2, 2], REFERENCE, 2)
    # Without an error, ties go to the lowest index.
    assert are_best([1, 2], np.array([0, 5, 5]), 0)
    assert not are_best([2, 1], np.array([0, 5, 5]), 0)


def test_probabilities_are_the_references_digit_for_digit() -> None:
    assert agrees(_prediction(label=2, probability=PROBABILITY), REFERENCE, _model(0))
    assert not agrees(_prediction(label=3, probability=PROBABILITY), REFERENCE, _model(0))
    for other in (0.52, 0.54):
        assert not agrees(_prediction(label=2, probability=other), REFERENCE, _model(0))


def test_a_bound_beyond_all_scores_says_nothing_and_fails_nothing() -> None:
    assert agrees(_prediction(label=1), REFERENCE, _model(1 << 60))


def test_several_labels_are_those_of_the_positive_scores() -> None:
    reference = np.array([3, 0, -1, 1], dtype=np.int64)
    for labels, agreed in [([0, 3], True), ([0, 1, 3], False), ([0], False), ([], False)]:
        prediction = Prediction(None, None, None, {}, [], "cheetah", "net", labels=labels)
        assert agrees(prediction, reference, _model(0)) == agreed


def test_labels_of_places_are_those_of_each_places_scores() -> None:
    for labels, agreed in [([0, 0], True), ([0, 1], False), ([1, 0], False), ([0], False)]:
        prediction = Prediction(None, None, None, {}, [], "cheetah", "net", labels=labels)
        assert agrees(prediction, REFERENCE, _model(0, places=(2,))) == agreed
    scores = np.array([[0.0, 1.0, 3.0, 3.0], [2.0, 1.0, 0.0, 5.0]])
    at_places = labels_of(scores, "label-map", 2)
    assert at_places is not None
    assert at_places.tolist() == [[1, 0], [0, 1]]


def test_labels_follow_from_scores_as_the_output_says() -> None:
    scores = np.array([[0.0, 1.0, -1.0], [2.0, 2.0, 0.5]])
    labels, several = labels_of(scores, "label"), labels_of(scores, "labels")
    assert labels is not None
    assert several is not None
    assert labels.tolist() == [1, 0]
    assert several.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert labels_of(scores, "value") is None
    assert agreeing(several, np.array([[0, 1, 0], [1, 0, 1]])) == 1
    # One score alone speaks for class 1, and 0 is not above 0.
    alone = labels_of(np.array([[-1.0], [0.0], [0.1]]), "logits")
    assert alone is not None
    assert alone.tolist() == [0, 0, 1]
