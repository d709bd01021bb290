"""Collects every reason why a model is refused, so that one report names them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lanner.errors import ModelError, Refusal, UnsupportedOpError
from lanner.onnx.node import Node

T = TypeVar("T")


class Refusals:
    """The reasons met so far, in the order of the file."""

    def __init__(self) -> None:
        self._reasons: dict[Refusal, ModelError] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    @property
    def reasons(self) -> list[Refusal]:
        """Every reason, once."""
        return list(self._reasons)

    def attempt(self, action: Callable[[], T], node: Node | None = None) -> T | None:
        """Return what the action returns; if it raises a `ModelError`, add that and return None.

        Args:
            action: What may be refused.
            node: The node that it concerns; None for the whole model.
        """
        try:
            return action()
        except ModelError as error:
            self.note(error, node)
        return None

    def note(self, error: ModelError, node: Node | None = None) -> None:
        """Add an error's reasons; `node` as of `attempt`."""
        for reason in error.nodes or [_reason(error, node)]:
            self._reasons.setdefault(reason, error)

    def error(self) -> ModelError | None:
        """One error for all reasons, whose sentence names the first and counts the others; None where there is none."""
        if not self._reasons:
            return None
        first = next(iter(self._reasons.values()))
        others = len(self._reasons) - 1
        more = f" (and {others} more {'reasons' if others > 1 else 'reason'})" if others else ""
        unsupported = any(isinstance(error, UnsupportedOpError) for error in self._reasons.values())
        kind = UnsupportedOpError if unsupported else ModelError
        return kind(first.what + more, where=first.where, fix=first.fix, nodes=self.reasons)


def _reason(error: ModelError, node: Node | None) -> Refusal:
    if node is None:
        return Refusal(error.what, error.where, fix=error.fix)
    return Refusal(error.what, error.where or node.where, node.name, node.qualified_operator, fix=error.fix)
