"""Callers of a gateway: requests as they are, every header in the test's hands."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from helpers.processes import HUNG

JSON = {"Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body, JSON."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def error(self) -> str:
        """The one sentence of an answer that is nothing but an error."""
        document = self.document
        assert self.status >= 400
        assert set(document) == {"error"}
        assert "\n" not in document["error"]
        return str(document["error"])


@dataclass(frozen=True, slots=True)
class Caller:
    """Sends requests to a gateway, each on a connection of its own."""

    url: str
    authority: Path | None = None

    def __call__(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPConnection:
        """A connection, over TLS where the address says so."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=HUNG)
        context = ssl.create_default_context(cafile=self.authority)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=HUNG, context=context)

    def get(self, path: str, **headers: str) -> Reply:
        """GET; underscores in names of headers stand for hyphens."""
        return self("GET", path, None, {name.replace("_", "-"): value for name, value in headers.items()})

    def infer(self, model: str, document: object, **headers: str) -> Reply:
        """POST a request in JSON."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self("POST", f"/v2/models/{model}/infer", json.dumps(document).encode(), {**JSON, **more})


def request_of(x: NDArray[np.float32], name: str = "image", **more: object) -> dict[str, Any]:
    """A request for samples, as JSON."""
    tensor = {"name": name, "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}
    return {"inputs": [tensor], **more}
