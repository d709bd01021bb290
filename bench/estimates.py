"""How close estimates come to measured predictions, and how mode auto does beside the best single mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanner.benchmarks.cases import Case
from lanner.benchmarks.measure import measure
from lanner.kernel_times import KernelTimes
from lanner.network import Network
from lanner.options import Protocols

#: The phases whose seconds are compared; a set-up is that of the first contact.
PHASES = ("offline", "online")

#: An estimate is close within this factor.
FACTOR = 1.5

#: Seconds below which a difference counts as if there were so many: what a scheduler decides.
FLOOR = 1e-3

#: Mode auto may take so much of the best single mode's time.
SLOWER = 1.1

#: Predictions that share a set-up, as mode auto counts.
SHARING = 16


@dataclass(frozen=True, slots=True)
class Closeness:
    """An estimate beside what was measured.

    Attributes:
        name: The benchmark.
        mode: The mode asked for.
        network: What is between the parties.
        phase: One of `PHASES`.
        estimated: Seconds.
        measured: Seconds, the median.
        latency: Seconds of a prediction with its share of the set-up, measured.
    """

    name: str
    mode: str
    network: str
    phase: str
    estimated: float
    measured: float
    latency: float

    @property
    def factor(self) -> float:
        """How far apart they are, 1 or more."""
        a, b = max(self.estimated, FLOOR), max(self.measured, FLOOR)
        return max(a / b, b / a)

    def document(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return {**asdict(self), "factor": self.factor}


def compare(
    case: Case, mode: str, network: Network, repeat: int | None, kernel_times: KernelTimes
) -> Iterator[Closeness]:
    """Estimate and measure a benchmark in a mode over a network; mode auto chooses by the table of the estimates.

    Raises:
        LannerError: If the mode does not take it, or a result is wrong.
    """
    protocols = Protocols(mode, network=network, kernel_times=kernel_times)
    found = case.build(protocols)[0].estimate(network, kernel_times=kernel_times)
    seconds = {row.phase: row.seconds for row in measure(case, protocols, [network], repeat)}
    latency = seconds["setup"] / SHARING + seconds["offline"] + seconds["online"]
    for phase in PHASES:
        estimated = getattr(found, phase).seconds
        yield Closeness(case.name, mode, network.name, phase, estimated, seconds[phase], latency)


def beside_best(rows: Sequence[Closeness]) -> dict[tuple[str, str], float]:
    """For each benchmark and network, what mode auto takes of the time of the best single mode."""
    taken: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        taken.setdefault((row.name, row.network), {})[row.mode] = row.latency
    return {
        place: by_mode["auto"] / min(seconds for mode, seconds in by_mode.items() if mode != "auto")
        for place, by_mode in taken.items()
        if "auto" in by_mode and len(by_mode) > 1
    }
