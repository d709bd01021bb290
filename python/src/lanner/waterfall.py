"""Predictions as a waterfall: each step on the client's clock, and what of it the server computed.

Each party measures its own time: the client how long it was at a step, from the end of the one before it, and the
server how long it computed for that step. No clock is shared, and so where in the client's time the server's lies is
not known. Neither is what the client computed: that is in what is left, with waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanner.network import Network
from lanner.prediction import Prediction

#: What a server computed, in seconds, by phase, step and protocol.
Computed = Mapping[tuple[str, str, str], float]


@dataclass(frozen=True, slots=True)
class Span:
    """A step in one phase, the mean of several predictions.

    Attributes:
        phase: ``offline`` or ``online``.
        name: The layer.
        protocol: Its protocol.
        start: Seconds of the client from the phase's first step on.
        seconds: How long the client was at it, computing, sending and waiting.
        server: How long the server computed for it, which may overlap what the client does before and after.
        link: What its bytes and rounds take over an emulated network, at most what the server leaves; 0 over loopback.
        bytes: Bytes in both directions.
        rounds: Sends by the client that were followed by a wait.
    """

    phase: str
    name: str
    protocol: str
    start: float
    seconds: float
    server: float
    link: float
    bytes: float
    rounds: float

    @property
    def within(self) -> float:
        """What of the server's time fits into the client's."""
        return min(self.server, self.seconds)

    @property
    def left(self) -> float:
        """What is neither the server's nor the link's: the client computes, or waits for something else."""
        return self.seconds - self.within - self.link


def spans(predictions: Sequence[Prediction], computed: Computed, network: Network) -> list[Span]:
    """The steps of predictions, phase by phase, each the mean of all; the set-up has none.

    Args:
        predictions: All that the server computed for.
        computed: What it computed for all of them together.
        network: The network between the parties.
    """
    totals: dict[tuple[str, str, str], list[float]] = {}
    for layer in (layer for prediction in predictions for layer in prediction.layers if layer.phase != "setup"):
        total = totals.setdefault((layer.phase, layer.name, layer.protocol), [0.0, 0.0, 0.0])
        for index, value in enumerate((layer.seconds, layer.bytes, layer.rounds)):
            total[index] += value / len(predictions)
    found: list[Span] = []
    ends: dict[str, float] = {}
    for (phase, name, protocol), (seconds, transferred, rounds) in totals.items():
        server = computed.get((phase, name, protocol), 0.0) / len(predictions)
        link = min(_over(network, transferred, rounds), max(seconds - server, 0.0))
        start = ends.get(phase, 0.0)
        found.append(Span(phase, name, protocol, start, seconds, server, link, transferred, rounds))
        ends[phase] = start + seconds
    return found


def _over(network: Network, transferred: float, rounds: float) -> float:
    """Seconds that bytes and rounds take over a network that is emulated."""
    if network.profile is None:
        return 0.0
    bandwidth, round_trip = network.profile
    return 8 * transferred / bandwidth + rounds * round_trip
