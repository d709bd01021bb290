"""Servers that misbehave, each in its own way."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from helpers.processes import HUNG


@contextmanager
def peer(behave: Callable[[socket.socket], object]) -> Iterator[str]:
    """A TCP server on loopback that treats every connection alike; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=_quietly, args=(behave, connection), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in connections:
            connection.close()


def hang_up(connection: socket.socket) -> None:
    """Close at once."""
    connection.close()


def stall(connection: socket.socket) -> None:
    """Read and never answer."""
    while connection.recv(65536):
        pass


def talk_garbage(connection: socket.socket) -> None:
    """Send bytes of no protocol, and go on reading."""
    connection.sendall(bytes(range(256)) * 64)
    stall(connection)


def answer_http(connection: socket.socket) -> None:
    """Answer as a web server would."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.close()


#: The kinds of a refusal and of a party's first message, which begins with the magic, its wire version and its role.
REFUSAL, HELLO = 0, 1
MAGIC, _CLIENT, _SERVER = b"lanner\r\n", 1, 2


def of_wire_version(version: int) -> Callable[[socket.socket], object]:
    """A server without TLS that says so many at the beginning, as one of another version does."""

    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 10)
        connection.sendall(_hello(version, _SERVER))
        connection.recv(1 << 10)

    return behave


def answers_to_wire_version(address: str, version: int) -> list[tuple[int, bytes]]:
    """The messages, kind and payload, with which a server without TLS answers a client that says so many."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=HUNG) as connection:
        connection.sendall(_hello(version, _CLIENT))
        with connection.makefile("rb") as answers:
            return [*_messages(answers.read())]


def _messages(content: bytes) -> Iterator[tuple[int, bytes]]:
    while content:
        length, kind = struct.unpack("<IH", content[:6])
        yield kind, content[6 : 6 + length]
        content = content[6 + length :]


def _hello(version: int, role: int) -> bytes:
    payload = MAGIC + struct.pack("<IB", version, role) + bytes(32)
    return struct.pack("<IH", len(payload), HELLO) + payload


def _quietly(behave: Callable[[socket.socket], object], connection: socket.socket) -> None:
    try:
        behave(connection)
    except OSError:
        connection.close()
