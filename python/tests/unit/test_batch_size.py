"""The size of a batch may shape values, and is no number of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from helpers.models import make_model, random_weights
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model


def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def model_of(*nodes: onnx.NodeProto, batch: int | str = "n") -> onnx.ModelProto:
    """`nodes` make ``z`` of ``x`` with shape (n, 6); a layer follows."""
    integers = {
        name: np.array(value, np.int64)
        for name, value in {"zero": 0, "one": 1, "first": [0], "second": [1], "rest": [2, 3], "three": [3]}.items()
    }
    weights: dict[str, Any] = {**integers, **random_weights(0, m=(6, 4), wide=(12, 4))}
    weights["token"] = np.ones((1, 6), np.float32)
    last = node("MatMul", ["z", "wide" if nodes[-1].op_type == "Concat" else "m"], "y")
    return make_model([*nodes, last], [batch, 6], weights)


SHAPE = node("Shape", ["x"], "shape")
COUNT = node("Gather", ["shape", "zero"], "count")
REAL = node("Cast", ["count"], "real", to=TensorProto.FLOAT)
SIZE = node("Size", ["x"], "size")
REAL_SIZE = node("Cast", ["size"], "real", to=TensorProto.FLOAT)

AS_NUMBER = {
    "times the count": [SHAPE, COUNT, REAL, node("Mul", ["x", "real"], "z")],
    "by the size": [SIZE, REAL_SIZE, node("Div", ["x", "real"], "z")],
    "filled with the count": [
        *(SHAPE, COUNT, REAL),
        node("Expand", ["real", "shape"], "filled"),
        node("Add", ["x", "filled"], "z"),
    ],
    "the shape as a term": [
        SHAPE,
        node("Cast", ["shape"], "real", to=TensorProto.FLOAT),
        node("ReduceMax", ["real"], "largest", keepdims=0),
        node("ReduceMin", ["real"], "least", keepdims=0),
        node("Sub", ["largest", "least"], "between"),
        node("Mul", ["x", "between"], "z"),
    ],
}

AS_SHAPE = {
    "reshaped to it": [
        *(SHAPE, node("Slice", ["shape", "first", "second"], "rows")),
        node("Concat", ["rows", "rest"], "wanted", axis=0),
        node("Reshape", ["x", "wanted"], "image"),
        node("Relu", ["image"], "active"),
        node("Reshape", ["active", "shape"], "z"),
    ],
    "the sample's own size": [
        *(SHAPE, node("Gather", ["shape", "one"], "side")),
        node("Cast", ["side"], "real", to=TensorProto.FLOAT),
        node("Div", ["x", "real"], "z"),
    ],
    "the size of one sample": [
        *(SHAPE, COUNT, SIZE, node("Div", ["size", "count"], "each")),
        node("Cast", ["each"], "real", to=TensorProto.FLOAT),
        node("Mul", ["x", "real"], "z"),
    ],
    "a row for each sample": [
        *(SHAPE, node("Expand", ["token", "shape"], "rows")),
        node("Concat", ["x", "rows"], "z", axis=1),
    ],
}


@pytest.mark.parametrize("name", AS_NUMBER)
def test_as_a_number_it_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedOpError, match="depends on the size of the batch") as caught:
        import_model(model_of(*AS_NUMBER[name]))
    assert [(reason.node, reason.attribute) for reason in caught.value.nodes] == [("z", "input 1")]


@pytest.mark.parametrize("name", AS_SHAPE)
def test_as_a_shape_it_is_taken(name: str) -> None:
    import_model(model_of(*AS_SHAPE[name]))


def test_a_batch_that_the_file_fixes_at_one_is_a_constant() -> None:
    import_model(model_of(*AS_NUMBER["times the count"], batch=1))
