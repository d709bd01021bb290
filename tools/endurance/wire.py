"""What a client asked for on a connection without TLS: docs/wire-format.md has the frames."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

#: The kind of the frame that names kept material, of 16 bytes, which is about to be used.
KEPT_NAME = 0x21


def frames(stream: bytes | bytearray) -> Iterator[tuple[int, bytes]]:
    """Kind and payload of each whole frame; a connection that broke leaves one half."""
    place = 0
    while place + 6 <= len(stream):
        length, kind = struct.unpack_from("<IH", stream, place)
        place += 6 + length
        if place <= len(stream):
            yield kind, bytes(stream[place - length : place])


def names_used(streams: Iterable[bytes | bytearray]) -> list[str]:
    """The names of kept material that clients asked to use, in hexadecimal digits, as often as they asked."""
    return [payload.hex() for stream in streams for kind, payload in frames(stream) if kind == KEPT_NAME]
