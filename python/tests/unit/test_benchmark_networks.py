"""The networks that benchmarks draw with random weights."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import pytest

from lanner.benchmarks.cases import cases
from lanner.benchmarks.graphs import Drawn
from lanner.benchmarks.networks import minionn_graph, resnet34_graph, resnet_graph, vgg16_graph


def layers_of(drawn: Drawn) -> list[tuple[str, tuple[int, ...]]]:
    """Operator and shape of the weights of each layer."""
    finished = drawn[0].finish(drawn[1])
    nodes: list[dict[str, Any]] = json.loads(finished.document)["nodes"]
    found = [(*node["op"].items(),) for node in nodes if isinstance(node["op"], dict)]
    return [
        (operator, finished.tensors[members["weight"]].shape) for ((operator, members),) in found if "weight" in members
    ]


@pytest.mark.parametrize(
    ("drawn", "convolutions", "parameters", "outputs"),
    [
        (minionn_graph(), 7, 164_544, 10),
        (resnet_graph(5), 31, 461_872, 10),
        (vgg16_graph(), 13, 14_761_664, 100),
        (resnet34_graph(), 36, 21_311_168, 100),
    ],
)
def test_networks_have_the_layers_of_their_papers(
    drawn: Drawn, convolutions: int, parameters: int, outputs: int
) -> None:
    layers = layers_of(drawn)
    assert [operator for operator, _ in layers] == ["Conv"] * convolutions + ["MatMul"]
    assert sum(prod(shape) for _, shape in layers) == parameters
    assert drawn[1].shape == (outputs,)


def test_large_networks_are_for_the_mode_that_carries_them() -> None:
    large = {"vgg16", "resnet34"}
    assert large <= {case.name for case in cases("networks", "cheetah")}
    assert not large & {case.name for case in cases("networks", "gazelle")}
