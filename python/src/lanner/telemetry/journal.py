"""Takes a server's journal, which gives each entry once, and tells everybody who wants to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lanner.server import Server
from lanner.telemetry.records import Connection


class Reader(Protocol):
    """Is told what became of connections."""

    def ended(self, connection: Connection) -> None:
        """A connection ended, or was turned away."""

    def omitted(self, count: int) -> None:
        """So many more ended, of which nothing is known: too many for the journal."""


class Journal:
    """Reads a server's journal; from one thread.

    Args:
        server: The server.
        readers: Who is told, in this order.
    """

    def __init__(self, server: Server, readers: Sequence[Reader]) -> None:
        self._server = server
        self._readers = readers
        self._modes = {name: model.manifest.mode for name, model in server.models.items()}

    def read(self) -> int:
        """Tell the readers what became of connections since the last time; how many ended or were turned away."""
        entries, omitted = self._server.journal()
        for entry in entries:
            connection = Connection.from_entry(entry, self._modes)
            for reader in self._readers:
                reader.ended(connection)
        if omitted:
            for reader in self._readers:
                reader.omitted(omitted)
        return len(entries) + omitted
