"""Certificates of an authority instead of a pin, and clients that must show theirs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.processes import lanner, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority in a folder of its own."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.pem"

    def issue(self, name: str, usage: str) -> tuple[Path, Path]:
        """A certificate of this authority for localhost, and its key."""
        key, request, certificate = (self.folder / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
        openssl("req", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signing = ["-CA", self.certificate, "-CAkey", self.folder / "ca.key", "-CAcreateserial", "-days", 2]
        openssl("x509", "-req", "-in", request, *signing, "-extfile", extensions, "-out", certificate)
        return certificate, key


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)  # noqa: S607 - on the path


def make_authority(folder: Path) -> Authority:
    folder.mkdir()
    constraints = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign"]
    names = ["-keyout", folder / "ca.key", "-out", folder / "ca.pem", "-subj", "/CN=test authority"]
    openssl("req", "-x509", *NEW_KEY, *names, "-days", 2, *constraints)
    return Authority(folder)


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
