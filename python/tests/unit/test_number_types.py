"""Models of other numbers than float32: taken as float32, integers too where they are cast to floats first."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from helpers.models import random_weights
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model


def model_of(kind: int, nodes: list[onnx.NodeProto], result: int, **weights: NDArray[Any]) -> onnx.ModelProto:
    """A model of rows of six numbers of one type, whose result has another."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", 6])],
        [helper.make_tensor_value_info("y", result, ["n", 3])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dense() -> NDArray[np.float32]:
    return random_weights(0, w=(3, 6))["w"].T.astype(np.float32)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_floats_of_other_sizes_become_float32(kind: int) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    half = numpy_helper.from_array(np.array(0.5, dtype))
    nodes = [
        helper.make_node("Constant", [], ["half"], value=half),
        helper.make_node("Mul", ["x", "half"], ["m"]),
        helper.make_node("Cast", ["m"], ["c"], to=kind),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    weight = dense().astype(dtype)
    model = model_of(kind, nodes, kind, w=weight)
    x = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    compiled = lanner.compile(model, x, output="logits")
    expected = x * np.float32(0.5) @ weight.astype(np.float32)
    assert np.allclose(compiled.native.float(x), expected, rtol=1e-5, atol=1e-6)
    # What onnxruntime computes beside it is the model of float32, too.
    assert np.allclose(compiled.predict_float(x), expected, rtol=1e-5, atol=1e-6)


def test_weights_beyond_float32_are_refused() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = model_of(TensorProto.DOUBLE, nodes, TensorProto.DOUBLE, w=np.full((6, 3), 1e300))
    with pytest.raises(lanner.ModelError, match="infinite"):
        import_model(model)


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32])
def test_integers_that_are_cast_first_are_floats(kind: int) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Identity", ["r"], ["i"]),
        helper.make_node("Cast", ["i"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    model = model_of(kind, nodes, TensorProto.FLOAT, w=dense())
    model.graph.value_info.append(helper.make_tensor_value_info("i", kind, ["n", 6]))
    x = np.random.default_rng(0).integers(0, 100, (8, 6))
    compiled = lanner.compile(model, x, output="logits")
    assert np.allclose(compiled.predict_float(x), x @ dense(), rtol=1e-4, atol=1e-4)
    assert np.allclose(compiled.native.float(x.astype(np.float32)), x @ dense(), rtol=1e-4, atol=1e-4)


def test_integers_that_are_divided_are_refused() -> None:
    nodes = [
        helper.make_node("Div", ["x", "x"], ["n"], name="under_test"),
        helper.make_node("Cast", ["n"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    model = model_of(TensorProto.INT32, nodes, TensorProto.FLOAT, w=dense())
    with pytest.raises(UnsupportedOpError, match="node under_test: input x of Div is of type INT32"):
        import_model(model)
