"""The estimates of docs/estimates against the text beside them and against what is known of them."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import contextlib
import io
import math
import sys
from pathlib import Path

import pytest

ESTIMATES = Path(__file__).resolve().parents[2] / "docs" / "estimates"
sys.path.insert(0, str(ESTIMATES))

import lpn  # noqa: E402 (a script beside the text that it prints)


def test_text_has_what_the_script_finds_for_the_smallest_set() -> None:
    costs = lpn.estimates(lpn.IN_USE[0])
    text = (ESTIMATES / "lpn.txt").read_text(encoding="utf-8")
    row = text.split("The sets in use\n")[1].splitlines()[1].split()[4:]
    assert row == [f"{cost:.1f}" for cost in [*costs.values(), min(costs.values())]]


def test_more_inputs_cost_an_attacker_more_and_more_trees_less() -> None:
    problem = lpn.IN_USE[0]
    more_inputs, more_trees = problem._replace(k=problem.k * 9 // 8), problem._replace(t=problem.t * 9 // 8)
    for attack in (lpn.hybrid, lpn.regular_enumeration):
        assert attack(more_inputs) > attack(problem) + 5
    assert lpn.hybrid(more_trees) < lpn.hybrid(problem) - 1


def test_gauss_is_the_chance_of_outputs_without_noise() -> None:
    # 3 of 10 outputs without noise, 2 of the others with: C(7, 2) of C(10, 2) choices.
    assert lpn.gauss(10, 3, 2) == pytest.approx(2.8 * math.log2(3) + math.log2(45 / 21))


@pytest.mark.slow
def test_text_is_what_the_script_prints() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        lpn.main()
    assert printed.getvalue() == (ESTIMATES / "lpn.txt").read_text(encoding="utf-8")
