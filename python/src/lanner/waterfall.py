"""Predictions as a waterfall: each step on the client's clock, and where in it the server may have computed.

Each party measures its own time: the client how long it was at a step, from the end of the one before it, and how much
of that it computed, and the server how long it computed for that step. No clock is shared, and so where on the client's
clock the server's time lies is inferred: the server takes one step after the other, each at the end of the client's,
later where it is not done with the one before, and earlier where the phase would end before it. Of what the server
leaves, the client's computing comes first; where both compute at once, it is in the server's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanner.network import Network
from lanner.prediction import Prediction

#: What a server computed, in seconds, by phase, step and protocol.
Computed = Mapping[tuple[str, str, str], float]

#: Stretches of time: when each begins, and how long it is, in seconds.
Stretches = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Span:
    """A step in one phase, the mean of several predictions; times are of the client, from the phase's first step on.

    Attributes:
        phase: ``offline`` or ``online``.
        name: The layer.
        protocol: Its protocol.
        start: When the client came to it.
        seconds: How long the client was at it, computing, sending and waiting.
        server_start: When the server may have begun to compute for it.
        server: How long the server computed for it.
        client: How long the client computed for it.
        own: When that was, as far as the server did not compute.
        left: When the client was at it and nothing is known to have gone on.
        way: What its bytes and rounds take over an emulated network, at most what the server leaves; none over
            loopback.
        bytes: Bytes in both directions.
        rounds: Sends by the client that were followed by a wait.
    """

    phase: str
    name: str
    protocol: str
    start: float
    seconds: float
    server_start: float
    server: float
    client: float
    own: Stretches
    left: Stretches
    way: Stretches
    bytes: float
    rounds: float


@dataclass(frozen=True, slots=True)
class _Step:
    """What is measured of a step, the mean of several predictions."""

    key: tuple[str, str, str]
    start: float
    seconds: float
    server: float
    client: float
    bytes: float
    rounds: float


def spans(predictions: Sequence[Prediction], computed: Computed, network: Network) -> list[Span]:
    """The steps of predictions, phase by phase, each the mean of all; the set-up has none.

    Args:
        predictions: All that the server computed for.
        computed: What it computed for all of them together.
        network: The network between the parties.
    """
    found: list[Span] = []
    for phase in ("offline", "online"):
        steps = _steps(predictions, computed, phase)
        starts = _server_starts(steps)
        busy = [(start, step.server) for start, step in zip(starts, steps, strict=True)]
        for step, start in zip(steps, starts, strict=True):
            own, free = _split(_without((step.start, step.seconds), busy), step.client)
            way = min(_over(network, step.bytes, step.rounds), total(free))
            left, ways = _split(free, total(free) - way)
            found.append(
                Span(
                    *step.key,
                    start=step.start,
                    seconds=step.seconds,
                    server_start=start,
                    server=step.server,
                    client=step.client,
                    own=own,
                    left=left,
                    way=ways,
                    bytes=step.bytes,
                    rounds=step.rounds,
                )
            )
    return found


def total(stretches: Stretches) -> float:
    """How long stretches are together."""
    return sum(seconds for _, seconds in stretches)


def _steps(predictions: Sequence[Prediction], computed: Computed, phase: str) -> list[_Step]:
    """The steps of a phase; those of one name and protocol are one."""
    sums: dict[tuple[str, str, str], list[float]] = {}
    for layer in (layer for prediction in predictions for layer in prediction.layers if layer.phase == phase):
        summed = sums.setdefault((phase, layer.name, layer.protocol), [0.0] * 4)
        for index, value in enumerate((layer.seconds, layer.computing, layer.bytes, layer.rounds)):
            summed[index] += value
    steps: list[_Step] = []
    start = 0.0
    for key, summed in sums.items():
        seconds, server, *others = (
            value / len(predictions) for value in (summed[0], computed.get(key, 0.0), *summed[1:])
        )
        steps.append(_Step(key, start, seconds, server, *others))
        start += seconds
    return steps


def _server_starts(steps: Sequence[_Step]) -> list[float]:
    """When the server may have begun each step: one after the other, as late as the client's steps and end allow."""
    starts: list[float] = []
    done = 0.0
    for step in steps:
        starts.append(max(done, step.start, step.start + step.seconds - step.server))
        done = starts[-1] + step.server
    end = sum(step.seconds for step in steps)
    for index in reversed(range(len(steps))):
        end = starts[index] = max(min(starts[index], end - steps[index].server), 0.0)
    return starts


def _without(stretch: tuple[float, float], busy: Iterable[tuple[float, float]]) -> Stretches:
    """What of a stretch no other one covers; these are in order."""
    free: Stretches = []
    start, end = stretch[0], stretch[0] + stretch[1]
    for begin, seconds in busy:
        if begin > start:
            free.append((start, min(begin, end) - start))
        start = max(start, begin + seconds)
        if start >= end:
            break
    else:
        free.append((start, end - start))
    return [part for part in free if part[1] > 0]


def _split(stretches: Stretches, first: float) -> tuple[Stretches, Stretches]:
    """The stretches up to so many seconds of them, and the others."""
    before: Stretches = []
    behind: Stretches = []
    for start, seconds in stretches:
        taken = min(first, seconds)
        first -= taken
        before.append((start, taken))
        behind.append((start + taken, seconds - taken))
    return before, behind


def _over(network: Network, transferred: float, rounds: float) -> float:
    """Seconds that bytes and rounds take over a network that is emulated."""
    if network.profile is None:
        return 0.0
    bandwidth, round_trip = network.profile
    return 8 * transferred / bandwidth + rounds * round_trip
