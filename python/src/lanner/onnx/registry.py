"""Which function lowers which ONNX operator. A family of operators is one file; importing the package registers all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lanner.onnx.builder import GraphBuilder, Wire
    from lanner.onnx.node import Node

#: What an ONNX tensor is while lowering: computed from the secret input, or known already.
Value: TypeAlias = "Wire | NDArray[np.generic]"

#: What a lowering returns: its node's output, or all of them where the operator has several, None for an unused one.
Lowering: TypeAlias = "Callable[[Node, GraphBuilder], Value | tuple[Value | None, ...]]"

#: ONNX's recurrent operators, and which input of each has the length of every sequence of the batch.
RECURRENT = ("LSTM", "GRU", "RNN")
SEQUENCE_LENS = 4

_LOWERINGS: dict[str, Lowering] = {}


def lowers(*operators: str) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of the named operators.

    Those of ONNX's own domain go by their name, others by ``domain.name``.
    """

    def register(lowering: Lowering) -> Lowering:
        for operator in operators:
            _LOWERINGS[operator] = lowering
        return lowering

    return register


def find_lowering(operator: str) -> Lowering | None:
    """The lowering of an operator, or None where there is none."""
    return _LOWERINGS.get(operator)


def supported_operators() -> list[str]:
    """The names of all operators that have a lowering."""
    return sorted(_LOWERINGS)
