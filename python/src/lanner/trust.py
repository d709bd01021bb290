"""How a client decides that a server is the right one, and how addresses are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lanner.errors import MisuseError, option_named, spelled
from lanner.files import check_file

DEFAULT_PORT = 7400


@dataclass(frozen=True, slots=True)
class Trust:
    """What makes a server trusted. There is no trust on first use.

    Attributes:
        pin: The fingerprint of the server's certificate, ``sha256:`` and 64 hexadecimal digits.
        ca: A file of certificate authorities, in PEM.
        cert: The client's own certificate, in PEM, where the server asks for one.
        key: The private key to `cert`.
        pin_model: The commitment of the one model that is accepted, in hexadecimal.
        insecure_plaintext: Whether to speak without TLS; the server must do so too.
    """

    pin: str | None = None
    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None
    pin_model: str | None = None
    insecure_plaintext: bool = False

    def __post_init__(self) -> None:
        self._check_server()
        if (self.cert is None) != (self.key is None):
            raise MisuseError("a client certificate needs its key", fix=spelled("give both ⟦cert⟧ and ⟦key⟧"))
        if self.pin is not None and not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", self.pin):
            raise MisuseError(
                f"{self.pin!r} is not a fingerprint",
                where=option_named("pin"),
                fix="copy `sha256:` and 64 digits as `serve` printed",
            )
        if self.pin_model is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", self.pin_model):
            raise MisuseError(
                f"{self.pin_model!r} is not a model's commitment",
                where=option_named("pin_model"),
                fix="give 64 hexadecimal digits, or a file that `lanner export` wrote",
            )
        for path in (self.ca, self.cert, self.key):
            if path is not None:
                check_file(path, MisuseError)

    def document(self) -> dict[str, str | bool | None]:
        """As the native client reads it."""
        paths = {"ca": self.ca, "cert": self.cert, "key": self.key}
        texts = {name: None if path is None else str(path) for name, path in paths.items()}
        return {
            **texts,
            "pin": self.pin,
            "pin_model": self.pin_model,
            "insecure_plaintext": self.insecure_plaintext,
        }

    def _check_server(self) -> None:
        given = [self.pin is not None, self.ca is not None, self.insecure_plaintext]
        if sum(given) == 0:
            raise MisuseError(
                "no server is trusted: there is neither a pin nor an authority",
                fix=f"pass {spelled('⟦pin⟧')} with the fingerprint that `serve` printed, or {spelled('⟦ca⟧')} with a "
                "file of authorities",
            )
        if sum(given) > 1:
            raise MisuseError(
                spelled("⟦pin⟧, ⟦ca⟧ and ⟦insecure_plaintext⟧ exclude each other"), fix="give one of them"
            )


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> str:
    """Complete ``HOST[:PORT]`` with a port where there is none; IPv6 addresses with a port stand in brackets.

    Raises:
        MisuseError: If the text is not of that form.
    """
    if text.isdecimal():
        raise MisuseError(f"{text} is a port without a host", fix=f"write HOST:{text}, as in 127.0.0.1:{text}")
    match = re.fullmatch(r"(\[[0-9a-fA-F:.%\w]+\]|[^\s:\[\]/]+)(?::(\d{1,5}))?", text)
    if match is None or int(match[2] or 0) > 65535:
        raise MisuseError(f"{text!r} is not an address", fix="write HOST or HOST:PORT, or [IPv6]:PORT")
    return f"{match[1]}:{match[2] or default_port}"
