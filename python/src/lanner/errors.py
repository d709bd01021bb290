"""The errors of lanner: one sentence each, saying what went wrong, where, and what to do.

Every error a user can meet is a `LannerError`; its subclass fixes the exit code of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from lanner import _native


class LannerError(Exception):
    """Base of every error that lanner raises.

    Attributes:
        what: What went wrong, without a full stop.
        where: The layer, file, field or peer concerned; empty where the sentence needs none.
        fix: What the reader can do about it; empty where nothing can be done.
    """

    kind: ClassVar[str] = "other"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        # Many a sentence names its place itself.
        is_named = not self.where or re.search(rf"(?<!\w){re.escape(self.where)}(?!\w)", self.what)
        place = "" if is_named else f"{self.where}: "
        advice = f"; {self.fix}" if self.fix else ""
        return f"{place}{self.what}{advice}"

    def document(self) -> dict[str, Any]:
        """The error as the JSON object that ``--json`` prints."""
        return {"kind": self.kind, "what": self.what, "where": self.where, "fix": self.fix}


class MisuseError(LannerError):
    """A wrong argument, option or order of calls."""

    kind = "misuse"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a model is refused.

    Attributes:
        what: The reason as a sentence, without a full stop.
        where: The node, input or file concerned, as an error names it; empty where the sentence needs none.
        node: The node's name; empty where the whole model is concerned.
        operator: The ONNX operator, behind its domain where that is not ONNX's own; empty for the whole model.
        attribute: The attribute or input concerned; empty where the operator itself is.
        fix: What to do about it; empty where nothing can be done.
    """

    what: str
    where: str = ""
    node: str = ""
    operator: str = ""
    attribute: str = ""
    fix: str = ""

    def __str__(self) -> str:
        return str(ModelError(self.what, where=self.where, fix=self.fix))

    def document(self) -> dict[str, str]:
        """The reason as the JSON object that ``--json`` prints."""
        return {
            "operator": self.operator,
            "node": self.node,
            "attribute": self.attribute,
            "reason": self.what,
            "fix": self.fix,
        }


class ModelError(LannerError):
    """A model that cannot be read, or whose values leave the range that its parameters allow.

    Attributes:
        nodes: Every reason known, the one that the sentence names first; empty where there is no list of them.
    """

    kind = "model"
    exit_code = 3

    def __init__(self, what: str, *, where: str = "", fix: str = "", nodes: Sequence[Refusal] = ()) -> None:
        super().__init__(what, where=where, fix=fix)
        self.nodes = tuple(nodes)

    def document(self) -> dict[str, Any]:
        """The error as the JSON object that ``--json`` prints, with ``nodes`` where there are any."""
        listed = {"nodes": [refusal.document() for refusal in self.nodes]} if self.nodes else {}
        return {**super().document(), **listed}


class UnsupportedOpError(ModelError):
    """An operator, an attribute of one, or an output policy that no protocol here computes."""

    kind = "unsupported"


class PeerError(LannerError):
    """The peer refused, speaks another version, serves another model, or sent a malformed message."""

    kind = "peer"
    exit_code = 4


class BusyError(PeerError):
    """The server has no free session, or no room for more material: try again later."""

    kind = "busy"


class TransportError(LannerError):
    """No connection, a certificate that is not trusted, a time-out, or a disconnect."""

    kind = "transport"
    exit_code = 5


class InputError(LannerError, ValueError):
    """An input of the wrong shape, type or range, or a file that cannot be read."""

    kind = "input"
    exit_code = 6


_KINDS: dict[str, type[LannerError]] = {
    error.kind: error
    for error in (MisuseError, ModelError, UnsupportedOpError, PeerError, BusyError, TransportError, InputError)
}


@contextmanager
def native_errors(where: str = "") -> Iterator[None]:
    """Turn the native module's error into the `LannerError` of its kind.

    Args:
        where: The place to name when the native error names none.
    """
    try:
        yield
    except _native.NativeError as error:
        kind = _KINDS.get(error.kind, LannerError)
        raise kind(spelled(error.what), where=error.where or where, fix=spelled(error.fix)) from None


def spelled(sentence: str) -> str:
    """A native sentence with its options as the caller gives them: ``--pin`` to a command, ``pin=`` to Python."""
    return _OPTION.sub(_flag if _commands else _keyword, sentence)


def option_named(name: str) -> str:
    """An option as the place of an error, or in its sentence: ``--pin`` to a command, ``pin`` to Python."""
    return spelled(f"⟦{name}⟧").removesuffix("=")


@contextmanager
def naming_flags() -> Iterator[None]:
    """Have errors name options by their flags, while a command runs."""
    # Whether a process is a command's is the same for all its threads.
    global _commands
    _commands += 1
    try:
        yield
    finally:
        _commands -= 1


#: Commands that run in this process.
_commands = 0

#: An option as the native module writes it, with its value if the sentence has one.
_OPTION = re.compile("⟦(\\w+)(?:=([^⟧]*))?⟧")


def _flag(option: re.Match[str]) -> str:
    name, value = option.groups()
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


def _keyword(option: re.Match[str]) -> str:
    name, value = option.groups()
    return f"{name}=" if value is None else f'{name}="{value}"'
