"""What papers and their public code give for the benchmarks, by mode and name.

[JVC18] C. Juvekar, V. Vaikuntanathan, A. Chandrakasan: GAZELLE, USENIX Security 2018,
https://arxiv.org/abs/1801.05507. Its machines were two AWS c4.xlarge (Xeon E5-2666 v3, 2.9 GHz) in one zone. The times
of linear layers are the server's online computation; set-up times are those of a model, not of a prediction, and have
no counterpart here. Its public code is https://github.com/chiraag/gazelle_mpc, run once on two cores of an AMD Zen 5
for these figures.

[LXDGWWW18] S. Li, K. Xue, C. Ding, X. Gao, D. S. L. Wei, T. Wan, F. Wu: FALCON, https://arxiv.org/abs/1811.08257. Its
machines were two with an Intel i5-7500 (3.4 GHz) on a local network. Its set-up is done for each prediction, so it
stands beside our offline phase; that of linear layers transforms the filters too. Times of linear layers are the
server's.

[HLHD22] Z. Huang, W. Lu, C. Hong, J. Ding: Cheetah, USENIX Security 2022, https://eprint.iacr.org/2022/207.

[LLHJ20] Q. Lou, W. Lu, C. Hong, L. Jiang: Falcon: Fast Spectral Inference on Encrypted Data, NeurIPS 2020. Its machine
was an Azure B8ms (8 cores).

[LMRWB22] M. Lam, M. Mitzenmacher, V. J. Reddi, G. Wei, D. Brooks: Tabula, https://arxiv.org/abs/2203.02833. Its
machines were two AWS c5.4xlarge (Xeon Platinum, 3 GHz, 8 cores) in California and Oregon, with 5 to 10 Gbit/s between
them. All its figures are of the online phase; circuits are its own implementation of Delphi. Its public code is
https://github.com/tabulainference/tabula.
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


def paper(mode: str, name: str, network: str = "loopback") -> Published | None:
    """What the mode's paper gives for a benchmark, over a network of this name where it has one."""
    return _OVER.get((mode, name, network)) or _PAPERS.get(mode, {}).get(name)


def public_code(mode: str, name: str) -> Published | None:
    """What the public code of the mode's paper gives."""
    return _PUBLIC_CODE.get(mode, {}).get(name)


def _gazelle(place: str, clock: str, **phases: Figures) -> Published:
    return Published("GAZELLE", place, clock, phases)


def _falcon(place: str, clock: str, **phases: Figures) -> Published:
    return Published("FALCON", place, clock, phases)


def _prepared(operation: str, offline: tuple[float, float], online: tuple[float, float], count: int) -> Published:
    """An operation of table 3 in milliseconds and megabytes, and data preprocessing of its inputs.

    Ours are from shares to shares, which the table's operations are not: it gives preprocessing a row of its own.
    """
    setup, later = _PREPARATION[count]
    phases = {
        phase: ((before[0] + own[0]) / 1e3, round((before[1] + own[1]) * 1e6))
        for phase, before, own in (("offline", setup, offline), ("online", later, online))
    }
    return _falcon(f"table 3, data preprocessing{operation}", "wall", **phases)


#: Set-up and online milliseconds and megabytes of data preprocessing, by number of inputs.
_PREPARATION = {1000: ((32.3, 4.82), (14.5, 1.45)), 10_000: ((265.5, 48.2), (136.4, 14.9))}


def _softmax(setup: float, online: float, setup_bytes: float, online_bytes: float) -> Published:
    """A row of table 4: milliseconds, then bytes."""
    return _falcon("table 4", "wall", offline=(setup / 1e3, setup_bytes), online=(online / 1e3, online_bytes))


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

#: Table 2 does not say how its convolutions are padded; its transforms are as large as the image.
_SMALL_IMAGE = _falcon("table 2", "server", offline=(3.1e-3, None), online=(0.25e-3, None))
_DEEP_IMAGE = _falcon("table 2", "server", offline=(615e-3, None), online=(51.2e-3, None))

