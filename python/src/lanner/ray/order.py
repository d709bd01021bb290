"""What becomes of the pieces of a dataset: which wait, which were lost and run again, and results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from lanner.errors import LannerError
from lanner.prediction import Prediction
from lanner.ray.pieces import Piece
from lanner.ray.reader import Reader

#: Workers that may be lost over one piece before it is given up: it may be the piece that ends them.
LOSSES = 3


@dataclass(slots=True)
class Order:
    """The pieces in the order of the input.

    Attributes:
        reader: Where new ones come from.
        lost: Workers that were lost over a piece.
    """

    reader: Reader
    lost: dict[int, int] = field(default_factory=dict)
    _waiting: deque[tuple[int, Piece]] = field(default_factory=deque)
    _done: dict[int, list[Prediction] | BaseException] = field(default_factory=dict)
    _read: int = 0
    _told: int = 0
    _last: float = float("inf")

    def take(self) -> tuple[int, Piece] | None:
        """The piece that is to be predicted next, with its number; None where there is none now."""
        if self._waiting:
            return self._waiting.popleft()
        if self._last < float("inf"):
            return None
        item = self.reader.next()
        if isinstance(item, Piece):
            self._read += 1
            return self._read - 1, item
        if item is not None:
            self.fail(self._read, item)
            self._read += 1
        return None

    def give_back(self, number: int, piece: Piece) -> None:
        """Have a piece predicted again, before those that come later."""
        if number < self._last:
            self._waiting.appendleft((number, piece))

    def lose(self, number: int, piece: Piece) -> None:
        """Have a piece predicted again whose worker was lost.

        Raises:
            LannerError: If too many were lost over it.
        """
        self.lost[number] = self.lost.get(number, 0) + 1
        if self.lost[number] >= LOSSES:
            first, last = piece.places[0][1], piece.places[-1][1]
            raise LannerError(
                f"{LOSSES} workers were lost over the same inputs",
                where=f"rows {first} to {last}",
                fix="see Ray's logs for what ended them; a node may have too little memory",
            )
        self.give_back(number, piece)

    def finish(self, number: int, predictions: list[Prediction]) -> None:
        """Take down a piece's results."""
        self._done[number] = predictions

    def fail(self, number: int, error: BaseException) -> None:
        """Take down why a piece has no results: it is raised once all before it were told, and no later one begins."""
        self._done[number] = error
        self._last = min(self._last, number)
        self._waiting = deque(entry for entry in self._waiting if entry[0] < number)

    def ready(self) -> Iterator[list[Prediction]]:
        """The results that are next in the order, as far as they are known.

        Raises:
            BaseException: What a piece failed with.
        """
        while self._told in self._done:
            found = self._done.pop(self._told)
            if isinstance(found, BaseException):
                raise found
            self._told += 1
            yield found

    @property
    def reading(self) -> bool:
        """Whether more pieces will come."""
        return not self.reader.ended and self._last == float("inf")

    @property
    def ended(self) -> bool:
        """Whether all was told."""
        return self.reader.ended and self._told == self._read
