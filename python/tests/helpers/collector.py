"""Collects traces that are sent by OTLP over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from helpers.processes import HUNG


@dataclass
class Collector:
    """What was collected so far.

    Attributes:
        url: The endpoint.
        spans: The spans, in the order in which they came, with the service that each is of.
        bodies: What was sent.
    """

    url: str
    spans: list[tuple[str, Span]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Take in one request of an exporter."""
        self.bodies.append(body)
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for each in request.resource_spans:
            (service,) = (pair.value.string_value for pair in each.resource.attributes if pair.key == "service.name")
            self.spans += [(service, span) for scope in each.scope_spans for span in scope.spans]

    def await_span(self, service: str, name: str) -> Span:
        """The first span of that name, once it is there."""
        deadline = time.monotonic() + HUNG
        while True:
            found = [span for sender, span in self.spans if (sender, span.name) == (service, name)]
            if found:
                return found[0]
            assert time.monotonic() < deadline, [(sender, span.name) for sender, span in self.spans]
            time.sleep(0.05)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Collect on a free port of loopback while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
