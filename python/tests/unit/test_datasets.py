"""The demo's digits."""

import numpy as np

from lanner.datasets import TRAIN_COUNT, load_digits, scale_digits


def test_splits_are_disjoint_and_complete() -> None:
    (train, train_labels), (test, test_labels) = load_digits("train"), load_digits("test")
    assert train.shape == (TRAIN_COUNT, 1, 28, 28)
    assert test.shape == (1797 - TRAIN_COUNT, 1, 28, 28)
    assert set(test_labels.tolist()) == set(train_labels.tolist()) == set(range(10))


def test_scaling_keeps_range_constants_and_margin() -> None:
    scaled = scale_digits(np.full((1, 8, 8), 16.0))
    assert np.allclose(scaled[0, 0, 4:24, 4:24], 1.0)
    assert scaled.sum() == 400
