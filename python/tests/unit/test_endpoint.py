"""Who watches is answered, whatever else is connected to the same address, and under its own names alone."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Gauge

from helpers.callers import Caller
from helpers.processes import HUNG
from lanner.connections import Bounds
from lanner.errors import TransportError
from lanner.telemetry import endpoint
from lanner.telemetry.endpoint import REQUESTS, THREADS, serve_endpoint, serve_health
from lanner.telemetry.heads import HEAD_BYTES, Head
from lanner.telemetry.readiness import Readiness

ASKED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Gauge("answer", "Known.", registry=registry).set(42)
    return registry


@pytest.fixture
def address(registry: CollectorRegistry) -> Iterator[str]:
    """An endpoint of a server."""
    with serve_endpoint("127.0.0.1:0", registry, Readiness(), ["Watched.Example"]) as bound:
        yield bound


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=HUNG)


def received(connection: socket.socket) -> bytes:
    """All that comes before a connection is closed."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status(address: str, path: str, **headers: str) -> int:
    return Caller(f"http://{address}").get(path, **headers).status


def test_idle_connections_keep_nobody_waiting_and_take_no_threads(address: str) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connect(address)).sendall(b"G")
        seconds = []
        for _ in range(3):
            began = time.monotonic()
            for path in ("/healthz", "/metrics"):
                assert status(address, path) == 200
            seconds.append(time.monotonic() - began)
        # The machine may have other work for a while.
        assert min(seconds) < 1.0
        assert threading.active_count() - before <= THREADS


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: a"])
def test_head_has_its_time_however_slowly_it_comes(
    sent: bytes, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "BOUNDS", Bounds(most=4, of_address=4, seconds=0.4))
    with serve_endpoint("127.0.0.1:0", registry, Readiness()) as address, connect(address) as connection:
        connection.sendall(sent)
        assert 0.3 < seconds_of_bytes(connection) < 1.4


def seconds_of_bytes(connection: socket.socket) -> float:
    """Seconds until a connection is closed on which a byte is sent every now and then."""
    began = time.monotonic()
    try:
        while time.monotonic() < began + HUNG:
            connection.sendall(b"a")
            time.sleep(0.02)
    except (ConnectionResetError, BrokenPipeError):
        pass
    return time.monotonic() - began


@pytest.mark.parametrize("host", ["evil.example", "watched.example.evil", "192.0.2.1", ""])
def test_foreign_name_is_refused(address: str, host: str) -> None:
    for path in ("/metrics", "/healthz", "/readyz", "/"):
        assert status(address, path, Host=host) == 421


def test_own_names_are_taken(address: str) -> None:
    for host in ("localhost:9", "127.0.0.1", "[::1]:9400", "WATCHED.example"):
        assert status(address, "/metrics", Host=host) == 200


def test_off_loopback_addresses_and_the_machines_name_are_taken(registry: CollectorRegistry) -> None:
    with serve_endpoint("0.0.0.0:0", registry, Readiness()) as bound:
        address = bound.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - replaced, not bound
        for host in ("192.0.2.1:9400", socket.gethostname()):
            assert status(address, "/metrics", Host=host) == 200
        assert status(address, "/metrics", Host="evil.example") == 421


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (ASKED, b"200"),
        (ASKED.replace(b"1.1", b"1.0"), b"200"),
        (ASKED.replace(b"z H", b"z?a=b H"), b"200"),
        (ASKED.replace(b"GET", b"POST"), b"405"),
        (ASKED.replace(b"/healthz", b"/nothing"), b"404"),
        (ASKED.replace(b"Host: localhost\r\n", b""), b"421"),
        (ASKED.replace(b"\r\n\r\n", b"\r\nHost: localhost\r\n\r\n"), b"421"),
        (ASKED.replace(b"Host:", b"Host :"), b"400"),
        (ASKED.replace(b"Host", b" Host"), b"400"),
        (ASKED.replace(b"HTTP/1.1", b"HTTP/2"), b"400"),
        (ASKED.replace(b"GET /", b"GET  /"), b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * HEAD_BYTES, b"400"),
    ],
)
def test_request_is_read_strictly(address: str, asked: bytes, expected: bytes) -> None:
    with connect(address) as connection:
        connection.sendall(asked)
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 " + expected)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(body) in head


def test_head_is_taken_in_pieces(address: str) -> None:
    with connect(address) as connection:
        for byte in ASKED:
            connection.sendall(bytes([byte]))
        assert received(connection).endswith(b"alive\n")


def test_headers_keep_their_order_and_case_of_values() -> None:
    head = Head.parse(b"GET /a?b HTTP/1.1\r\nAccept: Text/plain\r\naccept:\tother \r\nEmpty:")
    assert head is not None
    assert (head.path, head.accepted, head.all("empty")) == ("/a", "Text/plain, other", [""])


def test_metrics_that_take_long_keep_no_probe_waiting(registry: CollectorRegistry) -> None:
    go_on = threading.Event()

    class Slow:
        def collect(self) -> Iterator[object]:
            go_on.wait(HUNG)
            return iter(())

        def describe(self) -> Iterator[object]:
            return iter(())

    registry.register(Slow())  # type: ignore[arg-type]  # Nothing of a collector but what is asked.
    with serve_endpoint("127.0.0.1:0", registry, Readiness()) as address, ExitStack() as stack:
        scrapers = []
        while True:
            scraper = stack.enter_context(connect(address))
            scraper.sendall(ASKED.replace(b"/healthz", b"/metrics"))
            scraper.settimeout(0.1)
            try:
                assert scraper.recv(1 << 16).startswith(b"HTTP/1.1 503")
            except TimeoutError:
                scrapers.append(scraper)
            else:
                break
        assert len(scrapers) == REQUESTS
        began = time.monotonic()
        assert (status(address, "/healthz"), status(address, "/readyz")) == (200, 503)
        assert time.monotonic() - began < 1.0
        go_on.set()
        for scraper in scrapers:
            scraper.settimeout(HUNG)
        assert all(received(scraper).endswith(b"42.0\n") for scraper in scrapers)


def test_gateway_is_alive_while_its_loop_turns_and_ready_while_all_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_ALIVE_SECONDS", 0.2)
    loop, ready = asyncio.new_event_loop(), [True]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    blocked = threading.Event()

    def turns() -> Future[None]:
        return asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)

    with serve_health("127.0.0.1:0", turns, lambda: ready[0]) as address:
        assert (status(address, "/healthz"), status(address, "/readyz"), status(address, "/metrics")) == (200, 200, 404)
        ready[0] = False
        assert (status(address, "/healthz"), status(address, "/readyz")) == (200, 503)
        loop.call_soon_threadsafe(blocked.wait, HUNG)
        assert status(address, "/healthz") == 503
        blocked.set()
        assert status(address, "/healthz") == 200
        assert status(address, "/healthz", Host="evil.example") == 421
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HUNG)
    loop.close()


def test_address_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TransportError, match="--health"), serve_health(address, Future, lambda: True):
            pass
