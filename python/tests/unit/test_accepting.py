"""What a listener does where the system has no room for a connection."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from lanner.accepting import BoundedConnection, Listener
from lanner.connections import Bounds, Connections

BOUNDS = Bounds(most=9, of_address=9)


@dataclass(frozen=True)
class Case:
    """A listener, its socket, and its connections."""

    bound: FullSocket
    connections: Connections
    listener: Listener

    async def echoed(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which a byte came back."""
        reader, writer = await self.connect()
        writer.write(b"a")
        assert await asyncio.wait_for(reader.readexactly(1), 5) == b"a"
        return reader, writer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which nothing was said."""
        return await asyncio.open_connection("127.0.0.1", self.bound.getsockname()[1])


class FullSocket(socket.socket):
    """A socket that accepts nothing while there are so many connections, as if descriptors were used up."""

    connections: Connections
    most = BOUNDS.most
    asked = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept, or fail as in a process that has no descriptor left."""
        self.asked += 1
        if len(self.connections) >= self.most:
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


def run(check: Callable[[Case], Coroutine[None, None, None]]) -> None:
    """Run a check."""

    async def checked() -> None:
        with FullSocket() as bound:
            bound.bind(("127.0.0.1", 0))
            connections = bound.connections = Connections(BOUNDS)
            listener = Listener(bound, connections, lambda: Echo(connections))
            await check(Case(bound, connections, listener))
            listener.close()

    asyncio.run(checked())


def test_who_has_waited_longest_makes_room_for_a_descriptor() -> None:
    async def check(case: Case) -> None:
        case.bound.most = 2
        first, first_writer = await case.echoed()
        _, second_writer = await case.echoed()
        _, third_writer = await case.echoed()
        assert await first.read() == b""
        for writer in (first_writer, second_writer, third_writer):
            writer.close()

    run(check)


def test_system_is_asked_again_and_seldom_where_nobody_can_make_room() -> None:
    async def check(case: Case) -> None:
        case.bound.most = 1
        _, first = await case.echoed()
        for connection in case.connections:
            case.connections.work(connection)
        newcomer = asyncio.create_task(case.echoed())
        case.bound.asked = 0
        await asyncio.sleep(0.35)
        assert 1 <= case.bound.asked <= 5
        first.close()
        _, second = await newcomer
        second.close()

    run(check)


def test_connections_that_said_nothing_end_with_the_listener() -> None:
    async def check(case: Case) -> None:
        said, said_writer = await case.echoed()
        reader, writer = await case.connect()
        while len(case.connections) < 2:
            await asyncio.sleep(0.01)
        case.listener.close()
        assert await asyncio.wait_for(reader.read(), 5) == b""
        said_writer.write(b"b")
        assert await asyncio.wait_for(said.readexactly(1), 5) == b"b"
        for each in (said_writer, writer):
            each.close()

    run(check)


def test_connection_that_is_dropped_before_it_begins_is_closed() -> None:
    async def check(case: Case) -> None:
        reader, writer = await case.connect()
        writer.write(b"a")
        # As early as there is something to drop.
        while not case.connections.make_room():
            await asyncio.sleep(0)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    run(check)