_FALCON = {
    "fc_2048x1": _falcon("table 2", "server", offline=(1.2e-3, None), online=(0.1e-3, None)),
    "fc_1024x16": _falcon("table 2", "server", offline=(9.6e-3, None), online=(0.8e-3, None)),
    "conv_28x28x1_5x5x5_inner": _SMALL_IMAGE,
    "conv_28x28x1_5x5x5": _SMALL_IMAGE,
    "conv_16x16x128_3x3x128_inner": _DEEP_IMAGE,
    "conv_16x16x128_3x3x128": _DEEP_IMAGE,
    "rescale_1000": _prepared("", (0, 0), (0, 0), 1000),
    "rescale_10000": _prepared("", (0, 0), (0, 0), 10_000),
    "relu_1000": _prepared(", ReLU", (9.82, 1.95), (4.20, 0.01), 1000),
    "relu_10000": _prepared(", ReLU", (96.2, 19.2), (43.2, 0.11), 10_000),
    "maxpool_2x2_of_1000": _prepared(", max-pool", (12.1, 1.94), (5.6, 0.01), 1000),
    "maxpool_2x2_of_10000": _prepared(", max-pool", (100, 20.0), (45.5, 0.12), 10_000),
    "maxpool_relu_2x2_of_1000": _prepared(", optimized max-pool and ReLU", (12.5, 2.44), (5.2, 0.02), 1000),
    "maxpool_relu_2x2_of_10000": _prepared(", optimized max-pool and ReLU", (134.3, 24.4), (54.4, 0.14), 10_000),
    "softmax_10_2": _softmax(8.56, 3.89, 0.996e6, 0.0294e6),
    "softmax_100_2": _softmax(58.7, 24.5, 9.96e6, 0.294e6),
    "softmax_1000_2": _softmax(574.8, 254.6, 99.6e6, 29.4e6),
    "softmax_10_4": _softmax(8.66, 4.02, 0.996e6, 0.0294e6),
    "softmax_100_4": _softmax(60.3, 26.7, 9.96e6, 0.294e6),
    "softmax_1000_4": _softmax(588.0, 257.6, 99.6e6, 29.4e6),
    "mnist_d": _falcon("table 5", "wall", offline=(0.63, 77.0e6), online=(0.21, 15.5e6), total=(0.84, 92.5e6)),
    "cifar10_minionn": _falcon("table 5", "wall", offline=(7.20, 1194e6), online=(2.88, 265e6), total=(10.1, 1459e6)),
}

#: ResNet-50 took less than 2.5 minutes on a network between two regions, with rescales that are off by one now and
#: then. OPAF's functions live in mode cheetah, and so do its recurrent networks.
_CHEETAH = {
    "resnet50": Published("Cheetah", "abstract (upper bound, WAN)", "wall", {"total": (150.0, 2.3e9)}),
    "fastgrnn_google30": Published("OPAF", "table XI, on a LAN", "wall", {"total": (8.27, 78.2e6)}),
}

#: What papers measured over slower networks, by mode, benchmark and our network that is like theirs.
_OVER = {
    ("cheetah", "fastgrnn_google30", "wan"): Published(
        "OPAF", "table XI, on a WAN", "wall", {"total": (340.0, 78.2e6)}
    ),
}


def _tabula(place: str, seconds: float, transferred: float) -> Published:
    return Published("Tabula", place, "wall", {"online": (seconds, transferred)})


#: Table 2 has bytes and table 4 seconds; of VGG-16 the first counts 276K ReLUs and the second 284.7K.
_TABULA = {
    "relu_100000": _tabula("tables 1 and 3, 100,000 times", 0.055, 1.6e6),
    "lenet": _tabula("tables 2 and 4, 58K ReLUs", 0.29, 3.5e6),
    "resnet32": _tabula("tables 2 and 4, 303K ReLUs", 0.97, 14e6),
    "vgg16": _tabula("tables 2 and 4, 276K and 284.7K ReLUs", 0.67, 12.1e6),
    "cifar100_tabula_vgg16": _tabula("tables 2 and 4, 276K and 284.7K ReLUs", 0.67, 12.1e6),
    "cifar100_tabula_resnet34": _tabula("tables 2 and 4, 1.47M ReLUs", 1.85, 59.5e6),
}

#: The server's time on eight cores; bytes of both messages, of which the first has a ciphertext for each tap.
_SPECTRAL = {
    **dict.fromkeys(
        ("mnist_b", "mnist_cryptonets"),
        Published("Falcon (spectral)", "table 7", "server", {"online": (1.2, 51e6), "total": (1.2, 51e6)}),
    ),
    "lola_cifar": Published(
        "Falcon (spectral)", "table 8", "server", {"online": (107.0, 210e6), "total": (107.0, 210e6)}
    ),
}

# Predictions in mode auto name the mode that the planner chose.
_PAPERS: Mapping[str, Mapping[str, Published]] = {
    "gazelle": _GAZELLE,
    "falcon": _FALCON,
    "cheetah": _CHEETAH,
    "tabula": _TABULA,
    "spectral": _SPECTRAL,
}
_PUBLIC_CODE: Mapping[str, Mapping[str, Published]] = {"gazelle": _GAZELLE_CODE}
