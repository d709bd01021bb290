"""Smooth functions in the float graph, and products that are one function as exporters write them in parts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from helpers.models import make_model
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model

IMAGE = ("n", 3, 8, 8)

#: Operators of onnxruntime's own.
MICROSOFT = ("FastGelu", "QuickGelu", "BiasGelu")


def node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs.split(), [output], name=output, **attributes)


def model_of(nodes: list[onnx.NodeProto], weights: dict[str, Any]) -> onnx.ModelProto:
    """A model of the nodes, those of onnxruntime in its own domain, which shape inference does not know."""
    stand_in = [
        node("Identity", entry.input[0], entry.output[0]) if entry.op_type in MICROSOFT else entry for entry in nodes
    ]
    model = make_model(stand_in, IMAGE, weights, opset=20)
    for made, entry in zip(model.graph.node, nodes, strict=True):
        made.CopyFrom(entry)
        made.domain = "com.microsoft" if entry.op_type in MICROSOFT else ""
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def imported(nodes: list[onnx.NodeProto], **constants: float) -> list[tuple[str, Any]]:
    """The operators and attributes that the nodes from ``x`` to ``y`` leave, those that the output needs."""
    weights = {name: np.float32(value) for name, value in constants.items()}
    document = json.loads(import_model(model_of(nodes, weights)).graph.document)
    needed, made = {document["output"]}, []
    for entry in reversed(document["nodes"]):
        if entry["name"] in needed:
            needed.update(entry["inputs"])
            op = entry["op"]
            made.append((op, None) if isinstance(op, str) else next(iter(op.items())))
    return made[::-1]


FORMULAS = {
    "silu": [node("Sigmoid", "x", "s"), node("Mul", "x s", "y")],
    "silu, the gate first": [node("Sigmoid", "x", "s"), node("Mul", "s x", "y")],
    "a steeper silu": [node("Mul", "x steep", "t"), node("Sigmoid", "t", "s"), node("Mul", "x s", "y")],
    "mish": [node("Softplus", "x", "p"), node("Tanh", "p", "s"), node("Mul", "x s", "y")],
    "gelu": [
        node("Div", "x root", "t"),
        node("Erf", "t", "e"),
        node("Add", "e one", "s"),
        node("Mul", "x s", "m"),
        node("Mul", "m half", "y"),
    ],
    "gelu, halved first": [
        node("Mul", "x half", "h"),
        node("Div", "x root", "t"),
        node("Erf", "t", "e"),
        node("Add", "e one", "s"),
        node("Mul", "h s", "y"),
    ],
    "gelu by a cube": [
        node("Pow", "x three", "c"),
        node("Mul", "c curve", "k"),
        node("Add", "x k", "a"),
        node("Mul", "a slope", "u"),
        node("Tanh", "u", "t"),
        node("Add", "t one", "s"),
        node("Mul", "x half", "h"),
        node("Mul", "h s", "y"),
    ],
    "gelu by products": [
        node("Mul", "x x", "q"),
        node("Mul", "q curve", "k"),
        node("Add", "k one", "a"),
        node("Mul", "x slope", "l"),
        node("Mul", "l a", "u"),
        node("Tanh", "u", "t"),
        node("Add", "one t", "s"),
        node("Mul", "x s", "m"),
        node("Mul", "m half", "y"),
    ],
    "gelu by a cube of products, the constant first, as JAX has it": [
        node("Mul", "curve x", "k"),
        node("Mul", "x k", "q"),
        node("Mul", "x q", "c"),
        node("Add", "x c", "a"),
        node("Mul", "slope a", "u"),
        node("Tanh", "u", "t"),
        node("Add", "one t", "s"),
        node("Mul", "half s", "h"),
        node("Mul", "x h", "y"),
    ],
}

NUMBERS = {
    "steep": 1.702,
    "root": math.sqrt(2),
    "one": 1.0,
    "half": 0.5,
    "three": 3.0,
    "curve": 0.044715,
    "slope": math.sqrt(2 / math.pi),
}

FOLDED = {
    "silu": {"Swish": {"alpha": 1.0}},
    "a steeper silu": {"Swish": {"alpha": float(np.float32(1.702))}},
    "mish": {"Mish": None},
    "gelu": {"Gelu": {"approximate": False}},
    "gelu by": {"Gelu": {"approximate": True}},
}


@pytest.mark.parametrize("name", FORMULAS)
def test_products_of_a_value_and_a_function_of_it_are_one_function(name: str) -> None:
    used = {number for entry in FORMULAS[name] for number in entry.input if number in NUMBERS}
    made = imported(FORMULAS[name], **{number: NUMBERS[number] for number in used})
    prefix = max((key for key in FOLDED if name.startswith(key)), key=len)
    ramps = [attributes for operator, attributes in made if operator == "Ramp"]
    assert ramps == [FOLDED[prefix]]
    assert all(operator in ("Ramp", "MulConstant") for operator, _ in made)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Relu", "x", "r"), node("Sigmoid", "x", "s"), node("Mul", "r s", "y")],
        [node("Neg", "x", "t"), node("Sigmoid", "t", "s"), node("Mul", "x s", "y")],
        [node("Erf", "x", "e"), node("Add", "e one", "s"), node("Mul", "x s", "y")],
        [node("Tanh", "x", "e"), node("Add", "e one", "s"), node("Mul", "x s", "y")],
    ],
)
def test_other_products_stay_products(nodes: list[onnx.NodeProto]) -> None:
    used = {"one": 1.0} if any("one" in entry.input for entry in nodes) else {}
    assert [operator for operator, _ in imported(nodes, **used)][-1] == "Mul"


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Erf", "Softsign", "Exp", "Log", "Sqrt", "Reciprocal"])
def test_functions_go_by_their_names(name: str) -> None:
    # A sigmoid at the end would be taken off.
    bent = node("LeakyRelu", "f", "y", alpha=0.5)
    assert imported([node(name, "x", "f"), bent]) == [("Function", {name: None}), ("LeakyRelu", {"alpha": 0.5})]


@pytest.mark.parametrize("name", ["Sigmoid", "Exp", "Sqrt"])
@pytest.mark.parametrize("nothing", ["Relu", "Abs"])
def test_what_is_never_negative_needs_no_relu(name: str, nothing: str) -> None:
    bent = node("LeakyRelu", "g", "y", alpha=0.5)
    made = imported([node(name, "x", "f"), node(nothing, "f", "g"), bent])
    assert made == [("Function", {name: None}), ("LeakyRelu", {"alpha": 0.5})]


def test_ramps_have_the_defaults_of_onnx() -> None:
    assert imported([node("Elu", "x", "y")]) == [("Ramp", {"Elu": {"alpha": 1.0}})]
    assert imported([node("Celu", "x", "y", alpha=2.0)]) == [("Ramp", {"Celu": {"alpha": 2.0}})]
    ((_, selu),) = imported([node("Selu", "x", "y")])
    assert selu["Selu"] == pytest.approx({"alpha": 1.6732632, "gamma": 1.050701})
    assert imported([node("Gelu", "x", "y", approximate="tanh")]) == [("Ramp", {"Gelu": {"approximate": True}})]
    assert imported([node("QuickGelu", "x", "y")]) == [("Ramp", {"Swish": {"alpha": 1.702}})]
    assert imported([node("FastGelu", "x", "y")]) == [("Ramp", {"Gelu": {"approximate": True}})]
    biased = imported([node("BiasGelu", "x one", "y")], one=1.0)
    assert [operator for operator, _ in biased] == ["AddConstant", "Ramp"]


def test_powers_and_quotients_are_functions() -> None:
    assert imported([node("Pow", "x e", "y")], e=-0.5) == [("Function", {"Power": {"exponent": -0.5}})]
    assert imported([node("Pow", "x e", "y")], e=0.5) == [("Function", {"Sqrt": None})]
    quotient = imported([node("Sigmoid", "x", "s"), node("Div", "x s", "y")])
    assert [operator for operator, _ in quotient] == ["Function", "Function", "Mul"]
    constant = imported([node("Div", "c x", "y")], c=3.0)
    assert [operator for operator, _ in constant] == ["Function", "MulConstant"]


@pytest.mark.parametrize(
    ("under_test", "sentence"),
    [
        (node("Celu", "x", "y", alpha=-1.0), "alpha of Celu is -1"),
        (node("QuickGelu", "x", "y", alpha=0.0), "alpha of QuickGelu is 0"),
        (node("Selu", "x", "y", gamma=0.0), "gamma of Selu must not be 0"),
        (node("Gelu", "x", "y", approximate="sigmoid"), "approximate of Gelu is sigmoid"),
    ],
)
def test_attributes_that_make_another_function_are_refused(under_test: onnx.NodeProto, sentence: str) -> None:
    with pytest.raises(UnsupportedOpError, match=sentence):
        imported([under_test])


def test_a_bias_of_the_input_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="input 1 of BiasGelu must be a constant"):
        imported([node("BiasGelu", "x x", "y")])
