"""How far a session has come while it runs: its set-up, then its predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lanner import _native


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far one layer has come in one phase, over all predictions of a session.

    Attributes:
        name: The layer.
        protocol: Its protocol.
        phase: ``offline`` or ``online``.
        visits: How often one request takes it: 1 but in loops.
        begun: How often it was begun.
        ended: How often it has ended.
        seconds: What those took that have ended.
        bytes: What they sent and received.
    """

    name: str
    protocol: str
    phase: str
    visits: int
    begun: int
    ended: int
    seconds: float
    bytes: int

    def since(self, before: StepProgress) -> StepProgress:
        """The same without what had come before."""
        return StepProgress(
            self.name,
            self.protocol,
            self.phase,
            self.visits,
            self.begun - before.begun,
            self.ended - before.ended,
            self.seconds - before.seconds,
            self.bytes - before.bytes,
        )


@dataclass(frozen=True, slots=True)
class PartProgress:
    """How far one part of the way to a session has come.

    Attributes:
        name: ``connection``, ``model``, ``keys`` or ``transfers``.
        begun: Whether it was begun.
        ended: Whether it has ended.
        seconds: What it took, so far.
        bytes: What was sent and received, so far.
        expected_bytes: How many it takes at most, but for what the transport adds; None where they are next to nothing,
            or not known yet.
    """

    name: str
    begun: bool
    ended: bool
    seconds: float
    bytes: int
    expected_bytes: int | None


class SetUpWatch:
    """Reports a `lanner.Client`'s progress to other threads while it is made or opens another session.

    One watch is for one client at a time.
    """

    def __init__(self) -> None:
        self.native = _native.NativeSetUpWatch()

    def parts(self) -> list[PartProgress]:
        """How far each part has come, in order; nobody waits."""
        return [PartProgress(**part) for part in json.loads(self.native.parts())]
