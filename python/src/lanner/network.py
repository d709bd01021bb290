"""The network between two parties on this machine: loopback as it is, or another one, emulated.

An emulated network is a relay in this process that delivers every byte as late as the network would: after its turn
on a line of some bandwidth, the same in both directions, and half a round trip. See `crates/net/src/relay.rs`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from lanner import _native
from lanner.errors import MisuseError, native_errors
from lanner.files import check_file, why
from lanner.trust import Trust, parse_address

#: Networks that have names; any other is described by a file.
NAMES = ("loopback", "lan", "wan")


@dataclass(frozen=True, slots=True)
class Network:
    """A network.

    Attributes:
        name: One of `NAMES`, the stem of the file that describes it, or to which server it was measured.
        profile: Bits per second in each direction and seconds of a round trip; None for loopback as it is.
    """

    name: str
    profile: tuple[float, float] | None = None

    @property
    def shaping(self) -> str:
        """How the network comes about."""
        return "none" if self.profile is None else "in-process relay"

    def describe(self) -> str:
        """The network in words."""
        if self.profile is None:
            return self.name
        bandwidth, round_trip = self.profile
        return f"{self.name} ({bandwidth / 1e6:.4g} Mbit/s, {round_trip * 1e3:.3g} ms)"

    @contextmanager
    def between(self, address: str) -> Iterator[str]:
        """Give the address at which clients reach a server over this network.

        Raises:
            TransportError: If the relay cannot listen.
        """
        if self.profile is None:
            yield address
            return
        with native_errors(address):
            relay = _native.NativeRelay(address, *self.profile)
        try:
            yield relay.address
        finally:
            relay.close()


LOOPBACK = Network("loopback")


def read_network(text: str) -> Network:
    """Read a network from a command line: a name, or the path of a TOML file.

    The file has two keys, ``bandwidth_bits_per_second`` and ``round_trip_seconds``.

    Raises:
        MisuseError: If there is no such network, or the file does not describe one.
    """
    if text == "loopback":
        return LOOPBACK
    if text in NAMES:
        return Network(text, _native.network_profile(text))
    if not text.endswith(".toml"):
        raise MisuseError(f"there is no network {text!r}", fix=f"give {', '.join(NAMES)} or a .toml file")
    check_file(text, MisuseError)
    try:
        document = tomllib.loads(Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"cannot be read as TOML ({why(error)})", where=text, fix="give a TOML file") from None
    keys = ("bandwidth_bits_per_second", "round_trip_seconds")
    if set(document) != set(keys):
        raise MisuseError("these are not a network's keys", where=text, fix=f"give {' and '.join(keys)}, no others")
    return Network(Path(text).stem, (_number(document, keys[0], 1.0, text), _number(document, keys[1], 0.0, text)))


def measure_network(address: str, trust: Trust, timeout: float) -> Network:
    """Measure the network to a real server, which is asked for no model.

    The round trip is the fastest of some; the bandwidth that of one connection, TLS included, in the slower direction.

    Args:
        address: ``HOST[:PORT]``.
        trust: Which server is the right one.
        timeout: Seconds without a byte from the server after which to give up.

    Raises:
        MisuseError: If the address is none.
        TransportError: If there is no connection, or the server's certificate is not trusted.
        PeerError: If the server speaks another version.
    """
    server = parse_address(address)
    with native_errors(server):
        profile = _native.measure_link(json.dumps({"address": server, "timeout": timeout, **trust.document()}))
    return Network(f"measured to {server}", profile)


def _number(document: dict[str, object], key: str, least: float, where: str) -> float:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < inf:
        raise MisuseError(f"{key} is {value!r}", where=where, fix=f"give a number of at least {least:g}")
    return float(value)
