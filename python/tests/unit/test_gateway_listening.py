"""Where a gateway listens, and under which names it may be asked."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lanner.errors import MisuseError
from lanner.gateway.listening import Listening
from lanner.hosts import LOOPBACK_NAMES, Hosts, host_name, is_address


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.1", 8080),
        ("localhost:9", "localhost", 9),
        ("[::1]:0", "::1", 0),
        ("127.0.0.2", "127.0.0.2", 8080),
    ],
)
def test_loopback_needs_no_certificate(address: str, host: str, port: int) -> None:
    listening = Listening.parse(address, None, None)
    assert (listening.host, listening.port, listening.scheme) == (host, port, "http")
    assert listening.is_loopback
    assert listening.hosts([]) == Hosts(LOOPBACK_NAMES | {host}, any_address=False)


@pytest.mark.parametrize("address", ["[::]:1", "10.0.0.1", "gate.example", "localhost.example"])
def test_others_need_one(address: str, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="in the clear"):
        Listening.parse(address, None, None)
    certificate = tmp_path / "certificate.pem"
    certificate.write_text("")
    listening = Listening.parse(address, certificate, certificate)
    assert not listening.is_loopback
    assert listening.scheme == "https"
    hosts = listening.hosts(["Gate.Example"])
    assert hosts.names >= {"gate.example", socket.gethostname().lower()}
    assert hosts.any_address


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Gate.Example:80", "gate.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8080", "::1"),
        ("[::1]", "::1"),
        ("", ""),
        ("[", ""),
        ("a@b:1", "a@b"),
        ("127.0.0.1]evil.example", ""),
        ("[127.0.0.1]evil.example", ""),
        ("127.0.0.1:1:2", ""),
    ],
)
def test_host_of_a_header(header: str, name: str) -> None:
    assert host_name(header) == name


def test_names_are_no_addresses() -> None:
    assert is_address("192.0.2.1")
    assert is_address("::1")
    assert not is_address("192.0.2.1.example")
    assert not is_address("")
