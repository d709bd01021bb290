"""A caller's connection to the gateway: HTTP over TCP or TLS, with a deadline where it waits for its caller."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lanner.accepting import BoundedConnection, Listener
from lanner.connections import Bounds, Connections

#: Far more connections than requests are worked on at a time: one that waits takes little. With TLS each that has
#: begun has a buffer of 256 KiB, so that all of them take 150 MB.
BOUNDS = Bounds(most=512, of_address=128)

#: Seconds without a byte after which a connection is closed whose request was answered.
IDLE_SECONDS = 5

#: The most bytes of a head.
HEAD_BYTES = 16 << 10


class CallerConnection(BoundedConnection):
    """A connection that speaks HTTP.

    It waits until a head is whole, after an answer, and while its caller does not take what it is sent.

    Args:
        connections: The others.
        context: The context for TLS, or None without it.
        make_http: Makes what speaks HTTP, which is given what it calls after each answer.
    """

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext | None,
        make_http: Callable[[Callable[[], None]], H11Protocol],
    ) -> None:
        super().__init__(connections, context)
        self._http = make_http(self._look)

    def begin(self, transport: asyncio.Transport) -> None:
        """Begin with HTTP."""
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        try:
            self._http.data_received(data)
        except h11.LocalProtocolError:
            # What is no HTTP came behind the beginning of an answer, so that no other can say so.
            self.drop()
        else:
            self._look()

    def pause_writing(self) -> None:
        """Wait for the caller to take what it is sent."""
        self._http.pause_writing()
        self.wait()

    def resume_writing(self) -> None:
        """Go on: the caller took it."""
        self._http.resume_writing()
        self._look()

    def connection_lost(self, error: Exception | None) -> None:
        """Free the place, and let requests that are worked on know."""
        super().connection_lost(error)
        if self._http.flow is not None:
            self._http.connection_lost(error)

    def _look(self) -> None:
        """Wait or work, as it is now."""
        cycle = self._http.cycle
        if cycle is not None and not cycle.response_complete and not self._http.flow.write_paused:
            self.work()
        elif not self.waits:
            self.wait()


class _Http(H11Protocol):
    """HTTP that says when an answer is complete."""

    def __init__(self, server: uvicorn.Server, answered: Callable[[], None]) -> None:
        super().__init__(server.config, server.server_state, {}, asyncio.get_running_loop())
        self._answered = answered

    def on_response_complete(self) -> None:
        """Go on with the next request, if there is one already."""
        super().on_response_complete()
        self._answered()


def listen(server: uvicorn.Server, bound: socket.socket, context: ssl.SSLContext | None, bounds: Bounds) -> Listener:
    """Accept connections for a web server, within bounds."""
    connections = Connections(bounds)
    return Listener(
        bound,
        connections,
        lambda: CallerConnection(connections, context, lambda answered: _Http(server, answered)),
    )
