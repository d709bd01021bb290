"""Small ONNX models, made from nodes and seeded random weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

#: What the models of these tests are exported with where a test does not say otherwise.
OPSET = 17

Weights = Mapping[str, NDArray[np.generic]]


def random_weights(seed: int, **shapes: tuple[int, ...]) -> dict[str, NDArray[np.generic]]:
    """Seeded normal weights, scaled so that sums of products stay near one."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / np.sqrt(math.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }


def make_model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str | None],
    weights: Weights,
    *,
    opset: int = OPSET,
    output: str = "y",
    listed: bool = False,
) -> onnx.ModelProto:
    """A model with input ``x`` of a shape with batch axis, and one float output.

    Args:
        nodes: The nodes; they read ``x`` and the weights, and write `output`.
        shape: The input's shape, with its batch axis.
        weights: The initializers by name.
        opset: The opset of the default domain.
        output: The output's name.
        listed: Whether initializers are also listed as inputs, as IR version 3 wants it.
    """
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    if listed:
        inputs += [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in weights.items()
        ]
    outputs = [onnx.ValueInfoProto(name=output)]
    outputs[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "net", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 3 if listed else 8
    inferred = shape_inference.infer_shapes(model).graph.output[0]
    # The checker wants some shape, which nothing here reads.
    inferred.type.tensor_type.shape.SetInParent()
    model.graph.output[0].CopyFrom(inferred)
    return model


def tiny_classifier(opset: int = OPSET, *, listed: bool = False) -> onnx.ModelProto:
    """Conv, Relu, MaxPool and Gemm on images of shape (1, 8, 8) with four classes."""
    weights = random_weights(7, conv=(3, 1, 3, 3), conv_bias=(3,), fc=(4, 27), fc_bias=(4,))
    nodes = [
        helper.make_node("Conv", ["x", "conv", "conv_bias"], ["a"], name="conv1", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("MaxPool", ["b"], ["c"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["c"], ["d"], name="flat"),
        helper.make_node("Gemm", ["d", "fc", "fc_bias"], ["y"], name="fc1", transB=1),
    ]
    return make_model(nodes, ["n", 1, 8, 8], weights, opset=opset, listed=listed)


def tiny_resnet() -> onnx.ModelProto:
    """Two residual blocks with batch normalisation on images of shape (1, 8, 8), one of which halves them."""
    shapes = {"stem": (3, 1, 3, 3), "a1": (3, 3, 3, 3), "a2": (3, 3, 3, 3), "b1": (4, 3, 3, 3), "b2": (4, 4, 3, 3)}
    weights = random_weights(17, **shapes, short=(4, 3, 1, 1), fc=(4, 4), fc_bias=(4,))
    nodes: list[onnx.NodeProto] = []
    rng = np.random.default_rng(18)

    def layer(name: str, read: str, *, stride: int = 1, relu: bool = True) -> str:
        kernel = weights[name].shape[-1]
        kernels, strides, pads = [kernel] * 2, [stride] * 2, [kernel // 2] * 4
        sums = [f"{name}_sums"]
        nodes.append(
            helper.make_node("Conv", [read, name], sums, name=name, kernel_shape=kernels, strides=strides, pads=pads)
        )
        norm = {part: f"{name}_{part}" for part in ("scale", "shift", "mean", "var")}
        for part, end in norm.items():
            low = 0.5 if part in {"scale", "var"} else -0.5
            weights[end] = rng.uniform(low, low + 1.0, weights[name].shape[:1]).astype(np.float32)
        nodes.append(
            helper.make_node("BatchNormalization", [*sums, *norm.values()], [f"{name}_norm"], name=f"{name}_n")
        )
        return rectified(name, f"{name}_norm") if relu else f"{name}_norm"

    def rectified(name: str, read: str) -> str:
        nodes.append(helper.make_node("Relu", [read], [f"{name}_relu"], name=f"{name}_r"))
        return f"{name}_relu"

    def added(name: str, *read: str) -> str:
        nodes.append(helper.make_node("Add", list(read), [name], name=name))
        return rectified(name, name)

    x = layer("stem", "x")
    x = added("sum_a", layer("a2", layer("a1", x), relu=False), x)
    deep = layer("b2", layer("b1", x, stride=2), relu=False)
    x = added("sum_b", deep, layer("short", x, stride=2, relu=False))
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["pooled"], name="pool"))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"], name="flat"))
    nodes.append(helper.make_node("Gemm", ["flat", "fc", "fc_bias"], ["y"], name="fc1", transB=1))
    return make_model(nodes, ["n", 1, 8, 8], weights)


def tiny_samples(count: int = 32, seed: int = 11) -> NDArray[np.float32]:
    """Samples in [0, 1] for `tiny_classifier`."""
    return np.random.default_rng(seed).random((count, 1, 8, 8), dtype=np.float32)


def save_model(path: Path, model: onnx.ModelProto) -> Path:
    """Write a model and return its path."""
    onnx.save(model, str(path))
    return path
