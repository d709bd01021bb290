"""Whether a server takes clients, for who asks it before sending some."""

from __future__ import annotations


class Readiness:
    """Set by the thread that starts and stops the server, and asked by others.

    Attributes:
        state: ``starting``, ``ready`` or ``stopping``.
    """

    def __init__(self) -> None:
        self.state = "starting"
