"""Addresses, and what makes a server trusted."""

from pathlib import Path

import pytest

from lanner.errors import MisuseError
from lanner.trust import Trust, parse_address

PIN = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", "localhost:7400"),
        ("127.0.0.1:99", "127.0.0.1:99"),
        ("[::1]", "[::1]:7400"),
        ("[::1]:5", "[::1]:5"),
        ("host-1.example.org:0", "host-1.example.org:0"),
    ],
)
def test_address_is_completed(text: str, address: str) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":80", "host:", "host:x", "host:70000", "::1", "http://host", "a b:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(MisuseError, match="is not an address"):
        parse_address(text)


def test_exactly_one_way_to_trust(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    Trust(pin=PIN)
    Trust(ca=authority)
    Trust(insecure_plaintext=True)
    with pytest.raises(MisuseError, match="no server is trusted"):
        Trust()
    with pytest.raises(MisuseError, match="exclude"):
        Trust(pin=PIN, ca=authority)
    with pytest.raises(MisuseError, match="exclude"):
        Trust(pin=PIN, insecure_plaintext=True)


@pytest.mark.parametrize("pin", ["", "sha256:12", "0f" * 32, "sha1:" + "0f" * 20, PIN + "0"])
def test_pin_must_be_a_fingerprint(pin: str) -> None:
    with pytest.raises(MisuseError, match="fingerprint"):
        Trust(pin=pin)


def test_pinned_model_must_be_a_commitment() -> None:
    Trust(pin=PIN, pin_model="ab" * 32)
    with pytest.raises(MisuseError, match="commitment"):
        Trust(pin=PIN, pin_model="net.public")


def test_client_certificate_needs_its_key(tmp_path: Path) -> None:
    certificate = tmp_path / "c.pem"
    certificate.write_text("")
    with pytest.raises(MisuseError, match="key"):
        Trust(pin=PIN, cert=certificate)
    with pytest.raises(MisuseError, match="no such file"):
        Trust(pin=PIN, cert=certificate, key=tmp_path / "absent.pem")
