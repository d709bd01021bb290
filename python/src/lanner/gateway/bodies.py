"""Reads the bodies of requests, never more than is allowed, compressed ones too."""

from __future__ import annotations

import asyncio
import zlib

from starlette.requests import ClientDisconnect, Request

from lanner.gateway.errors import Refused

#: Seconds that a body may take to arrive, and that it may pause.
BODY_SECONDS, PAUSE_SECONDS = 60.0, 10.0

#: The window bits of zlib for each encoding: a gzip header, or a zlib one, which is what HTTP calls deflate.
_WINDOWS = {"gzip": 31, "deflate": 15}


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request, decompressed, of at most `limit` bytes both as sent and as it is then.

    Raises:
        Refused: If it is larger, too slow, or compressed in another way than gzip or deflate.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", *_WINDOWS):
        raise Refused(415, f"content encoding {encoding!r} is not read; send gzip, deflate, or none")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _collect(request, limit)
    except TimeoutError:
        raise Refused(
            408,
            f"the body did not arrive within {BODY_SECONDS:g} s, or paused for {PAUSE_SECONDS:g} s; send it again",
        ) from None
    except ClientDisconnect:
        raise Refused(400, "the connection was closed before the body was whole") from None
    return body if encoding == "identity" else _decompress(body, _WINDOWS[encoding], limit)


async def _collect(request: Request, limit: int) -> bytes:
    body = bytearray()
    chunks = aiter(request.stream())
    while (chunk := await asyncio.wait_for(anext(chunks, None), PAUSE_SECONDS)) is not None:
        if len(body) + len(chunk) > limit:
            raise _too_large(limit)
        body += chunk
    return bytes(body)


def _decompress(body: bytes, window: int, limit: int) -> bytes:
    decompressor = zlib.decompressobj(window)
    try:
        # One byte more than allowed tells a body that is too large from one that just fits.
        whole = decompressor.decompress(body, limit + 1)
    except zlib.error:
        raise Refused(400, "the body is not compressed as its content encoding says") from None
    if len(whole) > limit:
        raise _too_large(limit)
    if not decompressor.eof or decompressor.unused_data:
        raise Refused(400, "the compressed body is cut off, or something follows it")
    return whole


def _too_large(limit: int) -> Refused:
    return Refused(
        413, f"the body is larger than {limit} bytes, the most that is read here; send fewer samples at once"
    )
