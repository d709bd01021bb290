"""What may be asked of precision, and the sentence on what is missing."""

from __future__ import annotations

import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.errors import MisuseError
from lanner.options import CompileOptions
from lanner.precision import Reached


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("0.5%", "0.5%"),
        ("25%", "25%"),
        (" 1.% ", "1%"),
        ("12", "12 bits"),
        (6, "6 bits"),
    ],
)
def test_a_percentage_has_its_sign_and_bits_have_none(asked: str | int, expected: str) -> None:
    reached = lanner.compile(tiny_classifier(), tiny_samples(), precision=asked, allow_imprecise=True).precision
    assert reached is not None
    assert reached.asked == expected


@pytest.mark.parametrize("asked", ["0.5", "0%", "100%", "-1%", "5", "17", "12 bits", "", "nan%", "1e-3%", 0.5, 5, True])
def test_anything_else_is_misuse(asked: str | int) -> None:
    with pytest.raises(MisuseError, match="percentage with its sign") as caught:
        CompileOptions(precision=asked)
    assert caught.value.exit_code == 2


def test_what_is_missing_is_one_sentence() -> None:
    reached = Reached("0.5%", "0.43%", 0.0043, True, 32, 32, 0)
    assert reached.shortfall() is None
    missed = Reached("0.5%", "1.3%", 0.013, False, 32, 30, 2).shortfall()
    assert missed is not None
    for part in ("1.3%", "0.5%", "2 clear labels"):
        assert part in missed
    assert Reached.of_report(None) is None
