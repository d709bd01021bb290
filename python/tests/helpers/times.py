"""Keeps the tests that everybody runs short."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

#: Seconds of a core that a test may take which is not marked ``slow``.
MOST_SECONDS = 5.0

#: How many times as long the same test may take on a slow or a busy machine.
ALLOWANCE = 2.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Name a test that takes too long among the warnings; a ``conftest.py`` imports this for the tests in its folder.

    What counts is the processor's time, of the processes that the test has waited for, too; not that of fixtures.
    """
    before = processor_seconds()
    result = yield
    spent = processor_seconds() - before
    if spent > MOST_SECONDS * ALLOWANCE and item.get_closest_marker("slow") is None:
        item.warn(pytest.PytestWarning(f"{item.nodeid} took {spent:.1f} s of a core; shorten it, or mark it slow"))
    return result


def processor_seconds() -> float:
    """Seconds of a core that this process has used, and those of its children that have ended."""
    return sum(os.times()[:4])
