"""An HTTP proxy that connects to whatever it is asked for on this machine."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy on a free port of this machine, in threads: it answers ``CONNECT`` of those who know the password.

    Args:
        credentials: ``NAME:PASSWORD`` that it wants; None where anybody may use it.

    Attributes:
        asked: ``HOST:PORT`` of every connection that it was asked for.
        carried: Bytes that it has carried.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, credentials: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.wanted = credentials and "Basic " + base64.b64encode(credentials.encode()).decode()
        self.asked: list[str] = []
        self.carried = 0

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return f"127.0.0.1:{self.server_address[1]}"


class _Tunnel(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        verb, target, _ = self.rfile.readline().decode().split(" ", 2)
        fields = dict(line.split(": ", 1) for line in iter(lambda: self.rfile.readline().decode().strip(), ""))
        self.server.asked.append(target)
        if self.server.wanted not in (None, fields.get("Proxy-Authorization")):
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        assert verb == "CONNECT"
        with socket.create_connection(("127.0.0.1", int(target.rsplit(":", 1)[1]))) as far:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=self._carry, args=(far, self.connection))
            back.start()
            self._carry(self.connection, far)
            back.join()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        try:
            while data := near.recv(1 << 16):
                self.server.carried += len(data)
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)
        except OSError:
            far.close()


@contextmanager
def proxying(credentials: str | None = None) -> Iterator[Proxy]:
    """Run a proxy until the block ends."""
    with Proxy(credentials) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()
