"""Balancers of TCP connections that keep a client to its server, clients with addresses or versions of their own."""

from __future__ import annotations

import ipaddress
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from helpers.documents import free_address
from helpers.processes import HUNG

#: Who takes a connection from an address.
Choose = Callable[[str], socket.socket]


#: Where the wire version stands in a party's first message without TLS, behind the frame's head and the magic.
_VERSION = slice(14, 18)


@contextmanager
def listening(choose: Choose, forth: int = 0, back: int = 0) -> Iterator[str]:
    """Join every connection with the one that is chosen for its source, until the block ends; yields the address.

    `forth` and `back` are added to the wire version that who connects, and who is connected to, says in the beginning.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve() -> None:
        while True:
            try:
                near, (source, _) = listener.accept()
            except OSError:
                return
            try:
                far = choose(source)
            except OSError:
                near.close()
                continue
            for ends in ((near, far, forth), (far, near, back)):
                threading.Thread(target=_carry, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def _carry(source: socket.socket, target: socket.socket, added: int) -> None:
    """Carry bytes one way; an end is passed on, and a break ends both ways."""
    try:
        if added:
            target.sendall(_of_version(source.recv(_VERSION.stop, socket.MSG_WAITALL), added))
        while piece := source.recv(1 << 16):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def _of_version(beginning: bytes, added: int) -> bytes:
    """The beginning of a first message, with another version."""
    if len(beginning) < _VERSION.stop:
        return beginning
    (version,) = struct.unpack("<I", beginning[_VERSION])
    return beginning[: _VERSION.start] + struct.pack("<I", version + added)


@contextmanager
def server_before(address: str) -> Iterator[str]:
    """A server without TLS, as it would be if its build were of the wire version before; yields where it is reached."""
    with listening(_connecting_to(address), forth=1, back=-1) as reached:
        yield reached


@contextmanager
def client_before(address: str) -> Iterator[str]:
    """Where a client without TLS connects to reach a server as if its own build were of the wire version before."""
    with listening(_connecting_to(address), forth=-1, back=1) as reached:
        yield reached


def _connecting_to(address: str) -> Choose:
    host, port = address.rsplit(":", 1)
    return lambda _: socket.create_connection((host, int(port)), timeout=HUNG)


def coming_from(source: str, address: str) -> Choose:
    """Connects to one address, from a source on loopback whoever asks."""
    host, port = address.rsplit(":", 1)
    return lambda _: socket.create_connection((host, int(port)), timeout=HUNG, source_address=(source, 0))


@contextmanager
def relay(servers: Sequence[str]) -> Iterator[str]:
    """A small balancer: the source's address chooses the server, and the next one if that takes no connection."""

    def choose(source: str) -> socket.socket:
        first = int(ipaddress.ip_address(source)) % len(servers)
        for server in (*servers[first:], *servers[:first]):
            host, port = server.rsplit(":", 1)
            try:
                return socket.create_connection((host, int(port)), timeout=HUNG)
            except OSError:
                continue
        raise ConnectionRefusedError

    with listening(choose) as address:
        yield address


HAPROXY = """\
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    retries 3
    option redispatch 1
listen servers
    bind {address}
    balance source
    hash-type consistent
    option httpchk GET /readyz
    default-server check inter 200ms fall 1 rise 1
"""


@contextmanager
def haproxy(program: str, folder: Path, servers: Sequence[str], metrics: Sequence[str]) -> Iterator[str]:
    """HAProxy in front of servers, which it asks for their readiness where they tell their metrics."""
    address = free_address()
    lines = [
        f"    server server{number} {server} port {told.rsplit(':', 1)[1]}\n"
        for number, (server, told) in enumerate(zip(servers, metrics, strict=True))
    ]
    settings = folder / "haproxy.cfg"
    settings.write_text(HAPROXY.format(address=address) + "".join(lines), encoding="utf-8")
    with subprocess.Popen([program, "-q", "-db", "-f", str(settings)], stderr=subprocess.DEVNULL) as process:
        try:
            _await_listener(address)
            yield address
        finally:
            process.kill()


def _await_listener(address: str) -> None:
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + HUNG
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
