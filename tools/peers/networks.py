"""The networks that are compared, as float graphs that every system gets alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.drawn import minionn_graph, resnet34_graph, resnet_graph, vgg16_graph
from lanner.benchmarks.graphs import Drawn, random_samples
from lanner.benchmarks.networks import CIFAR_DEVIATION, CIFAR_MEAN, load_cifar10
from lanner.datasets import load_digits
from lanner.embedded import CALIBRATION_SAMPLES
from lanner.onnx import import_model
from lanner.onnx.builder import FloatGraph

Samples = NDArray[np.float32]

#: The trained ResNet-32 in a folder's models.
RESNET32 = Path("cifar10_resnet32", "model.onnx")


@dataclass(frozen=True, slots=True)
class Compared:
    """A network that is compared.

    Attributes:
        graph: The network, its batch normalizations folded into the convolutions before them.
        calibration: Samples that lanner calibrates on.
        sample: What is predicted.
        weights: ``trained`` or ``random``.
    """

    graph: FloatGraph
    calibration: Samples
    sample: Samples
    weights: str


def networks(data: Path | None) -> Mapping[str, Callable[[], Compared]]:
    """What makes each network, by name, the quick ones first.

    Args:
        data: A folder with trained networks that do not come with the package.
    """
    trained = data is not None and (data / "models" / RESNET32).is_file()
    return {
        "mnist_d": _mnist_d,
        "cifar10_minionn": partial(_random, minionn_graph),
        "resnet32": partial(_resnet32, data) if data and trained else partial(_random, partial(resnet_graph, 5)),
        "vgg16": partial(_random, vgg16_graph),
        "resnet34": partial(_random, resnet34_graph),
    }


def _mnist_d() -> Compared:
    with as_file(files("lanner") / "networks" / "mnist_d.onnx") as path:
        graph = import_model(path).graph
    return Compared(fold(graph), load_digits("train")[0][:CALIBRATION_SAMPLES], load_digits("test")[0][0], "trained")


def _resnet32(data: Path) -> Compared:
    samples = (load_cifar10(data, CALIBRATION_SAMPLES + 1) - CIFAR_MEAN) / CIFAR_DEVIATION
    return Compared(fold(import_model(data / "models" / RESNET32).graph), samples[:-1], samples[-1], "trained")


def _random(draw: Callable[[], Drawn]) -> Compared:
    graph, output = draw()
    samples = random_samples(graph.input.shape)
    return Compared(graph.finish(output), samples, samples[0], "random")


def fold(graph: FloatGraph) -> FloatGraph:
    """The same function without batch normalizations: each goes into the convolution that it alone reads.

    Raises:
        ValueError: If one reads something else.
    """
    document: dict[str, Any] = json.loads(graph.document)
    tensors = dict(graph.tensors)
    nodes: list[dict[str, Any]] = []
    for node in document["nodes"]:
        if isinstance(node["op"], dict) and "BatchNorm" in node["op"]:
            convolution = nodes[-1]
            readers = [other for other in document["nodes"] if convolution["name"] in other["inputs"]]
            if "Conv" not in convolution["op"] or readers != [node]:
                raise ValueError(f"{node['name']} does not follow a convolution that it alone reads")
            _fold_one(convolution, node["op"]["BatchNorm"], tensors)
            convolution["name"] = node["name"]
        else:
            nodes.append(node)
    return FloatGraph(json.dumps({**document, "nodes": nodes}), tensors, graph.output_shape)


def _fold_one(convolution: dict[str, Any], norm: dict[str, Any], tensors: dict[str, NDArray[np.float32]]) -> None:
    scale, shift, mean, var = (tensors.pop(norm[role]) for role in ("scale", "bias", "mean", "var"))
    factor = (scale / np.sqrt(var + np.float32(norm["eps"]))).astype(np.float32)
    attributes = convolution["op"]["Conv"]
    name = attributes["weight"]
    tensors[name] = tensors[name] * factor.reshape(-1, 1, 1, 1)
    before = np.float32(0) if attributes["bias"] is None else tensors[attributes["bias"]]
    attributes["bias"] = f"{name}.bias" if attributes["bias"] is None else attributes["bias"]
    tensors[attributes["bias"]] = ((before - mean) * factor + shift).astype(np.float32)
