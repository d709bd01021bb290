"""Sums that exporters write for one PReLU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from helpers.models import make_model
from lanner.onnx import import_model

IMAGE = ("n", 3, 4, 4)
ROWS = ("n", 3, 8)


def node(operator: str, inputs: str, output: str) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name=output)


#: By TensorFlow, by Keras, and by hand.
FORMULAS = {
    "with its magnitude": [
        node("Relu", "x", "r"),
        node("Abs", "x", "a"),
        node("Sub", "x a", "d"),
        node("Mul", "d half", "m"),
        node("Add", "r m", "y"),
    ],
    "of both signs": [
        node("Relu", "x", "r"),
        node("Neg", "x", "n"),
        node("Relu", "n", "s"),
        node("Mul", "s less", "m"),
        node("Add", "r m", "y"),
    ],
    "of both signs, subtracted": [
        node("Relu", "x", "r"),
        node("Neg", "x", "n"),
        node("Relu", "n", "s"),
        node("Mul", "slope s", "m"),
        node("Sub", "r m", "y"),
    ],
    "of what is left": [
        node("Relu", "x", "r"),
        node("Mul", "r rest", "s"),
        node("Mul", "x slope", "m"),
        node("Add", "m s", "y"),
    ],
}


def slopes(shape: tuple[str | int, ...], *values: float) -> dict[str, NDArray[np.float32]]:
    slope = np.array(values, np.float32).reshape((-1,) + (1,) * (len(shape) - 2))
    one, two = np.float32(1.0), np.float32(2.0)
    return {"slope": slope, "less": -slope, "half": slope / two, "rest": one - slope}


def operators(
    nodes: list[onnx.NodeProto], shape: tuple[str | int, ...], values: tuple[float, ...]
) -> list[tuple[str, Any]]:
    """What a sum leaves of the nodes that its formula needs; values move in front of it."""
    weights = slopes(shape, *values)
    named = {name for entry in nodes for name in entry.input}
    model = make_model(nodes, shape, {name: value for name, value in weights.items() if name in named})
    document = json.loads(import_model(model).graph.document)
    needed, made = {document["output"]}, []
    for entry in reversed(document["nodes"]):
        if entry["name"] in needed:
            needed.update(entry["inputs"])
            op = entry["op"]
            name, attributes = (op, None) if isinstance(op, str) else next(iter(op.items()))
            if name not in {"Reshape", "Flatten"}:
                made.append((name, attributes))
    return made[::-1]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("shape", [IMAGE, ROWS], ids=["image", "rows"])
def test_one_slope_for_all_is_a_leaky_relu(formula: str, shape: tuple[str | int, ...]) -> None:
    assert operators(FORMULAS[formula], shape, (0.25,)) == [("LeakyRelu", {"alpha": 0.25})]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("shape", [IMAGE, ROWS], ids=["image", "rows"])
def test_slopes_by_channel_are_one_layer_of_a_value_and_its_relu(formula: str, shape: tuple[str | int, ...]) -> None:
    made = operators(FORMULAS[formula], shape, (0.25, -0.5, 1.5))
    assert [name for name, _ in made] == ["Relu", "Concat", "Conv"]


def test_other_sums_stay_sums() -> None:
    """What is twice the value above 0, and what is taken of two values."""
    twice = [node("Relu", "x", "r"), node("Add", "x r", "y")]
    assert [name for name, _ in operators(twice, IMAGE, (0.25,))] == ["Relu", "Add"]
    other = [
        node("Mul", "x slope", "u"),
        node("Relu", "u", "r"),
        node("Mul", "r rest", "s"),
        node("Mul", "x slope", "m"),
        node("Add", "m s", "y"),
    ]
    assert "Add" in [name for name, _ in operators(other, IMAGE, (0.25, 0.5, 0.75))]
