"""Branches whose condition depends on the input: both run, and nobody learns which is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from helpers.several import drawn, expected, model_of, node, off_by
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model

COLUMNS, WIDTH = 4, 3

#: Away from the condition's threshold, where a last place would decide.
_X = drawn(120, COLUMNS)
_X = _X[np.abs(_X.sum(1)) > 0.05]


def body(nodes: list[onnx.NodeProto], *outputs: str, **held: Any) -> onnx.GraphProto:  # noqa: ANN401
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph(
        nodes, "body", [], made, [numpy_helper.from_array(value, name) for name, value in held.items()]
    )


def asking(*ways: onnx.GraphProto, keepdims: int = 1) -> list[onnx.NodeProto]:
    """Whether the sum of a row is positive, of one or two axes, and what follows."""
    return [
        node("ReduceSum", ["x", "last"], "sum", keepdims=keepdims),
        node("Greater", ["sum", "nought"], "positive"),
        node("MatMul", ["x", "w"], "scores"),
        node("If", ["positive"], "y", then_branch=ways[0], else_branch=ways[1]),
    ]


def of_one(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of one row at a time, as a branch asks for."""
    constants: dict[str, Any] = {"last": np.array([1]), "nought": np.float32(0), "w": drawn(COLUMNS, WIDTH)}
    return model_of(nodes, {"x": (TensorProto.FLOAT, [1, COLUMNS])}, {"y": [1, WIDTH]}, **constants)


#: Both branches hold weights of one name, and read what is outside of them.
_THEN = body([node("Relu", ["scores"], "bent"), node("MatMul", ["bent", "v"], "o")], "o", v=drawn(WIDTH, WIDTH, seed=1))
_ELSE = body([node("Sigmoid", ["scores"], "p"), node("Mul", ["p", "v"], "o")], "o", v=drawn(WIDTH, seed=2))


def one_by_one(proto: onnx.ModelProto) -> NDArray[np.float32]:
    return np.concatenate([expected(proto, {"x": row[np.newaxis]}, "y") for row in _X])


@pytest.mark.parametrize("keepdims", [1, 0])
def test_both_branches_are_right(keepdims: int) -> None:
    proto = of_one(asking(_THEN, _ELSE, keepdims=keepdims))
    model = lanner.compile(proto, _X, output="value")
    assert off_by(model.predict_fixed(_X), one_by_one(proto)) < 0.005
    taken = _X.sum(1) > 0
    for row in (_X[taken][0], _X[~taken][0]):
        values = np.asarray(lanner.run(model, row).values, np.float32)
        assert np.array_equal(values, model.predict_fixed(row[np.newaxis])[0].astype(np.float32))


def test_a_branch_within_a_branch_and_a_constant_one_are_right() -> None:
    inner = body(
        [
            node("Greater", ["first", "half"], "large"),
            node(
                "If",
                ["large"],
                "o",
                then_branch=_THEN,
                else_branch=body([], "ones", ones=np.ones((1, WIDTH), np.float32)),
            ),
        ],
        "o",
        half=np.float32(0.5),
    )
    nodes = asking(inner, _ELSE)
    nodes.insert(0, node("Slice", ["x", "begin", "end", "last"], "first"))
    constants: dict[str, Any] = {"last": np.array([1]), "nought": np.float32(0), "w": drawn(COLUMNS, WIDTH)}
    ends = {"begin": np.array([0]), "end": np.array([1])}
    proto = model_of(nodes, {"x": (TensorProto.FLOAT, [1, COLUMNS])}, {"y": [1, WIDTH]}, **constants, **ends)
    model = lanner.compile(proto, _X, output="value")
    assert off_by(model.predict_fixed(_X), one_by_one(proto)) < 0.005


def test_branches_of_two_shapes_are_refused() -> None:
    wide = body([node("Concat", ["scores", "scores"], "o", axis=1)], "o")
    with pytest.raises(UnsupportedOpError, match=r"output y of If is of shape \(1, 3\) in one branch and \(1, 6\)"):
        import_model(of_one(asking(_THEN, wide)))


def test_a_condition_of_several_elements_is_refused() -> None:
    nodes = asking(_THEN, _ELSE)
    nodes[1] = node("Greater", ["x", "nought"], "positive")
    with pytest.raises(UnsupportedOpError, match=r"the condition of If has shape \(1, 4\)"):
        import_model(of_one(nodes))
