"""Connections of a gateway that send nothing, little, or take nothing: others are answered all the same."""

from __future__ import annotations

import asyncio
import resource
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from starlette.types import Receive, Scope, Send

from helpers.authority import make_authority
from helpers.processes import HUNG
from lanner.connections import Bounds
from lanner.gateway.connections import BOUNDS, HEAD_BYTES
from lanner.gateway.web import WebServer

#: Seconds for a head where a test waits for their end.
SHORT = 0.4

ASKED = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

#: Bytes of the answer at ``/large``: more than sockets and buffers keep.
LARGE = 32 << 20


async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer without reading the body."""
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * SHORT)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % length(scope))]})
    left = length(scope)
    while left > 0:
        part = min(left, 1 << 20)
        left -= part
        await send({"type": "http.response.body", "body": bytes(part), "more_body": left > 0})


def length(scope: Scope) -> int:
    """How long an answer is."""
    return LARGE if scope["path"] == "/large" else 2


@contextmanager
def running(bounds: Bounds, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A gateway's web server on a thread; its port."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        server = WebServer(answer, bound, context, bounds)
        thread = threading.Thread(target=server.answer, daemon=True)
        thread.start()
        deadline = time.monotonic() + HUNG
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield port
        finally:
            server.should_exit = server.force_exit = True
            thread.join(HUNG)
            assert not thread.is_alive()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=HUNG)


def asked(port: int, context: ssl.SSLContext | None = None) -> float:
    """Seconds from a connection's begin to its answer."""
    began = time.monotonic()
    with ExitStack() as stack:
        connection: socket.socket = stack.enter_context(connect(port))
        if context is not None:
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname="localhost"))
        connection.sendall(ASKED)
        assert is_answered(connection)
    return time.monotonic() - began


def is_answered(connection: socket.socket) -> bool:
    """Whether a short answer comes, whole."""
    with connection.makefile("rb") as answer:
        head = iter(answer.readline, b"\r\n")
        return next(head) == b"HTTP/1.1 200 OK\r\n" and len([*head]) > 0 and answer.read(2) == bytes(2)


