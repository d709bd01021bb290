"""What an input's integers are read by inside of branches, and tables that lack a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lanner.errors import UnsupportedOpError
from lanner.onnx import Frame, import_model

TABLE = np.arange(28, dtype=np.float32).reshape(7, 4)


def graph_of(nodes: list[onnx.NodeProto], output: str, **held: object) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    return helper.make_graph(nodes, output, [], [value], tensors(held))


def tensors(held: dict[str, Any]) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]


def model(nodes: list[onnx.NodeProto], *more: onnx.ValueInfoProto, **held: object) -> onnx.ModelProto:
    """A model of three integers a sample, ``ids``, that makes four columns of each, ``e``, and a dense layer."""
    tail = [
        helper.make_node("Reshape", ["e", "sides"], ["flat"], "flat"),
        helper.make_node("MatMul", ["flat", "w"], ["y"], "y"),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", 3]), *more]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    weights: dict[str, NDArray[Any]] = {"sides": np.array([-1, 12]), "w": np.ones((12, 2), np.float32)}
    graph = helper.make_graph([*nodes, *tail], "net", inputs, outputs, tensors({**weights, **held}))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return made


def branch(condition: str) -> onnx.NodeProto:
    """A table of seven rows that a branch holds, or the one of five that is the graph's."""
    own = graph_of([helper.make_node("Gather", ["own", "ids"], ["o"], "own")], "o", own=TABLE)
    outer = graph_of([helper.make_node("Gather", ["table", "ids"], ["p"], "outer")], "p")
    return helper.make_node("If", [condition], ["e"], "if", then_branch=own, else_branch=outer)


@pytest.mark.parametrize(("chosen", "rows"), [(True, 7), (False, 5)])
def test_a_table_in_a_branch_that_a_constant_chooses_is_looked_up(chosen: bool, rows: int) -> None:
    taken = import_model(model([branch("c")], table=TABLE[:5], c=np.array(chosen)))
    assert taken.named[0].choices == rows


@pytest.mark.parametrize(("rate", "rows"), [("16000", 7), ("8000", 5)])
def test_a_branch_may_be_chosen_by_an_input_that_is_made_a_constant(rate: str, rows: int) -> None:
    asks = helper.make_node("Equal", ["sr", "wanted"], ["c"], "c")
    sr = helper.make_tensor_value_info("sr", TensorProto.INT64, [])
    proto = model([asks, branch("c")], sr, table=TABLE[:5], wanted=np.array(16000))
    taken = import_model(proto, frame=Frame.of(None, [f"sr={rate}"], None, None))
    assert taken.named[0].choices == rows


@pytest.mark.parametrize("condition", ["c", "size"])
def test_integers_that_a_branch_rounds_are_refused(condition: str) -> None:
    """A quotient of integers is none of the same numbers as floats."""
    halves = [
        helper.make_node("Div", ["ids", "two"], ["h"], "halves"),
        helper.make_node("Cast", ["h"], ["f"], "f", to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["f", "last"], ["u"], "u"),
        helper.make_node("Mul", ["u", "ones"], ["o"], "o"),
    ]
    held = {"two": np.array(2), "last": np.array([-1]), "ones": np.ones(4, np.float32)}
    body, other = graph_of(halves, "o", **held), graph_of(halves, "o", **held)
    asks = [
        helper.make_node("Shape", ["ids"], ["sh"], "sh", start=1),
        helper.make_node("Equal", ["sh", "three"], ["size"], "size"),
    ]
    branches = helper.make_node("If", [condition], ["e"], "if", then_branch=body, else_branch=other)
    proto = model([*asks, branches], c=np.array(True), three=np.array([3]))
    with pytest.raises(UnsupportedOpError, match=r"input ids .* is of type INT64"):
        import_model(proto)


def test_a_table_without_a_row_for_every_number_is_refused_by_its_rows() -> None:
    nodes = [
        helper.make_node("Add", ["ids", "five"], ["more"], "more"),
        helper.make_node("Gather", ["table", "more"], ["e"], "e"),
    ]
    with pytest.raises(UnsupportedOpError, match=r"is 7 where the model's input is 2, .* has 7 rows"):
        import_model(model(nodes, table=TABLE, five=np.array(5)))
