"""So many requests at once and no more: others hear it, the page's files are answered, and room is given again."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from helpers.processes import HUNG
from lanner.gateway.front import REQUESTS, Front
from lanner.gateway.guard import Guard
from lanner.hosts import Hosts

GUARD = Guard("http", Hosts.of("localhost"), token=None, public=frozenset({"/page"}))


async def status(front: Front, path: str) -> int:
    """The status of a GET's answer."""
    told: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            told.append(message["status"])

    headers = [(b"host", b"localhost")]
    await front({"type": "http", "method": "GET", "path": path, "headers": headers}, receive, send)
    (answered,) = told
    return answered


def test_one_request_more_than_there_may_be_is_told_to_come_later() -> None:
    async def run() -> None:
        free = asyncio.Event()

        async def work(scope: Scope, _receive: Receive, send: Send) -> None:
            if scope["path"] != "/page":
                await free.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        front = Front(work, GUARD, [])
        waiting = [asyncio.create_task(status(front, "/predict")) for _ in range(REQUESTS)]
        await asyncio.sleep(0)
        assert (await status(front, "/predict"), await status(front, "/page")) == (503, 200)
        free.set()
        assert set(await asyncio.gather(*waiting)) == {200}
        assert await status(front, "/predict") == 200

    asyncio.run(asyncio.wait_for(run(), HUNG))