def seconds_until_closed(connection: socket.socket) -> float:
    began = time.monotonic()
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def seconds_of_bytes(connection: socket.socket) -> float:
    """Seconds until a connection is closed on which a byte is sent every now and then."""
    began = time.monotonic()
    try:
        while time.monotonic() < began + HUNG:
            connection.sendall(b"a")
            time.sleep(SHORT / 20)
    except (ConnectionResetError, BrokenPipeError):
        pass
    return time.monotonic() - began


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not closed a connection on which it says nothing."""
    connection.settimeout(0.05)
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        return True
    except ConnectionResetError:
        return False


@pytest.fixture
def many_files() -> None:
    """Room for a thousand connections and both of their ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if wanted < 4096:
        pytest.skip("this system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What the gateway and its callers speak TLS with."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    authority = make_authority(tmp_path_factory.mktemp("gate") / "ca")
    certificate, key = authority.issue("gate", "serverAuth")
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate, key)
    return own, ssl.create_default_context(cafile=authority.certificate)


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("secured", [False, True], ids=["http", "https"])
def test_a_thousand_idle_connections_keep_nobody_waiting(
    secured: bool, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    own, callers = contexts if secured else (None, None)
    with running(BOUNDS, own) as port, ExitStack() as stack:
        idle = [stack.enter_context(connect(port)) for _ in range(1000)]
        # The machine may have other work for a while.
        assert min(asked(port, callers) for _ in range(3)) < 1.0
        assert sum(map(is_open, idle[::50])) <= BOUNDS.of_address * 20 // 1000 + 1


def test_newcomer_takes_the_place_of_who_has_waited_longest_of_its_address() -> None:
    with running(Bounds(most=100, of_address=3)) as port, ExitStack() as stack:
        first, *others = [stack.enter_context(connect(port)) for _ in range(4)]
        assert seconds_until_closed(first) < 1.0
        assert all(map(is_open, others))
        # Who was answered has waited least.
        others[0].settimeout(HUNG)
        others[0].sendall(ASKED)
        assert is_answered(others[0])
        stack.enter_context(connect(port))
        assert seconds_until_closed(others[1]) < 1.0
        assert is_open(others[0])


def test_request_that_is_worked_on_keeps_its_place() -> None:
    with running(Bounds(most=2, of_address=2, seconds=SHORT)) as port, ExitStack() as stack:
        working = stack.enter_context(connect(port))
        working.sendall(ASKED.replace(b"/ ", b"/slow "))
        time.sleep(0.1)
        for _ in range(10):
            stack.enter_context(connect(port))
        assert asked(port) < 1.0
        assert is_answered(working)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: loc", b"POST / HTTP/1.1\r\n"])
def test_head_has_its_time_however_slowly_it_comes(sent: bytes) -> None:
    with running(Bounds(most=9, of_address=9, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(sent)
        assert SHORT * 0.8 < seconds_of_bytes(connection) < SHORT + 1.0


def test_handshake_has_its_time(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with running(Bounds(most=9, of_address=9, seconds=SHORT), contexts[0]) as port, ExitStack() as stack:
        # A first message that says it has 512 bytes, and has two.
        for sent in (b"", b"\x16\x03\x01\x02\x00\x01\x00"):
            connection = stack.enter_context(connect(port))
            connection.sendall(sent)
            assert SHORT * 0.8 < seconds_until_closed(connection) < SHORT + 1.0
        # Those after it are answered, with what was sent together with the last message of the handshake.
        assert asked(port, contexts[1]) < 1.0


def test_answered_connection_has_as_long_for_the_next_head() -> None:
    with running(Bounds(most=9, of_address=9, seconds=SHORT)) as port, connect(port) as connection:
        for _ in range(3):
            time.sleep(SHORT * 0.6)
            connection.sendall(ASKED)
            assert is_answered(connection)
        assert SHORT * 0.8 < seconds_until_closed(connection) < SHORT + 1.0


def test_body_that_nobody_reads_keeps_no_connection() -> None:
    asked_with_body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    with running(Bounds(most=9, of_address=9, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(asked_with_body)
        assert is_answered(connection)
        assert seconds_of_bytes(connection) < SHORT + 1.0


def test_answer_that_is_not_taken_keeps_no_connection() -> None:
    with running(Bounds(most=1, of_address=1, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(ASKED.replace(b"/ ", b"/large "))
        time.sleep(0.2)
        # The only place is had by who waits for a caller that does nothing, and so by nobody.
        assert asked(port) < 1.0
        assert received(connection) < LARGE
    with running(Bounds(most=1, of_address=1, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(ASKED.replace(b"/ ", b"/large "))
        time.sleep(SHORT + 0.3)
        assert received(connection) < LARGE


def received(connection: socket.socket) -> int:
    """How many bytes come before a connection is closed."""
    total = 0
    try:
        while part := connection.recv(1 << 20):
            total += len(part)
    except ConnectionResetError:
        pass
    return total


def test_answer_that_is_taken_comes_whole() -> None:
    with running(Bounds(most=1, of_address=1, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(ASKED.replace(b"/ ", b"/large ").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert received(connection) > LARGE


def test_long_head_is_refused() -> None:
    with running(BOUNDS) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nPadding: " + b"a" * (2 * HEAD_BYTES))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400")


def test_nothing_becomes_of_an_offer_to_speak_another_protocol() -> None:
    upgrade = b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    with running(Bounds(most=9, of_address=9, seconds=SHORT)) as port, connect(port) as connection:
        connection.sendall(ASKED.replace(b"\r\n\r\n", upgrade + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"))
        assert is_answered(connection)
        assert SHORT * 0.8 < seconds_until_closed(connection) < SHORT + 1.0


def test_what_is_no_http_behind_an_answer_is_closed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with running(BOUNDS) as port, connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert is_answered(connection)
        connection.sendall(b"no length\r\n")
        assert seconds_until_closed(connection) < 1.0
    assert caplog.text == ""
