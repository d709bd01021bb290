"""The benchmarks by suite and name.

A layer or an activation stands in a network as small as it can be; its own cost is that of the steps that
`Case.steps` names. What papers give for them is in `lanner.benchmarks.published`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner.model import Model
from lanner.options import INTERACTIVE_MODES, Protocols

#: Compiles a model for protocols and returns it with one sample, or with several that are asked for together.
Builder = Callable[[Protocols], tuple[Model, NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark.

    Attributes:
        suite: layers, activations, networks, trees or transformers.
        name: What is measured.
        build: Makes the model.
        steps: How the names of the steps that count begin; empty for the whole prediction.
        weights: ``trained`` or ``random``.
        modes: The modes that it is for.
        max_memory: What either party may hold for it; None for what is usual.
    """

    suite: str
    name: str
    build: Builder
    steps: tuple[str, ...] = ()
    weights: str = "random"
    modes: tuple[str, ...] = INTERACTIVE_MODES
    max_memory: str | None = None


def cases(suite: str, mode: str, data: Path | None = None) -> list[Case]:
    """The benchmarks of a suite for a mode.

    Args:
        suite: layers, activations, networks, trees, transformers, or all but the last, which takes long.
        mode: One of `lanner.options.MODES`.
        data: A folder with trained networks that do not come with the package.
    """
    every = (*_layers(), *_activations(), *_networks(data), *_trees())
    asked = every if suite == "all" else [case for case in (*every, *_transformers()) if case.suite == suite]
    return [case for case in asked if mode in case.modes]


def _layers() -> list[Case]:
    # Deferred, as everything that needs onnx.
    from lanner.benchmarks.graphs import convolution, dense, inner_convolution

    convolutions: dict[str, Builder] = {
        "conv_28x28x1_5x5x5_inner": partial(inner_convolution, 1, 28, 5, 5),
        "conv_16x16x128_3x3x128_inner": partial(inner_convolution, 128, 16, 3, 128),
        "conv_28x28x1_5x5x5": partial(convolution, 1, 28, 5, 5, 1),
        "conv_28x28x1_5x5x5_stride2": partial(convolution, 1, 28, 5, 5, 2),
        "conv_16x16x128_1x1x128": partial(convolution, 128, 16, 1, 128, 1),
        "conv_32x32x32_3x3x32": partial(convolution, 32, 32, 3, 32, 1),
        "conv_16x16x128_3x3x128": partial(convolution, 128, 16, 3, 128, 1),
    }
    sizes = ((2048, 1), (1024, 128), (1024, 16), (128, 16))
    return [
        *(Case("layers", f"fc_{n}x{m}", partial(dense, n, m), ("MatMul",)) for n, m in sizes),
        *(Case("layers", name, build, ("Conv",)) for name, build in convolutions.items()),
    ]


def _activations() -> list[Case]:
    from lanner.benchmarks.graphs import (
        PIXELS,
        SIDE,
        arg_max,
        max_pool,
        relu,
        relu_max_pool,
        rescale,
        softmax,
        square,
        wide_relu,
    )

    counts = (1000, 10_000)
    # GAZELLE's table counts what a pool makes, FALCON's what it takes.
    pools = (
        *((f"maxpool_2x2_{count}", max_pool, count // PIXELS, 2 * SIDE) for count in counts),
        *((f"maxpool_2x2_of_{count}", max_pool, count // PIXELS, SIDE) for count in counts),
        *((f"maxpool_relu_2x2_of_{count}", relu_max_pool, count // PIXELS, SIDE) for count in counts),
    )
    return [
        Case("activations", "square_2048", partial(square, 2048), ("Square",)),
        *(Case("activations", f"rescale_{count}", partial(rescale, count), ("Conv/rescale",)) for count in counts),
        *(Case("activations", f"relu_{count}", partial(relu, count), ("Relu",)) for count in counts),
        Case("activations", "relu_100000", partial(wide_relu, 100_000), ("Relu",), modes=("cheetah", "tabula")),
        *(
            Case("activations", name, partial(pool, channels, side), ("MaxPool", "Relu"))
            for name, pool, channels, side in pools
        ),
        *(Case("activations", f"argmax_{count}", partial(arg_max, count), ("output",)) for count in (10, 1000)),
        *(
            Case("activations", f"softmax_{classes}_{digits}", partial(softmax, classes, digits), ("output",))
            for digits in (2, 4)
            for classes in (10, 100, 1000)
        ),
    ]


def _trees() -> list[Case]:
    from lanner.benchmarks.trees import ENSEMBLES

    many = partial(ENSEMBLES["trees_xgboost_100x6"], rows=1000)
    return [
        *(Case("trees", name, build) for name, build in ENSEMBLES.items()),
        # It takes a minute or so.
        Case("trees", "trees_xgboost_100x6_1000_rows", many, modes=("auto",)),
    ]


def _transformers() -> list[Case]:
    from lanner.benchmarks.transformers import TRANSFORMERS

    return [
        Case("transformers", name, build, modes=("cheetah",), max_memory="8GiB") for name, build in TRANSFORMERS.items()
    ]


def _networks(data: Path | None) -> list[Case]:
    from lanner.benchmarks.drawn import (
        lenet_graph,
        resnet34_graph,
        tabula_resnet34_graph,
        tabula_vgg16_graph,
        vgg16_graph,
    )
    from lanner.benchmarks.networks import (
        cryptonets,
        delphi_resnet32,
        drawn,
        embedded,
        lola_cifar,
        minionn,
        pneumonia,
        resnet,
    )

    def case(
        name: str,
        folder: str,
        build: Callable[[Path | None, Protocols], tuple[Model, NDArray[np.float32]]],
        modes: tuple[str, ...] = INTERACTIVE_MODES,
    ) -> Case:
        trained = None if data is None or not (data / "models" / folder).is_dir() else data / "models" / folder
        weights = "random" if trained is None else "trained"
        return Case("networks", name, partial(build, trained), weights=weights, modes=modes)

    squares, checked = (*INTERACTIVE_MODES, "spectral"), (*INTERACTIVE_MODES, "hardened")
    small = {"mnist_a": squares, "mnist_b": squares, "mnist_c": INTERACTIVE_MODES, "mnist_d": checked}
    large = ("cheetah", "tabula")
    return [
        *(
            Case("networks", name, partial(embedded, name), weights="trained", modes=modes)
            for name, modes in small.items()
        ),
        Case("networks", "pneumonia", partial(pneumonia, data), weights="trained"),
        case("mnist_cryptonets", "mnist_cryptonets", cryptonets, ("spectral",)),
        Case("networks", "lola_cifar", partial(lola_cifar, data), weights="trained", modes=("spectral",)),
        case("cifar10_minionn", "cifar10_delphi_minionn_relu", minionn, checked),
        case("resnet20", "cifar10_resnet20", partial(resnet, 3), checked),
        case("resnet32", "cifar10_resnet32", partial(resnet, 5)),
        case("cifar100_delphi_resnet32", "cifar100_delphi_resnet32", delphi_resnet32, large),
        Case("networks", "lenet", partial(drawn, lenet_graph)),
        Case("networks", "vgg16", partial(drawn, vgg16_graph), modes=large),
        Case("networks", "resnet34", partial(drawn, resnet34_graph), modes=large),
        Case("networks", "cifar100_tabula_vgg16", partial(drawn, tabula_vgg16_graph), modes=("tabula",)),
        Case("networks", "cifar100_tabula_resnet34", partial(drawn, tabula_resnet34_graph), modes=("tabula",)),
    ]
