"""Bodies that come slowly are given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from starlette.requests import Request
from starlette.types import Message

from lanner.gateway import bodies
from lanner.gateway.errors import Refused


def read(pauses: Sequence[float]) -> bytes:
    """A body of a byte behind each pause, as it is read."""
    left = list(pauses)

    async def receive() -> Message:
        await asyncio.sleep(left.pop(0))
        return {"type": "http.request", "body": b"a", "more_body": bool(left)}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    return asyncio.run(bodies.read_body(request, 1 << 16))


def test_body_may_neither_pause_nor_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.5)
    assert read([0.0, 0.1, 0.1]) == b"aaa"
    for pauses in ([0.0, 5.0], [0.1] * 50):
        with pytest.raises(Refused, match="the body did not arrive within") as refused:
            read(pauses)
        assert refused.value.status == 408
