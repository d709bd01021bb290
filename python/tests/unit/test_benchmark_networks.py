"""The networks that benchmarks draw with random weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import pytest

from lanner.benchmarks.cases import cases
from lanner.benchmarks.drawn import (
    delphi_resnet32_graph,
    lenet_graph,
    minionn_graph,
    resnet34_graph,
    resnet_graph,
    tabula_resnet34_graph,
    tabula_vgg16_graph,
    vgg16_graph,
)
from lanner.benchmarks.graphs import Drawn
from lanner.onnx.builder import GraphBuilder, Wire


def layers_of(drawn: Drawn) -> list[tuple[str, tuple[int, ...]]]:
    """Operator and shape of the weights of each layer."""
    finished = drawn[0].finish(drawn[1])
    nodes: list[dict[str, Any]] = json.loads(finished.document)["nodes"]
    found = [(*node["op"].items(),) for node in nodes if isinstance(node["op"], dict)]
    return [
        (operator, finished.tensors[members["weight"]].shape) for ((operator, members),) in found if "weight" in members
    ]


@pytest.mark.parametrize(
    ("drawn", "convolutions", "dense", "parameters", "outputs"),
    [
        (lenet_graph(), 2, 2, 1_199_648, 10),
        (minionn_graph(), 7, 1, 164_544, 10),
        (resnet_graph(5), 31, 1, 461_872, 10),
        (vgg16_graph(), 13, 1, 14_761_664, 100),
        (tabula_vgg16_graph(), 13, 3, 33_994_432, 100),
        (resnet34_graph(), 36, 1, 21_311_168, 100),
        (tabula_resnet34_graph(), 36, 1, 21_311_168, 100),
    ],
)
def test_networks_have_the_layers_of_their_papers(
    drawn: Drawn, convolutions: int, dense: int, parameters: int, outputs: int
) -> None:
    layers = layers_of(drawn)
    assert [operator for operator, _ in layers] == ["Conv"] * convolutions + ["MatMul"] * dense
    assert sum(prod(shape) for _, shape in layers) == parameters
    assert drawn[1].shape == (outputs,)


@pytest.mark.parametrize(
    ("draw", "relus"),
    [
        (lenet_graph, 58_624),
        (partial(resnet_graph, 5), 303_104),
        (delphi_resnet32_graph, 303_104),
        (vgg16_graph, 276_480),
        (tabula_vgg16_graph, 284_672),
        (resnet34_graph, 966_656),
        (tabula_resnet34_graph, 1_474_560),
    ],
)
def test_networks_have_as_many_relus_as_their_papers_count(
    draw: Callable[[], Drawn], relus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, relu = [], GraphBuilder.relu

    def counted(graph: GraphBuilder, x: Wire) -> Wire:
        drawn.append(x.size)
        return relu(graph, x)

    monkeypatch.setattr(GraphBuilder, "relu", counted)
    draw()
    assert sum(drawn) == relus


def test_large_networks_are_for_the_mode_that_carries_them() -> None:
    large = {"vgg16", "resnet34", "cifar100_delphi_resnet32"}
    of_tabula = {"cifar100_tabula_vgg16", "cifar100_tabula_resnet34"}
    names = {mode: {case.name for case in cases("networks", mode)} for mode in ("gazelle", "cheetah", "tabula")}
    assert names["cheetah"] - names["gazelle"] == large
    assert names["tabula"] - names["cheetah"] == of_tabula
    assert not names["cheetah"] - names["tabula"]
