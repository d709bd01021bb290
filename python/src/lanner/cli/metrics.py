"""The server's counters in the text format that Prometheus reads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lanner.errors import TransportError
from lanner.server import Server
from lanner.trust import parse_address


@contextmanager
def serve_metrics(address: str | None, server: Server) -> Iterator[str | None]:
    """Answer ``GET /metrics`` at an address while the body runs; do nothing where there is none.

    The body gets the address as bound: port 0 takes a free one.

    Raises:
        MisuseError: If the address is not of the form HOST:PORT.
        TransportError: If it cannot be listened on.
    """
    if address is None:
        yield None
        return
    host, port = parse_address(address).rsplit(":", 1)
    try:
        endpoint = ThreadingHTTPServer((host.strip("[]"), int(port)), _handler(server))
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


def metrics_text(stats: Mapping[str, object], kept: Mapping[str, object], computed: Sequence[Mapping[str, Any]]) -> str:
    """The counters as lines of ``lanner_NAME VALUE``, the stock on disk, and the seconds computed for each step."""
    named = {**stats, **{f"kept_{name}": value for name, value in kept.items()}}
    numbers = {name: value for name, value in named.items() if isinstance(value, int | float)}
    lines = [f"lanner_{name} {value!r}" for name, value in sorted(numbers.items())]
    for step in computed:
        labels = ",".join(f"{name}={_quoted(step[name])}" for name in ("model", "phase", "step", "protocol"))
        lines += [f"lanner_step_{name}{{{labels}}} {step[name]!r}" for name in ("seconds", "count")]
    return "".join(f"{line}\n" for line in lines)


def _quoted(value: str) -> str:
    """A label's value: Prometheus escapes backslashes, quotes and line feeds, as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Seconds that a connection may be silent: each has a thread.
        timeout = 10

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = metrics_text(server.stats(), server.kept(), server.computed()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
            """Log nothing: a scraper comes every few seconds."""

    return Handler
