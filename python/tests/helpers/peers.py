"""Servers that misbehave, each in its own way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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


def _quietly(behave: Callable[[socket.socket], object], connection: socket.socket) -> None:
    try:
        behave(connection)
    except OSError:
        connection.close()
