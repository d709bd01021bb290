"""Which secure results agree with the fixed-point reference."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from lanner.cli.evaluate import agrees, are_best
from lanner.model import Model
from lanner.prediction import Prediction

REFERENCE = np.array([40, 10, 44, 43], dtype=np.int64)
SCALE = 8.0


#: The most likely class of the reference's scores.
PROBABILITY = 0.53


def _model(error: int) -> Model:
    return cast(Model, SimpleNamespace(secure_error=error, probability_of=lambda _: PROBABILITY))


def _prediction(
    values: list[int] | None = None, label: int | None = None, probability: float | None = None
) -> Prediction:
    logits = None if values is None else [value / SCALE for value in values]
    return Prediction(label, probability, logits, {}, [], "cheetah", "net", values=values)


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
