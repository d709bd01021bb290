"""A certificate authority, made with openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


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


def openssl(*arguments: object) -> str:
    command = ["openssl", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_authority(folder: Path) -> Authority:
    folder.mkdir()
    constraints = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign"]
    names = ["-keyout", folder / "ca.key", "-out", folder / "ca.pem", "-subj", "/CN=test authority"]
    openssl("req", "-x509", *NEW_KEY, *names, "-days", 2, *constraints)
    return Authority(folder)
