"""The networks of tools/peers, and how they reach other systems."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import fold, networks, onnx_document

from lanner.benchmarks.graphs import compile_graph, conv, random_samples
from lanner.benchmarks.transformers import encoder_file
from lanner.onnx.builder import FloatGraph, GraphBuilder
from lanner.options import CompileOptions


def graph(*, bias: bool, shared: bool = False) -> FloatGraph:
    rng = np.random.default_rng(7)
    builder = GraphBuilder("x", (2, 6, 6))
    wire = conv(builder, builder.input, 3, 3)
    norm = {role: rng.random(3, dtype=np.float32) + np.float32(0.5) for role in ("scale", "bias", "mean", "var")}
    normal = builder.add_node("BatchNorm", (wire,), wire.shape, {"eps": 1e-5}, dict(norm))
    drawn = builder.finish(builder.add(normal, wire) if shared else builder.relu(normal))
    document = json.loads(drawn.document)
    if bias:
        document["nodes"][0]["op"]["Conv"]["bias"] = "bias"
    return FloatGraph(json.dumps(document), {**drawn.tensors, "bias": norm["mean"]}, drawn.output_shape)


@pytest.mark.parametrize("bias", [False, True])
def test_folding_keeps_the_function(bias: bool) -> None:
    drawn = graph(bias=bias)
    folded, samples = fold(drawn), random_samples((2, 6, 6))
    options = CompileOptions(name="test", output="logits")
    outputs = [compile_graph(each, samples, options).predict_float(samples) for each in (drawn, folded)]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-5)
    assert '{"BatchNorm"' in drawn.document
    assert '{"BatchNorm"' not in folded.document


def test_what_others_read_is_not_folded() -> None:
    with pytest.raises(ValueError, match="alone reads"):
        fold(graph(bias=False, shared=True))


def test_networks_without_data_have_random_weights() -> None:
    made = networks(None)
    assert list(made)[:5] == ["mnist_d", "cifar10_minionn", "resnet32", "vgg16", "resnet34"]
    assert list(made)[5:] == ["encoder_2x128_128", "encoder_6x384_128"]
    assert made["resnet32"]().weights == "random"
    network = made["mnist_d"]()
    assert network.weights == "trained"
    assert network.sample.shape == (1, 28, 28)


def test_weights_of_an_encoder_are_secret_and_its_shapes_are_not() -> None:
    document, tensors = onnx_document(encoder_file(1, 8, 2, 4))
    assert document["inputs"] == [{"name": "x", "shape": [1, 4, 8]}]
    given = {"x", *tensors, *(node["name"] for node in document["onnx"])}
    assert all(name in given for node in document["onnx"] for name in node["inputs"])
    assert all(tensor.dtype == np.float32 and tensor.size > 1 for tensor in tensors.values())
    shapes = [node["public"][0] for node in document["onnx"] if node["operator"] == "Reshape"]
    assert [0, 4, 2, 4] in shapes
