"""What the truth of samples is read as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanner.errors import InputError
from lanner.evaluation import task_of
from lanner.manifest import InputDescription, Manifest


def truth_of(labels: list[Any], *names: str) -> list[int]:
    entry = InputDescription("x", (4,))
    manifest = Manifest("net", "gazelle", "label", names or None, None, entry, "00", 1, {})
    truth: list[int] = task_of(manifest, 3, np.array(labels), Path("data.npz")).truth.tolist()
    return truth


@pytest.mark.parametrize(
    ("labels", "names", "read"),
    [
        ([1, 2], ("1", "2", "3"), [0, 1]),
        ([3.0, 1.0], ("1", "2", "3"), [2, 0]),
        ([2, 0, 1], ("2", "1", "0"), [0, 2, 1]),
        ([-1, 1], ("-1", "0", "1"), [0, 2]),
        ([2, 0, 1], ("0", "1", "2"), [2, 0, 1]),
        ([2, 0, 1], ("1", "2", "cat"), [2, 0, 1]),
        ([2, 0, 1], (), [2, 0, 1]),
        (["3", "1"], ("1", "2", "3"), [2, 0]),
        ([[1], [2]], ("1", "2", "3"), [0, 1]),
    ],
)
def test_numbers_are_names_where_all_names_are_numbers(
    labels: list[Any], names: tuple[str, ...], read: list[int]
) -> None:
    assert truth_of(labels, *names) == read


@pytest.mark.parametrize(
    ("labels", "names", "told"),
    [
        ([1, 0], ("1", "2", "3"), ["label 0 is no class name", "indices from 0 to 2", "1, 2, 3"]),
        ([1.5], ("1", "2", "3"), ["label 1.5"]),
        ([3], ("a", "b", "c"), ["label 3 is neither the index nor the name", "from 0 to 2", "a, b, c"]),
        ([-1], (), ["label -1", "from 0 to 2"]),
    ],
)
def test_what_is_neither_names_both(labels: list[Any], names: tuple[str, ...], told: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        truth_of(labels, *names)
    assert all(part in str(caught.value) for part in told), str(caught.value)
