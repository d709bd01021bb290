"""What a command that runs until it is stopped waits for."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Stopping:
    """Says that a command is to stop: from a signal's handler, too, and from several at once.

    An event is no help there: while one handler sets it, it holds a lock that a second handler on the same thread
    would wait for without end. A simple queue can be put to at any moment.
    """

    def __init__(self) -> None:
        self._told: SimpleQueue[None] = SimpleQueue()
        self._set = False

    def set(self) -> None:
        """Say it."""
        self._set = True
        self._told.put(None)

    def is_set(self) -> bool:
        """Whether it was said."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait until it is said, or for so long; whether it was."""
        if not self._set:
            try:
                self._told.get(timeout=seconds)
            except Empty:
                return self._set
        return True
