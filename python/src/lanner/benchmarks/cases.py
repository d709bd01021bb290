"""The benchmarks by suite and name, with the figures that the GAZELLE paper gives for them.

A layer or an activation stands in a network as small as it can be; its own cost is what the protocols named by
`Case.protocols` took. Figures: [JVC18] C. Juvekar, V. Vaikuntanathan, A. Chandrakasan: GAZELLE, USENIX Security 2018,
https://arxiv.org/abs/1801.05507, tables VIII (hybrid), X (output rotations), XI and XII.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner.model import Model

#: Seconds and bytes that a paper gives for a phase; None where it gives none.
Figures = tuple[float | None, float | None]

#: Compiles a model for a mode and returns it with one sample.
Builder = Callable[[str], tuple[Model, NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark.

    Attributes:
        suite: layers, activations or networks.
        name: What is measured.
        weights: ``trained`` or ``random``.
        build: Makes the model.
        protocols: Prefixes of the protocols that count; empty for the whole prediction.
        paper: What the paper gives, by phase.
    """

    suite: str
    name: str
    weights: str
    build: Builder
    protocols: tuple[str, ...]
    paper: dict[str, Figures]


def cases(suite: str, data: Path | None = None) -> list[Case]:
    """The benchmarks of a suite, or of all.

    Args:
        suite: layers, activations, networks or all.
        data: A folder with trained networks that do not come with the package.
    """
    return [case for case in (*_layers(), *_activations(), *_networks(data)) if suite in (case.suite, "all")]


def _layers() -> list[Case]:
    # Deferred, as everything that needs onnx.
    from lanner.benchmarks.graphs import convolution, dense

    builders: list[tuple[str, Builder, float]] = [
        ("conv_28x28x1_5x5x5", partial(convolution, 1, 28, 5, 5), 9.2e-3),
        ("conv_16x16x128_1x1x128", partial(convolution, 128, 16, 1, 128), 110e-3),
        ("conv_32x32x32_3x3x32", partial(convolution, 32, 32, 3, 32), 195e-3),
        ("fc_2048x1", partial(dense, 2048, 1), 8.0e-3),
        ("fc_1024x128", partial(dense, 1024, 128), 16.2e-3),
        ("fc_1024x16", partial(dense, 1024, 16), 7.8e-3),
        ("fc_128x16", partial(dense, 128, 16), 5.3e-3),
    ]
    # The paper's set-up time is that of a model, not of a prediction, and has no counterpart here.
    return [
        Case("layers", name, "random", build, ("gazelle.",), {"online": (online, None)})
        for name, build, online in builders
    ]


def _activations() -> list[Case]:
    from lanner.benchmarks.graphs import arg_max, max_pool, relu

    circuits = ("yao.", "share.remask")
    relu_figures: dict[int, dict[str, Figures]] = {
        1000: {"offline": (89e-3, 5.43e6), "online": (201e-3, 1.68e6)},
        10_000: {"offline": (551e-3, 54.3e6), "online": (1.307, 16.8e6)},
    }
    pool_figures: dict[int, dict[str, Figures]] = {
        1000: {"offline": (164e-3, 15.6e6), "online": (426e-3, 8.39e6)},
        10_000: {"offline": (1.413, 156e6), "online": (3.669, 83.9e6)},
    }
    return [
        *(
            Case("activations", f"relu_{count}", "random", partial(relu, count), circuits, figures)
            for count, figures in relu_figures.items()
        ),
        *(
            Case("activations", f"maxpool_2x2_{count}", "random", partial(max_pool, count), circuits, figures)
            for count, figures in pool_figures.items()
        ),
        *(
            Case("activations", f"argmax_{count}", "random", partial(arg_max, count), circuits, {})
            for count in (10, 1000)
        ),
    ]


def _networks(data: Path | None) -> list[Case]:
    from lanner.benchmarks.graphs import embedded, minionn

    figures: dict[str, dict[str, Figures]] = {
        "mnist_c": {"offline": (0.15, 5.9e6), "online": (0.05, 2.1e6)},
        "mnist_d": {"offline": (0.481, 47.5e6), "online": (0.33, 22.5e6)},
    }
    small = [Case("networks", name, "trained", partial(embedded, name), (), paper) for name, paper in figures.items()]
    trained = None if data is None else data / "models" / "cifar10_delphi_minionn_relu" / "model.onnx"
    if trained is not None and not trained.is_file():
        trained = None
    large = Case(
        "networks",
        "cifar10_minionn",
        "random" if trained is None else "trained",
        partial(minionn, trained),
        (),
        {"offline": (9.34, 940e6), "online": (3.56, 296e6)},
    )
    return [*small, large]
