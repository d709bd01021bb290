"""What becomes of a file's nodes, and how much of the network's work each of them is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lanner.onnx import registry
from lanner.onnx.builder import Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.node import Node
from lanner.onnx.opaque import Opaque, Shape


class Outcome(StrEnum):
    """What becomes of a node."""

    #: Its value is known already, so that nothing of it is left to run.
    CONSTANT = "constant"
    RUNS = "runs"
    REFUSED = "refused"
    #: It reads a value of which nothing is known, so that its operator alone was checked.
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Step:
    """A node between the input and the output.

    Attributes:
        node: The node.
        outcome: What becomes of it.
        inputs: The shapes of its inputs.
        outputs: The shapes of its outputs.
    """

    node: Node
    outcome: Outcome
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]

    @property
    def products(self) -> int | None:
        """How many numbers it multiplies and accumulates for one sample; None if that is not known.

        Those of matrices and convolutions count; sums, pools and activations have none.
        """
        operator = self.node.qualified_operator
        if operator.startswith("ai.onnx.ml.Linear"):
            return len(self.node.attr("coefficients", []))
        if operator in _COUNTED:
            place = 3 if "Q" in operator else 1
            x, weight, output = self._shape(0), self._shape(place), next(iter(self.outputs), None)
            if x is None or weight is None or output is None:
                return None
            return _products(operator, x, weight, output)
        if operator in registry.RECURRENT:
            # All weights multiply once in each step.
            x, *weights = (self._shape(index) for index in range(3))
            known = [math.prod(weight) for weight in weights if weight is not None]
            return None if x is None or len(known) < len(weights) else math.prod(x[:-1]) * sum(known)
        own = operator == self.node.operator or operator in registry.supported_operators()
        return None if operator in _UNCOUNTED or not own else 0

    def _shape(self, index: int) -> Shape:
        return self.inputs[index] if index < len(self.inputs) else None


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a network runs.

    Attributes:
        nodes: How many of its nodes run.
        refused: How many are refused.
        all_nodes: How many it has; those that neither run nor are refused read what nothing is known of.
        products: The multiply-accumulates of the nodes that run.
        all_products: Those of all nodes whose number is known.
        uncounted: The nodes whose number is not known.
    """

    nodes: int
    refused: int
    all_nodes: int
    products: int
    all_products: int
    uncounted: int

    @staticmethod
    def of(steps: Sequence[Step]) -> Share:
        """The share of these steps that runs."""
        runs = [step for step in steps if step.outcome is Outcome.RUNS]
        counts = [step.products for step in steps]
        return Share(
            len(runs),
            sum(step.outcome is Outcome.REFUSED for step in steps),
            len(steps),
            sum(step.products or 0 for step in runs),
            sum(count or 0 for count in counts),
            counts.count(None),
        )

    def __str__(self) -> str:
        told = f"{self.nodes} of {self.all_nodes} nodes run"
        unchecked = self.all_nodes - self.nodes - self.refused
        if self.refused:
            told += f", {self.refused} {'is' if self.refused == 1 else 'are'} refused"
        if unchecked:
            told += f", {unchecked} could not be looked at behind {'it' if self.refused == 1 else 'them'}"
        if self.all_products:
            known = " known" if self.uncounted else ""
            told += (
                f"; {_percent(self.products, self.all_products)} of {self.all_products}{known} multiply-accumulates run"
            )
        if self.uncounted:
            nodes = "1 further node takes" if self.uncounted == 1 else f"{self.uncounted} further nodes take"
            told += f"; how many {nodes} is not known"
        return told

    def document(self) -> dict[str, int]:
        """The share as a JSON object."""
        return {
            "nodes": self.nodes,
            "refused": self.refused,
            "all_nodes": self.all_nodes,
            "multiply_accumulates": self.products,
            "all_multiply_accumulates": self.all_products,
            "nodes_not_counted": self.uncounted,
        }


def shape_of(value: object) -> Shape:
    """The shape of a value with a batch of one; None where it is not known."""
    if isinstance(value, Wire):
        return value.with_batch(BATCH)
    return value.shape if isinstance(value, np.ndarray | Opaque) else None


def _products(operator: str, x: tuple[int, ...], weight: tuple[int, ...], output: tuple[int, ...]) -> int:
    if operator == "ConvTranspose":
        return math.prod(x) * math.prod(weight[1:])
    if "Conv" in operator:
        return math.prod(output) * math.prod(weight[1:])
    return math.prod(output) * x[-1]


def _percent(part: int, whole: int) -> str:
    """A share, rounded so that only the whole is 100 % and only nothing is 0 %."""
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "less than 1 %"
    return f"{math.floor(percent)} %"


#: Operators that multiply, whose numbers follow from their shapes.
_COUNTED = {
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"),
    "com.microsoft.QGemm",
}

#: Operators that multiply as often as nobody here works out.
_UNCOUNTED = {"Einsum", "Attention", "DeformConv", "If", "Loop", "Scan"}
