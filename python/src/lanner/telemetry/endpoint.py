"""Answers to who watches: metrics, whether a server or a gateway is alive, and whether it is ready.

All connections are on one thread, and bounded, and metrics are collected on two more: who sends nothing, or is slow,
keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Self

from prometheus_client import CollectorRegistry

from lanner.accepting import BoundedConnection, Listener
from lanner.connections import Bounds, Connections
from lanner.errors import TransportError
from lanner.hosts import Hosts
from lanner.telemetry.exposition import exposition
from lanner.telemetry.heads import HEAD_BYTES, Head
from lanner.telemetry.readiness import Readiness
from lanner.trust import parse_address

#: A scraper, a probe or two, and those of several who watch.
BOUNDS = Bounds(most=64, of_address=32)

#: Pages that are waited for at a time where they take a while, and the threads that make them.
REQUESTS, THREADS = 16, 2

#: Seconds within which the event loop of a gateway that is alive turns.
_ALIVE_SECONDS = 3.0

_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Page:
    """What is answered to a request.

    Attributes:
        status: The HTTP status.
        content_type: What the body is.
        body: The body.
        headers: Further headers.
    """

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, status: int, sentence: str, **headers: str) -> Page:
        """A page of one line."""
        return cls(status, _TEXT, f"{sentence}\n".encode(), headers)

    def message(self) -> bytes:
        """The answer as it is sent, after which the connection is closed."""
        headers = {
            "Content-Type": self.content_type,
            "Content-Length": str(len(self.body)),
            "Connection": "close",
            "X-Content-Type-Options": "nosniff",
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", *map(": ".join, headers.items())]
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + self.body


#: Makes a page, for a scraper that accepts what its header ``Accept`` says.
Maker = Callable[[str | None], Awaitable[Page]]


@contextmanager
def serve_endpoint(
    address: str, registry: CollectorRegistry, readiness: Readiness, names: Sequence[str] = ()
) -> Iterator[str]:
    """Answer ``GET`` of ``/metrics``, ``/healthz`` and ``/readyz`` of a server at an address while the body runs.

    The body gets the address as bound: port 0 takes a free one.

    Args:
        address: Where to listen.
        registry: The metrics.
        readiness: Whether the server takes clients.
        names: Host names under which it may be asked, beside the address and the machine's own name.

    Raises:
        MisuseError: If the address is not of the form HOST:PORT.
        TransportError: If it cannot be listened on.
    """
    with _Workers() as workers:

        def collected(accepted: str | None) -> Page:
            body, content_type = exposition(registry, accepted)
            return Page(200, content_type, body)

        async def metrics(accepted: str | None) -> Page:
            return await workers.make(partial(collected, accepted))

        async def healthz(_accepted: str | None) -> Page:
            return Page.text(200, "alive")

        async def readyz(_accepted: str | None) -> Page:
            state = readiness.state
            return Page.text(200 if state == "ready" else 503, state)

        pages = {"/metrics": metrics, "/healthz": healthz, "/readyz": readyz}
        with _serve(address, "--metrics", pages, names) as bound:
            yield bound


@contextmanager
def serve_health(
    address: str, turns: Callable[[], Future[None]], is_ready: Callable[[], bool], names: Sequence[str] = ()
) -> Iterator[str]:
    """As `serve_endpoint`, ``/healthz`` and ``/readyz`` of a gateway, apart from where its callers connect.

    Args:
        address: Where to listen.
        turns: Gives what is done as soon as the event loop of the callers turns.
        is_ready: Whether the gateway and the server behind it are ready; may take a while.
        names: As for `serve_endpoint`.
    """
    with _Workers() as workers:

        def asked() -> Page:
            return Page.text(200, "ready") if is_ready() else Page.text(503, "not ready")

        async def healthz(_accepted: str | None) -> Page:
            try:
                await asyncio.wait_for(asyncio.wrap_future(turns()), _ALIVE_SECONDS)
            except TimeoutError:
                return Page.text(503, "no request is looked at")
            return Page.text(200, "alive")

        async def readyz(_accepted: str | None) -> Page:
            return await workers.make(asked)

        with _serve(address, "--health", {"/healthz": healthz, "/readyz": readyz}, names) as bound:
            yield bound


class _Workers:
    """Threads that make pages which take a while, a few at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="lanner-watching")
        self._asked = 0

    async def make(self, page: Callable[[], Page]) -> Page:
        """Make a page, unless too many are waited for."""
        if self._asked >= REQUESTS:
            return Page.text(503, "too many ask at once")
        self._asked += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, page)
        finally:
            self._asked -= 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _serve(address: str, option: str, pages: Mapping[str, Maker], names: Sequence[str]) -> Iterator[str]:
    host, port = parse_address(address).rsplit(":", 1)
    plain = host.strip("[]")
    try:
        bound = socket.create_server((plain, int(port)), family=socket.AF_INET6 if ":" in plain else socket.AF_INET)
    except OSError as error:
        raise TransportError(
            f"{option.strip('-')} cannot listen ({error.strerror})",
            where=address,
            fix=f"choose another {option} address",
        ) from None
    with bound:
        desk = _Desk(pages, Hosts.of(plain, names))
        thread = threading.Thread(target=desk.run, args=(bound,), name="lanner-watching", daemon=True)
        thread.start()
        try:
            yield f"{host}:{bound.getsockname()[1]}"
        finally:
            desk.stop()
            thread.join()


