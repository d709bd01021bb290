"""Quantised networks: what integers may pass through, and what is refused because it would mean something else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from helpers.models import make_model, random_weights
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model

UNIT: dict[str, NDArray[np.generic]] = {"scale": np.array(0.5, np.float32), "zero": np.array(-128, np.int8)}


def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def between(*middle: onnx.NodeProto, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401
    """Nodes between ``q``, the integers of a layer's result, and ``i``, whose real values are the output."""
    nodes = [
        node("Gemm", ["x", "w"], "a"),
        node("QuantizeLinear", ["a", "scale", "zero"], "q"),
        *middle,
        node("DequantizeLinear", ["i", "scale", "zero"], "y"),
    ]
    return make_model(nodes, ("n", 4), {**random_weights(0, w=(4, 6)), **UNIT, **constants})


def operators(model: onnx.ModelProto) -> list[str]:
    nodes = json.loads(import_model(model).graph.document)["nodes"]
    return [entry["op"] if isinstance(entry["op"], str) else next(iter(entry["op"])) for entry in nodes]


def test_a_pair_is_the_saturation_of_its_integers() -> None:
    graph = import_model(between(node("Identity", ["q"], "i"))).graph
    clip = json.loads(graph.document)["nodes"][-1]
    # From (-128 + 128) / 2 to (127 + 128) / 2.
    assert clip["op"] == {"Clip": {"min": 0.0, "max": 127.5}}


def test_what_moves_integers_moves_real_values() -> None:
    shape = np.array([1, 2, 3], np.int64)
    moved = between(
        node("Reshape", ["q", "shape"], "b"),
        node("Transpose", ["b"], "c", perm=[0, 2, 1]),
        node("Concat", ["c", "c"], "i", axis=1),
        shape=shape,
    )
    assert operators(moved) == ["MatMul", "Clip", "Reshape", "Transpose", "Concat"]


@pytest.mark.parametrize(
    ("middle", "name"),
    [
        (node("Relu", ["q"], "i"), "Relu"),
        (node("Add", ["q", "q"], "i"), "Add"),
        (node("Concat", ["q", "integers"], "i", axis=1), "Concat"),
        (node("Mul", ["q", "integers"], "i"), "Mul"),
    ],
)
def test_what_computes_with_integers_is_refused(middle: onnx.NodeProto, name: str) -> None:
    with pytest.raises(UnsupportedOpError, match=f"of {name} .*quantised integers"):
        import_model(between(middle, integers=np.ones((1, 6), np.int8)))


def test_a_value_is_read_in_the_unit_that_quantised_it() -> None:
    model = between(node("Identity", ["q"], "i"), other=np.array(0.25, np.float32))
    model.graph.node[-1].input[1] = "other"
    with pytest.raises(UnsupportedOpError, match="input 1 of DequantizeLinear differs"):
        import_model(model)


def test_a_network_does_not_end_in_integers() -> None:
    model = between(node("Identity", ["q"], "i"))
    del model.graph.node[-1]
    model.graph.output[0].name = "i"
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT8
    with pytest.raises(UnsupportedOpError, match="the scores are quantised integers"):
        import_model(model)


def test_a_scale_that_follows_from_the_secret_is_only_multiplied_back() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="quantise"),
        node("MatMulInteger", ["q", "w", "z"], "sums"),
        node("Cast", ["sums"], "floats", to=1),
        node("Mul", ["floats", "s"], "y"),
    ]
    weights = {"w": np.arange(-6, 6, dtype=np.int8).reshape(4, 3)}
    assert operators(make_model(nodes, ("n", 4), weights)) == ["MatMul", "MulConstant"]
    nodes[-1] = node("Add", ["floats", "s"], "y")
    with pytest.raises(UnsupportedOpError, match=r"of Add .*quantised integers"):
        import_model(make_model(nodes, ("n", 4), weights))
