"""The estimates of docs/estimates against the text beside them and against what is known of them."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import contextlib
import io
import math
import random
import sys
from collections import Counter
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
    for attack in (lpn.hybrid, lpn.regular_enumeration, lpn.subsystem):
        assert attack(more_inputs) > attack(problem) + 5
    assert lpn.hybrid(more_trees) < lpn.hybrid(problem) - 1


def test_gauss_is_the_chance_of_outputs_without_noise() -> None:
    # 3 of 10 outputs without noise, 2 of the others with: C(7, 2) of C(10, 2) choices.
    assert lpn.gauss(10, 3, 2) == pytest.approx(2.8 * math.log2(3) + math.log2(45 / 21))


def test_some_inputs_with_the_outputs_among_them_are_a_system_of_their_own() -> None:
    # Inputs are given up one by one, the one that the fewest outputs add first, as long as the outputs left are enough.
    problem = lpn.Problem(t=53, k=288, d=6)
    draw = random.Random(5)  # noqa: S311 (a code to try, no secret)
    columns = [{draw.randrange(problem.k) for _ in range(lpn.ONES)} for _ in range(problem.outputs)]
    inputs = set(range(problem.k))
    while True:
        uses = Counter(place for column in columns for place in column)
        given_up = min(inputs, key=lambda place: uses[place])
        left = [column for column in columns if given_up not in column]
        if len(left) < len(inputs):
            break
        inputs, columns = inputs - {given_up}, left
    share = len(inputs) / problem.k
    assert lpn.within(problem, share) > len(columns) >= len(inputs)
    # A choice at random needs (k / N)^(1/9) of the inputs.
    assert 0.6 < share < (problem.k / problem.outputs) ** (1 / 9) - 0.05
    # They determine the inputs: all pivots but few are found.
    pivots: dict[int, int] = {}
    for column in columns:
        row = sum(1 << place for place in column)
        while row and row.bit_length() in pivots:
            row ^= pivots[row.bit_length()]
        if row:
            pivots[row.bit_length()] = row
    assert len(pivots) >= len(inputs) - 3


@pytest.mark.slow
def test_text_is_what_the_script_prints() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        lpn.main()
    assert printed.getvalue() == (ESTIMATES / "lpn.txt").read_text(encoding="utf-8")
