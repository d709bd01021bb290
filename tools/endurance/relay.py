"""A link between client and server that can be slow, break, fall silent or flip a bit, and that remembers what went up.

It carries bytes between TCP connections on loopback, and knows nothing of what they mean.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto


class Trouble(Enum):
    """What happens on a link at some byte, for good."""

    #: Both connections are closed, as a peer that ends closes them.
    CUT = auto()
    #: Both connections are reset, as a machine that forgot them resets them.
    RESET = auto()
    #: This direction ends, as after a half-close; the other goes on.
    HALF_CLOSE = auto()
    #: This direction carries nothing any more, and nobody is told: a half-open connection.
    HALF_OPEN = auto()
    #: Neither direction carries anything any more, and nobody is told.
    STALL = auto()
    #: One bit of that byte is flipped; all else is carried.
    FLIP = auto()


@dataclass(frozen=True, slots=True)
class Link:
    """What a link is like.

    Attributes:
        delay: Seconds from one end to the other.
        rate: Bytes per second in each direction; None for as fast as it goes.
        piece: Bytes that are carried at once, at most.
        trouble: What happens, if anything.
        at: After how many bytes of a direction it happens.
        upwards: Whether that direction is the client's to the server.
    """

    delay: float = 0.0
    rate: float | None = None
    piece: int = 1 << 16
    trouble: Trouble | None = None
    at: int = 0
    upwards: bool = True


class Relay:
    """Carries connections to a server.

    Attributes:
        server: Where it carries them to, ``HOST:PORT``; may change.
        link: What the next connections' link is like; may change.
        streams: What clients sent, of each connection.
        carried_down: Bytes that servers sent.
    """

    def __init__(self, server: str, link: Link) -> None:
        self.server, self.link = server, link
        self.streams: list[bytearray] = []
        self.address, self.carried_down = "", 0
        self._carrying: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one client's connection until it is over."""
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        host, port = self.server.rsplit(":", 1)
        try:
            upstream = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        self.streams.append(bytearray())
        wire = _Wire(self, self.streams[-1], (writer, upstream[1]))
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(wire.carry(reader, upstream[1], directions, up=True))
                directions.create_task(wire.carry(upstream[0], writer, directions, up=False))
        except* (OSError, asyncio.CancelledError):
            pass  # Whoever broke it, there is nobody to tell.
        finally:
            wire.end()

    def end(self) -> None:
        """Forget every connection."""
        for task in list(self._carrying):
            task.cancel()


class _Wire:
    """One connection."""

    def __init__(self, relay: Relay, stream: bytearray, ends: tuple[asyncio.StreamWriter, ...]) -> None:
        self.relay, self.link, self.stream, self.ends = relay, relay.link, stream, ends
        self.silent = asyncio.Event()

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, directions: asyncio.TaskGroup, *, up: bool
    ) -> None:
        """Carry one direction until it ends, or its trouble does."""
        arrivals: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        directions.create_task(self._deliver(arrivals, writer))
        carried, goes_on = 0, True
        while goes_on and (piece := await reader.read(self.link.piece)):
            if up:
                self.stream += piece
            else:
                self.relay.carried_down += len(piece)
            before, carried = carried, carried + len(piece)
            if self._is_met(before, carried, up=up):
                piece, goes_on = await self._meet(piece, self.link.at - before)
            if self.link.rate is not None:
                await asyncio.sleep(len(piece) / self.link.rate)
            if not self.silent.is_set():
                arrivals.put_nowait((asyncio.get_running_loop().time() + self.link.delay, piece))
        if not self.silent.is_set():
            arrivals.put_nowait((0.0, b""))

    def _is_met(self, before: int, after: int, *, up: bool) -> bool:
        here = self.link.trouble is not None and self.link.upwards == up
        return here and before <= self.link.at < after

    async def _meet(self, piece: bytes, place: int) -> tuple[bytes, bool]:
        """What is still carried of a piece with trouble at a place in it, and whether the direction goes on."""
        match self.link.trouble:
            case Trouble.FLIP:
                return piece[:place] + bytes([piece[place] ^ 1]) + piece[place + 1 :], True
            case Trouble.HALF_CLOSE:
                return piece[:place], False
            case Trouble.HALF_OPEN:
                await asyncio.Event().wait()
            case Trouble.STALL:
                self.silent.set()
                return b"", True
            case Trouble.RESET:
                self._reset()
        raise ConnectionError

    async def _deliver(self, arrivals: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while (arrival := await arrivals.get())[1]:
            await asyncio.sleep(arrival[0] - asyncio.get_running_loop().time())
            writer.write(arrival[1])
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def _reset(self) -> None:
        for end in self.ends:
            connection = end.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def end(self) -> None:
        for end in self.ends:
            with suppress(OSError):
                end.close()


@contextmanager
def relay(server: str, link: Link = Link()) -> Iterator[Relay]:
    """Carry connections to a server until the block ends, on a port of loopback that stays the same."""
    running, ready = Relay(server, link), threading.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        listener = await asyncio.start_server(running.accept, "127.0.0.1", 0)
        running.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        ready.set()

    def work() -> None:
        _in_loop(loop, main)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield running
    finally:
        loop.call_soon_threadsafe(running.end)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _in_loop(loop: asyncio.AbstractEventLoop, main: Callable[[], Awaitable[None]]) -> None:
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main())
    loop.run_forever()
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
