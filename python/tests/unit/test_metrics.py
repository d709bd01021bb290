"""Metrics are those of their definitions, and of scikit-learn where it is installed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanner.metrics import accuracy, area_under_roc, determination, mean_absolute_error

RNG = np.random.default_rng(4)


def test_accuracy_is_the_share_that_is_right() -> None:
    metric = accuracy(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]))
    assert metric.value == 0.75
    # Of independent samples: the root of a (1 - a) / n.
    assert metric.error == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    several = accuracy(np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 1]]))
    assert several.value == 0.75


def test_the_area_counts_pairs_in_order_and_ties_half() -> None:
    scores, truth = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1])
    assert area_under_roc(scores, truth).value == (1 + 0.5 + 1 + 1) / 4
    assert area_under_roc(-scores, truth).value == pytest.approx(1 - 3.5 / 4)
    assert math.isnan(area_under_roc(scores, np.ones(4, np.int64)).value)


def test_the_areas_standard_error_is_its_spread() -> None:
    areas, errors = [], []
    for _ in range(300):
        truth = np.arange(200) % 2
        found = area_under_roc(RNG.standard_normal(200) + truth, truth)
        areas.append(found.value)
        errors.append(found.error)
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.2)


def test_determination_is_one_less_the_share_that_is_missed() -> None:
    truth = np.array([[1.0], [2.0], [3.0]])
    assert determination(truth, truth).value == 1.0
    assert determination(np.full((3, 1), 2.0), truth).value == 0.0
    assert mean_absolute_error(truth + 0.5, truth).value == 0.5
    assert math.isnan(determination(truth, np.ones((3, 1))).value)


def test_metrics_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    truth, scores = RNG.integers(0, 2, 500), RNG.integers(0, 20, 500).astype(np.float64)
    assert area_under_roc(scores, truth).value == pytest.approx(metrics.roc_auc_score(truth, scores))
    values, measured = RNG.standard_normal((100, 3)), RNG.standard_normal((100, 3))
    values += measured
    assert determination(values, measured).value == pytest.approx(metrics.r2_score(measured, values))
    expected = metrics.mean_absolute_error(measured, values)
    assert mean_absolute_error(values, measured).value == pytest.approx(expected)
