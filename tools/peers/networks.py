"""The networks that are compared, which every system gets alike: as float graphs, and transformers as ONNX nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from lanner.benchmarks.drawn import minionn_graph, resnet34_graph, resnet_graph, vgg16_graph
from lanner.benchmarks.graphs import Drawn, compile_graph, random_samples
from lanner.benchmarks.networks import CIFAR_DEVIATION, CIFAR_MEAN, load_cifar10
from lanner.benchmarks.transformers import drawn_texts, encoder_file
from lanner.datasets import load_digits
from lanner.embedded import CALIBRATION_SAMPLES
from lanner.model import Model
from lanner.model import compile as compile_model
from lanner.onnx import import_model
from lanner.onnx.builder import FloatGraph
from lanner.options import CompileOptions

Samples = NDArray[np.float32]

#: The trained ResNet-32 in a folder's models.
RESNET32 = Path("cifar10_resnet32", "model.onnx")


@dataclass(frozen=True, slots=True)
class Compared:
    """A network that is compared.

    Attributes:
        document: What the other system computes: a float graph, or ONNX nodes as `onnx_document` writes them.
        tensors: Its weights by name.
        compile: Compiles the same network for lanner.
        sample: What is predicted.
        weights: ``trained`` or ``random``.
    """

    document: Mapping[str, Any]
    tensors: Mapping[str, NDArray[np.float32]]
    compile: Callable[[CompileOptions], Model]
    sample: Samples
    weights: str

    @staticmethod
    def of_graph(graph: FloatGraph, calibration: Samples, sample: Samples, weights: str) -> Compared:
        """A float graph whose batch normalizations are folded into the convolutions before them."""
        compile_it = partial(compile_graph, graph, calibration)
        return Compared(json.loads(graph.document), graph.tensors, compile_it, sample, weights)


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
        "encoder_2x128_128": partial(_encoder, 2, 128, 2, 128),
        "encoder_6x384_128": partial(_encoder, 6, 384, 12, 128),
    }


def _mnist_d() -> Compared:
    with as_file(files("lanner") / "networks" / "mnist_d.onnx") as path:
        graph = import_model(path).graph
    return Compared.of_graph(
        fold(graph), load_digits("train")[0][:CALIBRATION_SAMPLES], load_digits("test")[0][0], "trained"
    )


def _resnet32(data: Path) -> Compared:
    samples = (load_cifar10(data, CALIBRATION_SAMPLES + 1) - CIFAR_MEAN) / CIFAR_DEVIATION
    graph = fold(import_model(data / "models" / RESNET32).graph)
    return Compared.of_graph(graph, samples[:-1], samples[-1], "trained")


def _random(draw: Callable[[], Drawn]) -> Compared:
    graph, output = draw()
    samples = random_samples(graph.input.shape)
    return Compared.of_graph(graph.finish(output), samples, samples[0], "random")


def _encoder(layers: int, width: int, heads: int, tokens: int) -> Compared:
    proto = encoder_file(layers, width, heads, tokens)
    samples = drawn_texts(CALIBRATION_SAMPLES, tokens, width)

    def compile_it(options: CompileOptions) -> Model:
        return compile_model(proto, samples, **options.chosen)

    return Compared(*onnx_document(proto), compile_it, samples[0], "random")


def onnx_document(proto: onnx.ModelProto) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """A file's nodes, for `transformer.evaluate`, and its weights; shapes, axes and single numbers are public."""
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    public = {name: value for name, value in held.items() if value.dtype.kind in "iu" or value.size == 1}
    nodes = [
        {
            "name": node.output[0],
            "operator": node.op_type,
            "inputs": [name for name in node.input if name not in public],
            "public": [public[name].tolist() for name in node.input if name in public],
            "attributes": {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute},
        }
        for node in proto.graph.node
    ]
    (given,) = proto.graph.input
    shape = [side.dim_value for side in given.type.tensor_type.shape.dim]
    document = {"inputs": [{"name": given.name, "shape": shape}], "onnx": nodes, "output": proto.graph.output[0].name}
    return document, {name: value for name, value in held.items() if name not in public}


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
