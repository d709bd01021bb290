"""How a server's models are named on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lanner.errors import MisuseError

_NAMED = re.compile(r"([A-Za-z0-9_.-]+)=(.+)")

#: The last @ with a commitment behind it: a path may hold others.
_PINNED = re.compile(r"(.+)@([0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class Offered:
    """A model that is offered to clients.

    Attributes:
        name: The name that they ask for; None for the model's own.
        path: Its file.
        commitment: The commitment that it must have; None for any.
    """

    name: str | None
    path: str
    commitment: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``[NAME=]MODEL.lanner[@COMMITMENT]``.

        Raises:
            MisuseError: If the name or the commitment is none.
        """
        named = _NAMED.fullmatch(text)
        name, rest = (named[1], named[2]) if named else (None, text)
        if named is None and "=" in text and not Path(text).exists():
            raise MisuseError(
                f"{text.partition('=')[0]!r} is not a name for a model", fix="use letters, digits, dots, - and _"
            )
        pinned = _PINNED.fullmatch(rest)
        if pinned is not None:
            return cls(name, pinned[1], pinned[2])
        path, _, commitment = rest.rpartition("@")
        if path and Path(path).is_file() and not Path(rest).exists():
            raise MisuseError(
                f"{commitment!r} is not a model's commitment",
                where=rest,
                fix="write FILE@COMMITMENT with the 64 hexadecimal digits that `lanner inspect FILE` prints",
            )
        return cls(name, rest, None)
