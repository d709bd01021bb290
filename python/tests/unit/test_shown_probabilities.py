"""Probabilities in tables."""

from __future__ import annotations

import pytest

from lanner.cli.predict import rounded_probabilities


@pytest.mark.parametrize(
    ("probabilities", "texts"),
    [
        ([0.99, 1.0, None, 0.9], ["0.99", "1.00", None, "0.90"]),
        ([1.0], ["1.00"]),
        ([0.0], ["0.00"]),
        ([0.5, 1.0], ["0.5", "1.0"]),
        ([0.123456, 1.0], ["0.123456", "1.000000"]),
        ([0.00001, 0.5], ["0.00001", "0.50000"]),
        ([None], [None]),
        ([], []),
    ],
)
def test_probabilities_have_equally_many_decimals(probabilities: list[float | None], texts: list[str | None]) -> None:
    rounded = rounded_probabilities(probabilities)
    assert [None if each is None else f"{each:f}" for each in rounded] == texts
