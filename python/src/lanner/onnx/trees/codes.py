"""Questions about numbers as questions about codes: where among a column's codes the answer changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.trees.ensemble import Question
from lanner.onnx.trees.table import Cell


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question's answer is for every code.

    Attributes:
        first: The answer for the first code.
        cuts: The codes from which on it is the other one, then the first one again, and so on.
        missing: The answer where the number is missing; None where none can be.
    """

    first: bool
    cuts: tuple[int, ...]
    missing: bool | None


def answers(questions: Sequence[Question], cells: Sequence[Cell]) -> list[Answer]:
    """The answers of all questions, each about a cell, found for all questions about a cell at once."""
    found: dict[int, Answer] = {}
    by_cell: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        by_cell.setdefault(question.column, []).append(place)
    for column, places in by_cell.items():
        cell = cells[column]
        if cell.column.categories is not None:
            found |= {place: _of_categories(questions[place], cell) for place in places}
            continue
        numbers = [value for place in places for value in questions[place].values]
        # For each number the first codes at which the cell's own is at least as far on, and farther.
        falls = _falls(cell)
        reached = iter(_bounds(cell, np.array(numbers, np.float64), falls))
        for place in places:
            question = questions[place]
            bounds = [next(reached) for _ in question.values]
            found[place] = _answer(question, cell, bounds, falls)
    return [found[place] for place in range(len(questions))]


def _of_categories(question: Question, cell: Cell) -> Answer:
    """The answer of a column of categories, whose numbers may have any order."""
    low, _ = cell.column.ends
    # There are no others: beyond the last category the answer goes on.
    count = cell.column.choices
    asked = _holds(question, cell.at(np.arange(low, low + count)).astype(np.float64))
    cuts = tuple(int(low + place) for place in np.flatnonzero(np.diff(asked)) + 1)
    return Answer(bool(asked[0]), cuts, _missing(question, cell) if cell.column.missing else None)


def _holds(question: Question, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """A question's answer for each number, none of which is missing."""
    first = question.values[0]
    answers: dict[str, Callable[[], NDArray[np.bool_]]] = {
        "LEQ": lambda: numbers <= first,
        "LT": lambda: numbers < first,
        "GTE": lambda: numbers >= first,
        "GT": lambda: numbers > first,
        "EQ": lambda: numbers == first,
        "NEQ": lambda: numbers != first,
        "MEMBER": lambda: np.isin(numbers, question.values),
    }
    return answers[question.mode]()


def _answer(question: Question, cell: Cell, bounds: Sequence[tuple[int, int]], falls: bool) -> Answer:
    low, high = cell.column.ends
    mode = question.mode
    if mode in ("EQ", "NEQ", "MEMBER"):
        cuts: list[int] = []
        for begin, end in sorted(set(bounds)):
            # Sets of neighbours are one interval.
            if begin == end:
                continue
            if cuts and cuts[-1] == begin:
                cuts[-1] = end
            else:
                cuts += [begin, end]
        first = mode == "NEQ"
    else:
        begin, end = bounds[0]
        # On a rising cell x <= t holds up to where it is passed, on a falling one from where it is reached.
        turns = begin if (mode in ("LT", "GTE")) != falls else end
        cuts, first = [turns], (mode in ("LEQ", "LT")) != falls
    while cuts and cuts[0] <= low:
        cuts, first = cuts[1:], not first
    cuts = [cut for cut in cuts if cut <= high]
    return Answer(first, tuple(cuts), _missing(question, cell) if cell.column.missing else None)


def _missing(question: Question, cell: Cell) -> bool:
    number, values = cell.at_missing, question.values
    if np.isnan(number):
        return question.missing or question.mode == "NEQ"
    asked = {
        "LEQ": number <= values[0],
        "LT": number < values[0],
        "GTE": number >= values[0],
        "GT": number > values[0],
        "EQ": number == values[0],
        "NEQ": number != values[0],
    }
    return bool(asked[question.mode]) if question.mode in asked else number in values


def _falls(cell: Cell) -> bool:
    """Whether a cell's numbers become smaller as codes grow."""
    ends = cell.at(np.array(cell.column.ends, np.int64))
    return bool(ends[1] < ends[0])


def _bounds(cell: Cell, wanted: NDArray[np.float64], falls: bool) -> list[tuple[int, int]]:
    """The first codes at which a cell's number is as far on as each of the numbers, and those at which it is farther.

    It is one behind the last code where it never is. Codes are as the samples that have them, or as the numbers that
    they stand for. Where samples are not on the grid and no sample has a code, a number counts as its nearest code:
    thresholds often are a number of the training's, which then is what it is.
    """
    reached, passed = (_first(cell, wanted, falls, passed=each) for each in (False, True))
    if not cell.exact:
        low, high = cell.column.ends
        before, at = np.clip(reached - 1, low, high), np.clip(reached, low, high)
        far_before, far = (np.abs(cell.at(codes).astype(np.float64) - wanted) for codes in (before, at))
        # What lies between two codes becomes the even one, as numbers do.
        is_before = (far_before < far) | ((far_before == far) & ((before + cell.column.offset) % 2 == 0))
        nearest = np.where(is_before, before, at)
        width = np.abs(np.diff(cell.at(np.array([low, low + 1, high - 1, high])).astype(np.float64)))
        within = np.where(
            reached <= low, far <= width[0] / 2, np.where(reached > high, far_before <= width[2] / 2, True)
        )
        counted = within & ~cell.is_known(nearest)
        reached, passed = np.where(counted, nearest, reached), np.where(counted, nearest + 1, passed)
    return list(zip(reached.tolist(), passed.tolist(), strict=True))


def _first(cell: Cell, wanted: NDArray[np.float64], falls: bool, *, passed: bool) -> NDArray[np.int64]:
    """The first codes at which a cell's number is as far on as each of the numbers, or has passed it."""
    low, high = cell.column.ends
    least = np.full(len(wanted), low - 1, np.int64)
    most = np.full(len(wanted), high + 1, np.int64)

    def is_there(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        values = cell.at(codes).astype(np.float64)
        first, second = (wanted, values) if falls else (values, wanted)
        return np.asarray(first > second if passed else first >= second)

    while (most - least > 1).any():
        middle = (least + most) // 2
        there = is_there(np.clip(middle, low, high))
        moving = most - least > 1
        most = np.where(moving & there, middle, most)
        least = np.where(moving & ~there, middle, least)
    return most
