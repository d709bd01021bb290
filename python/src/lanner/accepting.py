"""Accepts connections within bounds.

A connection has a deadline from its beginning, and is a socket and nothing else until its first byte: TLS, and what
speaks in it, come then.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from lanner.connections import Connections

#: Connections that are accepted at a time, so that each is looked at before many others take its place.
AT_ONCE = 32

#: Connections that the system keeps until they are accepted.
_QUEUE = 1024

#: What the system says where it has no room for one more connection.
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

#: Seconds until it is asked again where no connection can be closed.
_RETRY_SECONDS = 0.1


class BoundedConnection(asyncio.Protocol):
    """A connection with a place among others, and a deadline while it waits for its peer.

    Args:
        connections: The others.
        context: The context for TLS, or None without it.
    """

    def __init__(self, connections: Connections, context: ssl.SSLContext | None = None) -> None:
        self._connections = connections
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def accept(self, accepted: socket.socket, address: str) -> None:
        """Take a place, and wait for the first byte."""
        self._socket = accepted
        self._connections.enter(self, address)
        if self in self._connections:
            self.wait()
            self._loop.add_reader(accepted, self._open)

    def begin(self, transport: asyncio.Transport) -> None:
        """Begin to speak over a transport, on which nothing came yet."""
        raise NotImplementedError

    def wait(self) -> None:
        """Wait for the peer, for so long and no longer: for what it sends, and for it to take what it is sent."""
        self.work()
        self._connections.wait(self)
        if self in self._connections:
            self._deadline = self._loop.call_later(self._connections.bounds.seconds, self.drop)

    def work(self) -> None:
        """Let the peer wait."""
        self._connections.work(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    @property
    def waits(self) -> bool:
        """Whether it has a deadline."""
        return self._deadline is not None

    def drop(self) -> None:
        """Close the connection at once; what its peer did not take yet is lost."""
        self._leave()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._opening is not None:
            self._opening.cancel()
        if self._transport is not None:
            self._transport.abort()

    def stop(self) -> None:
        """Close the connection if nothing was said on it yet."""
        if self._transport is None:
            self.drop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless the connection was dropped meanwhile."""
        self._transport = cast(asyncio.Transport, transport)
        if self in self._connections:
            self.begin(self._transport)
        else:
            self._transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        """Free the place."""
        self._leave()

    def _open(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._opening = self._loop.create_task(self._connect(self._socket))

    async def _connect(self, accepted: socket.socket) -> None:
        """Have the loop read and write the socket, which is its own from now on, and shake hands."""
        self._socket = None
        seconds = None if self._context is None else self._connections.bounds.seconds
        # A handshake that fails is the peer's concern.
        with suppress(OSError):
            await self._loop.connect_accepted_socket(
                lambda: self, accepted, ssl=self._context, ssl_handshake_timeout=seconds
            )
            return
        self._leave()

    def _leave(self) -> None:
        self.work()
        self._connections.leave(self)


class Listener:
    """Accepts the connections of a socket, in the event loop that runs.

    Args:
        bound: The socket, bound to its address.
        connections: Those that there are.
        make: Makes what speaks on a new one.
    """

    def __init__(self, bound: socket.socket, connections: Connections, make: Callable[[], BoundedConnection]) -> None:
        self._bound = bound
        self._connections = connections
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        bound.setblocking(False)
        bound.listen(_QUEUE)
        self._listen()

    def close(self) -> None:
        """Accept no more, and close those on which nothing was said yet; the socket stays its owner's."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._bound)
        for connection in self._connections:
            cast(BoundedConnection, connection).stop()

    def _listen(self) -> None:
        self._loop.add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        for before in range(AT_ONCE):
            try:
                accepted, address = self._bound.accept()
            except OSError as error:
                # Without room the system says so whether somebody is there or not: only at first somebody is.
                if error.errno in _NO_ROOM and before == 0 and not self._connections.make_room():
                    self._loop.remove_reader(self._bound)
                    self._retry = self._loop.call_later(_RETRY_SECONDS, self._listen)
                return
            accepted.setblocking(False)
            self._make().accept(accepted, str(address[0]))
