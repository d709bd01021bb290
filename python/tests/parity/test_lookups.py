"""Secure runs of whole networks in mode tabula, image by image, against the fixed-point reference."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from bench.accuracy import accuracies, on_both_parties
from helpers.data import DATA
from lanner.benchmarks.drawn import lenet_graph, tabula_resnet34_graph, tabula_vgg16_graph
from lanner.benchmarks.graphs import Drawn
from lanner.benchmarks.networks import drawn
from lanner.options import Protocols

#: How many images of every network, instead of the few that each test has: 50 take an hour or more.
IMAGES = int(os.environ.get("LANNER_IMAGES", "0"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "images"), [("mnist_d", 50), ("cifar10_minionn", 2), ("resnet32", 2), ("cifar100_delphi_resnet32", 1)]
)
def test_every_score_of_trained_networks_equals_the_reference(name: str, images: int) -> None:
    if not (DATA / "models").is_dir():
        pytest.skip(f"there are no trained networks in {DATA}; set LANNER_DATA to a folder that holds models/")
    count = IMAGES or images
    (document,) = accuracies("tabula", DATA, count, secure=count, only=(name,))
    assert document["overflows"] == 0
    assert document["secure"] == {"images": count, "equal": count}


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "images"), [(lenet_graph, 50), (tabula_vgg16_graph, 1), (tabula_resnet34_graph, 1)])
def test_every_score_of_drawn_networks_equals_the_reference(draw: Callable[[], Drawn], images: int) -> None:
    model, sample = drawn(draw, Protocols("tabula"))
    x = np.random.default_rng(7).random((IMAGES or images, *sample.shape), dtype=np.float32)
    assert on_both_parties(model, x) == {"images": len(x), "equal": len(x)}
