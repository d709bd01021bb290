"""Pieces of a dataset whose workers come and go: results in order, pieces that run again, and errors in their place."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lanner.errors import InputError, LannerError
from lanner.ray.order import LOSSES, Order
from lanner.ray.pieces import Piece
from lanner.ray.places import Place
from lanner.ray.reader import Reader


def piece(number: int) -> Piece:
    block: Any = number
    return Piece(block, slice(0, 1), [(None, number)])


def pieces(count: int, error: Exception | None = None) -> Generator[Piece]:
    yield from map(piece, range(count))
    if error is not None:
        raise error


@contextmanager
def ordered(made: Generator[Piece]) -> Iterator[Order]:
    with Reader(made, 2) as reader:
        yield Order(reader)


def take(order: Order) -> tuple[int, Piece] | None:
    """The next piece, which a thread reads; None after the last."""
    while (taken := order.take()) is None and order.reading:
        time.sleep(0.01)
    return taken


def test_results_wait_for_those_before_them() -> None:
    with ordered(pieces(3)) as order:
        assert [taken and taken[0] for taken in (take(order), take(order), take(order), take(order))] == [0, 1, 2, None]
        results: list[list[Any]] = [["a"], ["b"], ["c"]]
        order.finish(1, results[1])
        assert list(order.ready()) == []
        order.finish(0, results[0])
        assert list(order.ready()) == results[:2]
        assert not order.ended
        order.finish(2, results[2])
        assert list(order.ready()) == results[2:]
        assert order.ended


def test_a_lost_piece_runs_again_before_others_and_not_for_ever() -> None:
    with ordered(pieces(3)) as order:
        first = take(order)
        assert first is not None
        for _ in range(LOSSES - 1):
            order.lose(*first)
            assert order.take() == first
        with pytest.raises(LannerError, match="rows 0 to 0"):
            order.lose(*first)


def test_an_error_is_told_after_all_before_it_and_nothing_later_begins() -> None:
    with ordered(pieces(9)) as order:
        taken = [take(order) for _ in range(3)]
        order.fail(1, InputError("it does not fit"))
        assert taken[2] is not None
        assert taken[0] is not None
        order.give_back(*taken[2])
        assert order.take() is None
        order.give_back(*taken[0])
        assert order.take() == taken[0]
        order.finish(0, [])
        ready = order.ready()
        assert next(ready) == []
        with pytest.raises(InputError):
            next(ready)


def test_what_reading_fails_with_stands_behind_what_was_read() -> None:
    with ordered(pieces(1, InputError("it is damaged"))) as order:
        assert take(order) is not None
        assert take(order) is None
        order.finish(0, [])
        with pytest.raises(InputError):
            list(order.ready())


def test_reading_ends_with_who_reads() -> None:
    closed = []

    def endless() -> Generator[Piece]:
        try:
            while True:
                yield piece(0)
        finally:
            closed.append(True)

    with Reader(endless(), 2):
        pass
    assert closed


def test_places_are_held_by_one_and_found_again(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "base"), Place(tmp_path / "base")
    assert [place.path.name for place in (first, second)] == ["worker-0", "worker-1"]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "base", first.path, second.path)} == {0o700}
    assert (first.path / "held").stat().st_mode & 0o777 == 0o600
    first.leave()
    assert Place(tmp_path / "base").path == first.path
