"""The benchmarks of suites that take minutes for each network, or a folder of data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench import imagenet, recurrent
from lanner.benchmarks.cases import Case
from lanner.benchmarks.cases import cases as of_package


def cases(suite: str, mode: str, data: Path | None = None) -> list[Case]:
    """The benchmarks of a suite for a mode.

    Args:
        suite: imagenet or recurrent, or one that `lanner.benchmarks.cases` has.
        mode: One of `lanner.options.INTERACTIVE_MODES`.
        data: A folder with trained networks.
    """
    if suite == "imagenet":
        return [case for case in _imagenet() if mode in case.modes]
    if suite == "recurrent":
        return [case for case in _recurrent(data) if mode in case.modes]
    return of_package(suite, mode, data)


def _recurrent(data: Path | None) -> list[Case]:
    """Trained networks of up to 99 steps, which a folder of data holds."""
    folder = data or Path()
    return [
        Case("recurrent", name, partial(recurrent.build_recurrent, name, folder), weights="trained")
        for name in recurrent.NETWORKS
    ]


def _imagenet() -> list[Case]:
    """Networks on images of 224x224 pixels, each of which takes minutes."""
    return [
        Case(
            "imagenet",
            name,
            partial(imagenet.build_imagenet, name),
            modes=("cheetah", "auto"),
            max_memory=imagenet.MEMORY,
        )
        for name in imagenet.NETWORKS
    ]
