"""Under which names an HTTP listener may be called.

A page from elsewhere can make a browser call any address that the browser's machine reaches, under a foreign name that
was made to resolve there. Its requests have that name in ``Host``, and are refused by it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

#: The names of this machine for programs on it.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of one listener.

    Attributes:
        names: Host names and addresses, in lower case.
        any_address: Whether every address in numbers is one, as off loopback: a foreign page has a name.
    """

    names: frozenset[str]
    any_address: bool

    @classmethod
    def of(cls, host: str, others: Sequence[str] = ()) -> Self:
        """The names of what listens at a host, without brackets: the host, this machine's names, and `others`."""
        loopback = is_loopback(host)
        own = () if loopback else (socket.gethostname(),)
        return cls(LOOPBACK_NAMES | {name.lower() for name in (host, *own, *others)}, not loopback)

    def include(self, headers: Sequence[str]) -> bool:
        """Whether the ``Host`` headers of a request, all of them, are one that names this listener."""
        name = host_name(headers[0]) if len(headers) == 1 else ""
        return name in self.names or (self.any_address and is_address(name))


def host_name(host: str) -> str:
    """The name or the address in a ``Host`` header, in lower case, without brackets and port; empty if none."""
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?", host)
    return "" if match is None else (match[1] or match[2]).lower()


def is_address(name: str) -> bool:
    """Whether a name is an address in numbers."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach what listens at a host."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
