"""What papers and their public code give for the benchmarks, by mode and name.

[JVC18] C. Juvekar, V. Vaikuntanathan, A. Chandrakasan: GAZELLE, USENIX Security 2018,
https://arxiv.org/abs/1801.05507. Its machines were two AWS c4.xlarge (Xeon E5-2666 v3, 2.9 GHz) in one zone. The times
of linear layers are the server's online computation; set-up times are those of a model, not of a prediction, and have
no counterpart here. Its public code is https://github.com/chiraag/gazelle_mpc, run once on two cores of an AMD Zen 5
for these figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Seconds and bytes; None where the source does not give them.
Figures = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Published:
    """What a source gives for a benchmark.

    Attributes:
        source: The paper or the code.
        place: The table or the program.
        clock: ``server`` for the server's computation alone, ``wall`` for all that a client waits for.
        phases: The figures by phase: offline, online, total.
    """

    source: str
    place: str
    clock: str
    phases: Mapping[str, Figures]

    def document(self, phase: str) -> dict[str, Any] | None:
        """The figures of a phase, for a row; None if there are none."""
        if phase not in self.phases:
            return None
        seconds, transferred = self.phases[phase]
        return {
            "source": self.source,
            "place": self.place,
            "clock": self.clock,
            "seconds": seconds,
            "bytes": transferred,
        }


def paper(mode: str, name: str) -> Published | None:
    """What the mode's paper gives for a benchmark."""
    return _PAPERS.get(mode, {}).get(name)


def public_code(mode: str, name: str) -> Published | None:
    """What the public code of the mode's paper gives."""
    return _PUBLIC_CODE.get(mode, {}).get(name)


def _gazelle(place: str, clock: str, **phases: Figures) -> Published:
    return Published("GAZELLE", place, clock, phases)


def _code(clock: str = "server", **phases: Figures) -> Published:
    return Published("GAZELLE's public code", "", clock, phases)


#: Table X has an algorithm that rotates inputs and one that rotates outputs: here is the faster of the two.
_GAZELLE = {
    "fc_2048x1": _gazelle("table VIII, hybrid", "server", online=(8.0e-3, None)),
    "fc_1024x128": _gazelle("table VIII, hybrid", "server", online=(16.2e-3, None)),
    "fc_1024x16": _gazelle("table VIII, hybrid", "server", online=(7.8e-3, None)),
    "fc_128x16": _gazelle("table VIII, hybrid", "server", online=(5.3e-3, None)),
    "conv_28x28x1_5x5x5_stride2": _gazelle("table X, output rotations", "server", online=(9.2e-3, None)),
    "conv_16x16x128_1x1x128": _gazelle("table X, input rotations", "server", online=(107e-3, None)),
    "conv_32x32x32_3x3x32": _gazelle("table X, output rotations", "server", online=(195e-3, None)),
    "conv_16x16x128_3x3x128": _gazelle("table X, output rotations", "server", online=(704e-3, None)),
    "square_2048": _gazelle("table XI", "wall", offline=(0.5e-3, 0.0), online=(1.4e-3, 0.093e6)),
    "relu_1000": _gazelle("table XI", "wall", offline=(89e-3, 5.43e6), online=(201e-3, 1.68e6)),
    "relu_10000": _gazelle("table XI", "wall", offline=(551e-3, 54.3e6), online=(1.307, 16.8e6)),
    "maxpool_2x2_1000": _gazelle("table XI", "wall", offline=(164e-3, 15.6e6), online=(426e-3, 8.39e6)),
    "maxpool_2x2_10000": _gazelle("table XI", "wall", offline=(1.413, 156e6), online=(3.669, 83.9e6)),
    "mnist_a": _gazelle("table XII", "wall", offline=(0.0, 0.0), online=(0.03, 0.5e6), total=(0.03, 0.5e6)),
    "mnist_b": _gazelle("table XII", "wall", offline=(0.0, 0.0), online=(0.03, 0.5e6), total=(0.03, 0.5e6)),
    "mnist_c": _gazelle("table XII", "wall", offline=(0.15, 5.9e6), online=(0.05, 2.1e6), total=(0.20, 8.0e6)),
    "mnist_d": _gazelle("table XII", "wall", offline=(0.481, 47.5e6), online=(0.33, 22.5e6), total=(0.81, 70.0e6)),
    "cifar10_minionn": _gazelle(
        "table XIII", "wall", offline=(9.34, 940e6), online=(3.56, 296e6), total=(12.9, 1236e6)
    ),
}

_GAZELLE_CODE = {
    "fc_2048x1": _code(online=(5.1e-3, None)),
    "fc_1024x128": _code(online=(9.7e-3, None)),
    "fc_1024x16": _code(online=(3.6e-3, None)),
    "fc_128x16": _code(online=(3.2e-3, None)),
    "conv_28x28x1_5x5x5": _code(online=(6.4e-3, None)),
    "conv_32x32x32_3x3x32": _code(online=(107e-3, None)),
    "conv_16x16x128_3x3x128": _code(online=(366e-3, 1.57e6)),
    "relu_10000": _code("wall", offline=(None, 57e6), online=(None, 17.6e6)),
}

# The planner's choice is among this mode's protocols.
_PAPERS: Mapping[str, Mapping[str, Published]] = {"gazelle": _GAZELLE}
_PUBLIC_CODE: Mapping[str, Mapping[str, Published]] = {"gazelle": _GAZELLE_CODE}
