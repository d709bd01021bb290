"""The bearer token of a gateway that others can reach: a file that only its owner may read."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import shlex
import stat
from pathlib import Path

from lanner.errors import MisuseError

#: The name of the file in the state directory.
FILE = "gateway.token"

#: What a token may look like, by RFC 6750; shorter ones could be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{20,512}")


class Token:
    """A token to compare with; it has no text form, so that no message or log can show it."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def __repr__(self) -> str:
        return "Token(...)"

    def matches(self, authorization: str | None) -> bool:
        """Whether a request's ``Authorization`` header carries it; takes as long whether or not it does."""
        scheme, _, given = (authorization or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._secret)
        return same and scheme.lower() == "bearer"


def read_token(path: Path) -> Token:
    """Read the token in a file; a new one, mode 0600, is made where there is none.

    Raises:
        MisuseError: If the file cannot be made or read, others may read it, or it holds no token.
    """
    try:
        if not path.exists():
            _make(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise MisuseError(f"the token cannot be used ({reason})", where=str(path), fix="name another file") from None
    if os.name != "nt" and mode & 0o077:
        raise MisuseError(
            f"the token's file has mode {mode:04o}, so that others may read it",
            where=str(path),
            fix=f"run chmod 600 {shlex.quote(str(path))}",
        )
    if not _TOKEN.fullmatch(text):
        raise MisuseError(
            "this is no token of 20 to 512 letters, digits and ._~+/=-",
            where=str(path),
            fix="remove the file, and a new token is made",
        )
    return Token(text)


def _make(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
