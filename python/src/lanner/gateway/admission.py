"""How many requests may hold memory and wait for predictions at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lanner.gateway.errors import busy
from lanner.wording import counted


class Admission:
    """Counts the requests that are read, wait, or are predicted; used from one event loop.

    Args:
        limit: How many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    @property
    def held(self) -> int:
        """How many there are."""
        return self._held

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request while the body runs, from before its contents are read.

        Raises:
            Refused: If there are as many already.
        """
        if self._held >= self._limit:
            raise busy(f"the gateway is busy with {counted(self._limit, 'request')}; try again later")
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