class _Desk:
    """Answers requests for pages, on a thread of its own."""

    def __init__(self, pages: Mapping[str, Maker], hosts: Hosts) -> None:
        self._pages = pages
        self._hosts = hosts
        self._loop = asyncio.SelectorEventLoop()
        self._stopped = asyncio.Event()

    def run(self, bound: socket.socket) -> None:
        """Answer until it is to stop."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._answer_all(bound))

    def stop(self) -> None:
        """Have `run` end."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def page(self, head: bytes) -> Page:
        """The page that the head of a request asks for."""
        asked = Head.parse(head)
        if asked is None:
            return Page.text(400, "the request is not understood")
        if not self._hosts.include(asked.all("host")):
            return Page.text(421, "this is not a name of what listens here; use its address")
        if asked.method != "GET":
            return Page.text(405, "pages here are read by GET alone", Allow="GET")
        if asked.path not in self._pages:
            return Page.text(404, "there is nothing at this path")
        return await self._pages[asked.path](asked.accepted)

    async def _answer_all(self, bound: socket.socket) -> None:
        connections = Connections(BOUNDS)
        listener = Listener(bound, connections, lambda: _Watcher(connections, self))
        await self._stopped.wait()
        listener.close()


class _Watcher(BoundedConnection):
    """A connection of somebody who watches: one request, one answer."""

    def __init__(self, connections: Connections, desk: _Desk) -> None:
        super().__init__(connections)
        self._desk = desk
        self._head = b""
        self._answering: asyncio.Task[None] | None = None
        self._out: asyncio.Transport | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """Wait for the head."""
        self._out = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the head is whole; what comes behind it is not read."""
        if self._answering is not None:
            return
        self._head += data
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if end or len(self._head) > HEAD_BYTES:
            self.work()
            self._answering = self._loop.create_task(self._answer(head if end else b""))

    def connection_lost(self, error: Exception | None) -> None:
        """Free the place, and let go of an answer that nobody waits for."""
        super().connection_lost(error)
        if self._answering is not None:
            self._answering.cancel()

    async def _answer(self, head: bytes) -> None:
        try:
            page = await self._desk.page(head)
        except Exception as error:  # noqa: BLE001 - told to who asked
            page = Page.text(500, f"this failed with {type(error).__name__}; please report it")
        if self._out is not None:
            self._out.write(page.message())
            self._out.close()
        # For as long as the answer is not taken.
        self.wait()
