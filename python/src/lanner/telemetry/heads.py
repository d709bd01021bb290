"""The head of an HTTP request, read strictly: whatever is not plainly one is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

#: The most bytes of a head.
HEAD_BYTES = 16 << 10

_REQUEST = re.compile(r"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body.

    Attributes:
        method: The method, in capitals.
        path: The path, without a query.
        headers: Names in lower case, and values.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Read the lines of a head, without the empty one at its end; None if they are none."""
        first, *others = text.decode("latin-1").split("\r\n")
        request = _REQUEST.fullmatch(first)
        headers = [_HEADER.fullmatch(line) for line in others]
        if request is None or None in headers:
            return None
        named = tuple((found[1].lower(), found[2].strip(" \t")) for found in headers if found is not None)
        return cls(request[1], request[2].partition("?")[0], named)

    def all(self, name: str) -> list[str]:
        """The values of every header of a name."""
        return [value for each, value in self.headers if each == name]

    @property
    def accepted(self) -> str | None:
        """What the header ``Accept`` says."""
        return ", ".join(self.all("accept")) or None
