"""Numbers of things in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number of things, as in ``1 sample`` and ``2 samples``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
