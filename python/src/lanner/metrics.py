"""How good predictions are: accuracy, area under the ROC curve, coefficient of determination, absolute error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured value and its standard error over the choice of the samples; either is NaN where it is not defined."""

    value: float
    error: float


def accuracy(labels: Integers, truth: Integers) -> Metric:
    """The share of labels that are right, all shapes alike; the standard error is that of independent samples."""
    right = (labels == truth).reshape(len(truth), -1).mean(1)
    return Metric(float(right.mean()), _error_of_mean(right))


def area_under_roc(scores: Floats, truth: Integers) -> Metric:
    """How often the score of a sample of class 1 is above that of one of class 0, ties counting half.

    The standard error is Hanley and McNeil's (Radiology 143, 1982). Not defined unless both classes occur.

    Args:
        scores: Shape (n,), larger for class 1.
        truth: 0 or 1 for each, shape (n,).
    """
    positive, negative = int((truth == 1).sum()), int((truth == 0).sum())
    if positive == 0 or negative == 0:
        return Metric(math.nan, math.nan)
    area = (_ranks(scores)[truth == 1].sum() - positive * (positive + 1) / 2) / (positive * negative)
    both, one = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positive - 1) * (both - area**2) + (negative - 1) * (one - area**2)
    return Metric(float(area), math.sqrt(max(spread, 0.0) / (positive * negative)))


def determination(values: Floats, truth: Floats) -> Metric:
    """R2: 1 less the squared errors over the squared deviations from the mean, and the mean of that over the outputs.

    The standard error is that of the mean squared error. Not defined where an output's truth is the same everywhere.

    Args:
        values: Shape (n, outputs).
        truth: The same shape.
    """
    deviations = ((truth - truth.mean(0)) ** 2).mean(0)
    if (deviations == 0).any():
        return Metric(math.nan, math.nan)
    missed = ((values - truth) ** 2 / deviations).mean(1)
    return Metric(float(1 - missed.mean()), _error_of_mean(missed))


def mean_absolute_error(values: Floats, truth: Floats) -> Metric:
    """The mean distance from the truth, in its unit; both of shape (n, outputs)."""
    distances = np.abs(values - truth).mean(1)
    return Metric(float(distances.mean()), _error_of_mean(distances))


def _error_of_mean(values: Floats) -> float:
    return float(values.std() / math.sqrt(len(values)))


def _ranks(scores: Floats) -> Floats:
    """The rank of each score from 1 on, equal ones sharing the mean of theirs."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[places]
    return ranks
