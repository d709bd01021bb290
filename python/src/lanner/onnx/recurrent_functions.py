"""The activations of recurrent layers, which they name with numbers of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx import helper

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import find_lowering

#: What a gate does to its sum.
Function = Callable[[GraphBuilder, Wire], Wire]

#: The activations of each operator where it names none.
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@dataclass(frozen=True, slots=True)
class _Known:
    """An activation.

    Attributes:
        operator: The ONNX operator that it is, between a factor and a term.
        numbers: Its numbers by the operator's attribute, and their values where the layer gives none.
    """

    operator: str
    numbers: dict[str, float]


#: The activations by their names in lower case; the numbers are taken in order, alpha before beta.
_KNOWN = {
    "sigmoid": _Known("Sigmoid", {}),
    "tanh": _Known("Tanh", {}),
    "relu": _Known("Relu", {}),
    "softsign": _Known("Softsign", {}),
    "softplus": _Known("Softplus", {}),
    "affine": _Known("Identity", {"alpha": 1.0, "beta": 0.0}),
    "leakyrelu": _Known("LeakyRelu", {"alpha": 0.01}),
    "thresholdedrelu": _Known("ThresholdedRelu", {"alpha": 1.0}),
    "scaledtanh": _Known("Tanh", {"alpha": 1.0, "beta": 1.0}),
    "hardsigmoid": _Known("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
    "elu": _Known("Elu", {"alpha": 1.0}),
}


def read_functions(node: Node, directions: int) -> list[list[Function]]:
    """The activations of each direction, in the operator's order.

    Raises:
        UnsupportedOpError: If one is not known or not computed, or there are too few.
    """
    defaults = _DEFAULTS[node.operator]
    given: list[bytes] = node.attr("activations", [])
    named = [name.decode() for name in given]
    names = named or [*defaults] * directions
    if len(names) != len(defaults) * directions:
        raise node.unsupported("activations", f"is {names}; {len(defaults) * directions} are needed")
    none: list[float] = []
    numbers = {name: iter(node.attr(f"activation_{name}", none)) for name in ("alpha", "beta")}
    functions = [_function(node, name, numbers) for name in names]
    return [functions[first : first + len(defaults)] for first in range(0, len(functions), len(defaults))]


def _function(node: Node, name: str, given: dict[str, Iterator[float]]) -> Function:
    known = _KNOWN.get(name.lower())
    if known is None:
        raise node.unsupported("activations", f"holds {name}; {', '.join(_NAMES)} are known")
    lowering = find_lowering(known.operator)
    if lowering is None:
        raise node.unsupported("activations", f"holds {name}, which this version does not compute")
    numbers = {attribute: next(given[attribute], value) for attribute, value in known.numbers.items()}
    if name.lower() == "affine":
        return lambda graph, x: graph.shift(graph.scale(x, numbers["alpha"]), numbers["beta"])
    scaled = name.lower() == "scaledtanh"
    proto = helper.make_node(known.operator, ["x"], ["y"], name=node.name)
    if not scaled:
        proto.attribute.extend(helper.make_attribute(attribute, number) for attribute, number in numbers.items())

    def function(graph: GraphBuilder, x: Wire) -> Wire:
        inner = graph.scale(x, numbers["beta"]) if scaled else x
        y = lowering(Node(proto, [inner]), graph)
        if not isinstance(y, Wire):
            raise node.unsupported("activations", f"holds {name}, which makes no single value")
        return graph.scale(y, numbers["alpha"]) if scaled else y

    return function


#: The activations as ONNX writes them.
_NAMES = (
    *("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "Elu"),
    *("Softsign", "Softplus"),
)
