"""A server's answers to who watches it: its metrics, whether it is alive, and whether it takes clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry

from lanner.errors import TransportError
from lanner.telemetry.exposition import exposition
from lanner.telemetry.readiness import Readiness
from lanner.trust import parse_address


@contextmanager
def serve_endpoint(address: str, registry: CollectorRegistry, readiness: Readiness) -> Iterator[str]:
    """Answer ``GET`` of ``/metrics``, ``/healthz`` and ``/readyz`` at an address while the body runs.

    The body gets the address as bound: port 0 takes a free one.

    Raises:
        MisuseError: If the address is not of the form HOST:PORT.
        TransportError: If it cannot be listened on.
    """
    host, port = parse_address(address).rsplit(":", 1)
    try:
        endpoint = ThreadingHTTPServer((host.strip("[]"), int(port)), _handler(registry, readiness))
    except OSError as error:
        raise TransportError(
            f"metrics cannot listen ({error.strerror})", where=address, fix="choose another --metrics address"
        ) from None
    threading.Thread(target=endpoint.serve_forever, name="lanner-metrics", daemon=True).start()
    try:
        yield f"{host}:{endpoint.server_address[1]}"
    finally:
        endpoint.shutdown()
        endpoint.server_close()


def _handler(registry: CollectorRegistry, readiness: Readiness) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Seconds that a connection may be silent: each has a thread.
        timeout = 10

        def do_GET(self) -> None:
            answer = self._answer()
            if answer is None:
                self.send_error(404)
                return
            status, content_type, body = answer
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _answer(self) -> tuple[int, str, bytes] | None:
            """Status, content type and content; None where there is nothing."""
            if self.path == "/healthz":
                return 200, _TEXT, b"alive\n"
            if self.path == "/readyz":
                state = readiness.state
                return 200 if state == "ready" else 503, _TEXT, f"{state}\n".encode()
            if self.path == "/metrics":
                body, content_type = exposition(registry, self.headers.get("Accept"))
                return 200, content_type, body
            return None

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
            """Log nothing: a scraper comes every few seconds."""

    return Handler


_TEXT = "text/plain; charset=utf-8"
