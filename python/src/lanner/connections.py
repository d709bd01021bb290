"""A bound on the connections of an HTTP listener, so that those that send nothing leave room for those that ask.

A connection *waits* until a whole head of a request has come, and again once it was answered; it *works* in between.
One that waits has a deadline, which bytes do not move. Where there are too many, in all or from one address, the one
that has waited longest is closed and the newcomer stays: whoever opens thousands closes connections of their own.
Callers behind one proxy have one address, and lose no more than a connection that they did not use.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

#: Bits of an IPv6 address that tell whose it is: the others are the owner's to choose.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much connections may take.

    Attributes:
        most: Connections at once.
        of_address: How many of them may wait that are of one address.
        seconds: How long one may wait.
    """

    most: int
    of_address: int
    seconds: float = 10.0


class Held(Protocol):
    """A connection that has a place."""

    def drop(self) -> None:
        """Close it at once."""


class Connections:
    """The connections of one listener, those that wait in the order of their waits; used from one event loop.

    Args:
        bounds: How many there may be.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._addresses: dict[Held, str] = {}
        # Ordered: the first has waited longest.
        self._waiting: dict[Held, None] = {}
        self._waiting_of: dict[str, dict[Held, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[Held]:
        return iter([*self._addresses])

    def __contains__(self, connection: Held) -> bool:
        return connection in self._addresses

    def enter(self, connection: Held, address: str) -> None:
        """Give a new connection from an address a place, in which it waits."""
        self._addresses[connection] = owner_of(address)
        self.wait(connection)
        if len(self._addresses) > self.bounds.most:
            # That is the newcomer itself where all others work.
            self._drop_first(self._waiting)

    def wait(self, connection: Held) -> None:
        """Note that a connection waits from now on."""
        owner = self._addresses.get(connection)
        if owner is None:
            return
        self.work(connection)
        self._waiting[connection] = None
        others = self._waiting_of.setdefault(owner, {})
        others[connection] = None
        if len(others) > self.bounds.of_address:
            self._drop_first(others)

    def work(self, connection: Held) -> None:
        """Note that a request of a connection is worked on: it is not closed for others."""
        if self._waiting.pop(connection, self) is not self:
            owner = self._addresses[connection]
            others = self._waiting_of[owner]
            del others[connection]
            if not others:
                del self._waiting_of[owner]

    def leave(self, connection: Held) -> None:
        """Free the place of a connection that ended; nothing if it has none any more."""
        self.work(connection)
        self._addresses.pop(connection, None)

    def make_room(self) -> bool:
        """Close the one that has waited longest; whether there was one."""
        if not self._waiting:
            return False
        self._drop_first(self._waiting)
        return True

    def _drop_first(self, among: dict[Held, None]) -> None:
        first = next(iter(among))
        self.leave(first)
        first.drop()


def owner_of(address: str) -> str:
    """What connections from an address are counted under: itself, or its IPv6 network, which one caller has whole."""
    try:
        # An address of a link names the interface behind a percent sign.
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
