"""Keeps the tests that everybody runs short."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Generator, Iterable
from typing import TypeVar

import pytest

#: Seconds of a core that a test may take which is not marked ``slow``.
MOST_SECONDS = 5.0

#: How many times as long the same test may take on a slow or a busy machine.
ALLOWANCE = 2.0


T = TypeVar("T")


def marked(values: Iterable[T], slow: Container[str], name: Callable[[T], str] = str) -> list[object]:
    """Values for ``parametrize``, of which those with these names make a test ``slow``."""
    return [pytest.param(value, marks=pytest.mark.slow) if name(value) in slow else value for value in values]


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
