"""Reads pieces ahead on a thread of its own, so that workers prepare while the next piece is not there yet."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from contextlib import closing
from types import TracebackType
from typing import Self

from lanner.ray.pieces import Piece

#: Seconds between looks whether nobody wants more pieces, and for which the one that is read now may take its time.
_LOOK = 0.2
_END = 10.0


class Reader:
    """The pieces of a generator, at most `ahead` of them waiting.

    Args:
        pieces: Where they come from.
        ahead: How many wait at most; whatever makes them waits then, too.
    """

    def __init__(self, pieces: Generator[Piece], ahead: int) -> None:
        self._pieces = pieces
        self._read: queue.Queue[Piece | BaseException | None] = queue.Queue(ahead)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lanner-ray-reader", daemon=True)
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether every piece was given out."""
        return self._ended

    def next(self) -> Piece | BaseException | None:
        """The next piece, or why there is none; None where it is not there yet, and after the last."""
        if self._ended:
            return None
        try:
            item = self._read.get_nowait()
        except queue.Empty:
            return None
        self._ended = not isinstance(item, Piece)
        return item

    def _work(self) -> None:
        try:
            # Closed here: what is left over would go on reading.
            with closing(self._pieces):
                for piece in self._pieces:
                    if not self._put(piece):
                        return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - handed over to the caller whole
            self._put(error)

    def _put(self, item: Piece | BaseException | None) -> bool:
        while not self._left.is_set():
            try:
                self._read.put(item, timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join(_END)
