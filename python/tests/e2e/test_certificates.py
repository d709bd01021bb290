"""Certificates of an authority instead of a pin, and clients that must show theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from helpers.authority import make_authority
from helpers.processes import lanner, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def test_authority_instead_of_a_pin(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    authority, other = make_authority(tmp_path / "ca"), make_authority(tmp_path / "other")
    certificate, key = authority.issue("server", "serverAuth")
    with serving(tmp_path / "state", tiny_label, "--tls-cert", certificate, "--tls-key", key) as server:
        assert lanner("predict", server.address, samples_file, "--ca", authority.certificate).code == 0
        assert lanner("predict", server.address, samples_file, *server.pin).code == 0
        assert lanner("predict", server.address, samples_file, "--ca", other.certificate).code == 5


def test_client_must_show_its_certificate(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    authority, other = make_authority(tmp_path / "ca"), make_authority(tmp_path / "other")
    good, good_key = authority.issue("client", "clientAuth")
    bad, bad_key = other.issue("client", "clientAuth")
    with serving(tmp_path / "state", tiny_label, "--client-ca", authority.certificate) as server:
        arguments = ("predict", server.address, samples_file, *server.pin)
        assert lanner(*arguments, "--cert", good, "--key", good_key).code == 0
        assert lanner(*arguments).code == 5
        assert lanner(*arguments, "--cert", bad, "--key", bad_key).code == 5
        assert lanner(*arguments, "--cert", good, "--key", bad_key).code in (2, 5)


def test_file_that_is_no_certificate_is_misuse(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("not a certificate")
    result = lanner("predict", "127.0.0.1:1", samples_file, "--ca", junk)
    assert result.code in (2, 5)
    assert "junk.pem" in result.errors
    result = lanner("serve", tiny_label, "--tls-cert", junk, "--tls-key", junk, "--listen", "127.0.0.1:0")
    assert result.code in (2, 5)
    assert "junk.pem" in result.errors
