"""What a listener does where the system has no room for a connection."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from lanner.accepting import BoundedConnection, Listener
from lanner.connections import Bounds, Connections

BOUNDS = Bounds(most=9, of_address=9)


#: What is checked of a socket, its port, and its connections.
Check = Callable[["FullSocket", int, Connections], Coroutine[None, None, None]]


class FullSocket(socket.socket):
    """A socket whose accepts fail, as often as it is told."""

    failures = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Fail as a process that has no descriptor left, or accept."""
        if self.failures > 0:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


class Echo(BoundedConnection):
    """Sends back what it gets."""

    def begin(self, transport: asyncio.Transport) -> None:
        """Note where to."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self.transport.write(data)


async def echoed(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"a")
    assert await asyncio.wait_for(reader.readexactly(1), 5) == b"a"
    return reader, writer


async def with_listener(check: Check) -> None:
    """Run a check with a socket that can be told to fail, its port, and its connections."""
    with FullSocket() as bound:
        bound.bind(("127.0.0.1", 0))
        connections = Connections(BOUNDS)
        listener = Listener(bound, connections, lambda: Echo(connections))
        await check(bound, bound.getsockname()[1], connections)
        listener.close()


def test_who_has_waited_longest_makes_room_for_a_descriptor() -> None:
    async def check(bound: FullSocket, port: int, _connections: Connections) -> None:
        first, first_writer = await echoed(port)
        _, second_writer = await echoed(port)
        bound.failures = 1
        _, third_writer = await echoed(port)
        assert await first.read() == b""
        for writer in (first_writer, second_writer, third_writer):
            writer.close()

    asyncio.run(with_listener(check))


def test_system_is_asked_again_where_nobody_can_make_room() -> None:
    async def check(bound: FullSocket, port: int, _connections: Connections) -> None:
        bound.failures = 3
        _, writer = await echoed(port)
        assert bound.failures == 0
        writer.close()

    asyncio.run(with_listener(check))


def test_connections_that_said_nothing_end_with_the_listener() -> None:
    async def check(_bound: FullSocket, port: int, connections: Connections) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while len(connections) == 0:
            await asyncio.sleep(0.01)
        for connection in connections:
            assert isinstance(connection, Echo)
            connection.stop()
        assert await asyncio.wait_for(reader.read(), 5) == b""
        assert len(connections) == 0
        writer.close()

    asyncio.run(with_listener(check))


def test_connection_that_is_dropped_before_it_begins_is_closed() -> None:
    async def check(_bound: FullSocket, port: int, connections: Connections) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"a")
        # As early as there is something to drop.
        while not connections.make_room():
            await asyncio.sleep(0)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 5) in (b"", b"a")
        writer.close()

    asyncio.run(with_listener(check))
