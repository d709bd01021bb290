"""How far a session's predictions have come, while they run."""

from __future__ import annotations

from dataclasses import dataclass


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
