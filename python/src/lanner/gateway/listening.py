"""Where the gateway listens, and what it asks of callers there."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lanner.errors import MisuseError, TransportError
from lanner.files import check_file
from lanner.hosts import Hosts, is_address, is_loopback
from lanner.trust import parse_address

DEFAULT_PORT = 8080


@dataclass(frozen=True, slots=True)
class Listening:
    """An address, and how it is guarded.

    Attributes:
        host: The host as it was given, without brackets.
        port: The port, or 0 for a free one.
        certificate: A certificate chain in PEM, or None for plain HTTP.
        key: The private key to it.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def parse(cls, address: str, certificate: Path | None, key: Path | None) -> Listening:
        """Read where to listen.

        Raises:
            MisuseError: If it is no address, a file is missing, or others could reach it without TLS.
        """
        host, port = parse_address(address, DEFAULT_PORT).rsplit(":", 1)
        listening = cls(host.strip("[]"), int(port), certificate, key)
        if (certificate is None) != (key is None):
            raise MisuseError("a certificate needs its key", fix="give both --tls-cert and --tls-key")
        for path in (certificate, key):
            if path is not None:
                check_file(path, MisuseError)
        if certificate is None and not listening.is_loopback:
            raise MisuseError(
                f"other machines can reach {address}, and inputs would cross the network in the clear",
                fix="give --tls-cert and --tls-key, or listen on 127.0.0.1",
            )
        return listening

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine reach it."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        """``https`` or ``http``."""
        return "http" if self.certificate is None else "https"

    def hosts(self, others: Sequence[str]) -> Hosts:
        """The names under which callers may ask: the host, this machine's names, and `others`."""
        return Hosts.of(self.host, others)

    def bind(self) -> socket.socket:
        """A socket that listens there.

        Raises:
            TransportError: If it cannot.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            raise TransportError(
                f"the gateway cannot listen ({error.strerror})",
                where=f"{self.host}:{self.port}",
                fix="choose another --listen address",
            ) from None

    def url(self, bound: socket.socket) -> str:
        """The address of the page."""
        everywhere = is_address(self.host) and ipaddress.ip_address(self.host).is_unspecified
        host = socket.gethostname() if everywhere else self.host
        host = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{host}:{bound.getsockname()[1]}"

    def context(self) -> ssl.SSLContext | None:
        """TLS 1.3 with the certificate, or None without one.

        Raises:
            MisuseError: If certificate and key are none, or not of each other.
        """
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            # A key with a password would otherwise ask for it on the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ssl.SSLError, ValueError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            raise MisuseError(
                f"the certificate or its key cannot be used ({reason})",
                where=f"{self.certificate}, {self.key}",
                fix="give a certificate chain and its key without a password, in PEM",
            ) from None
        return context
