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


def _model(error: int, digits: int | None = None) -> Model:
    return cast(Model, SimpleNamespace(secure_error=error, logits_scale=SCALE, manifest=SimpleNamespace(digits=digits)))


def _prediction(
    values: list[int] | None = None, label: int | None = None, probability: float | None = None
) -> Prediction:
    logits = None if values is None else [value / SCALE for value in values]
    return Prediction(label, probability, logits, {}, [], "cheetah", "net", values=values)


@pytest.mark.parametrize("error", [0, 1, 3])
def test_scores_are_within_the_error_and_not_beyond(error: int) -> None:
    for off in range(-5, 6):
        values = [int(value) for value in REFERENCE]
        values[1] += off
        assert agrees(_prediction(values=values), REFERENCE, _model(error)) == (abs(off) <= error)
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


@pytest.mark.parametrize("error", [0, 1, 4])
def test_probabilities_are_those_of_scores_within_the_error(error: int) -> None:
    rng = np.random.default_rng(1)
    unit = 10.0**-6
    model = _model(error, 6)
    for _ in range(200):
        scores = REFERENCE + rng.integers(-error, error + 1, 4)
        label = int(scores.argmax())
        probability = 1 / np.exp((scores - scores[label]) / SCALE).sum()
        assert agrees(_prediction(label=label, probability=probability + 0.9 * unit), REFERENCE, model)
    # The extremes: all other scores down, and all up.
    for sign in (-1, 1):
        scores = REFERENCE + sign * error
        scores[2] = REFERENCE[2] - sign * error
        extreme = 1 / np.exp((scores - scores[2]) / SCALE).sum()
        assert agrees(_prediction(label=2, probability=extreme), REFERENCE, model)
        assert not agrees(_prediction(label=2, probability=extreme - sign * 2 * unit), REFERENCE, model)


def test_a_bound_beyond_all_scores_says_nothing_and_fails_nothing() -> None:
    assert agrees(_prediction(label=1, probability=0.5), REFERENCE, _model(1 << 60, 2))
