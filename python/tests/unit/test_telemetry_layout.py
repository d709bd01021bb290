"""Where steps of known length are laid within a stretch."""

from __future__ import annotations

import pytest

from lanner.telemetry.layout import Stretch, laid_out

SECOND = 1_000_000_000


def test_stretch_ends_at_its_time() -> None:
    assert Stretch.before(10.0, 2.5) == Stretch(7_500_000_000, 10 * SECOND)


@pytest.mark.parametrize(("at_end", "start"), [(False, 0), (True, 7 * SECOND)])
def test_steps_are_one_behind_the_other(at_end: bool, start: int) -> None:
    first, second = laid_out([1.0, 2.0], Stretch(0, 10 * SECOND), at_end=at_end)
    assert first == Stretch(start, start + SECOND)
    assert second == Stretch(start + SECOND, start + 3 * SECOND)


@pytest.mark.parametrize("at_end", [False, True])
def test_steps_that_are_too_long_share_the_stretch(at_end: bool) -> None:
    within = Stretch(SECOND, 2 * SECOND)
    first, second = laid_out([3.0, 1.0], within, at_end=at_end)
    assert (first.start, second.end) == (within.start, within.end)
    assert first.end == second.start == 1_750_000_000


def test_steps_without_length_are_points() -> None:
    assert laid_out([], Stretch(0, SECOND)) == []
    assert laid_out([0.0], Stretch(0, SECOND), at_end=True) == [Stretch(SECOND, SECOND)]
