"""Constants that are infinite or NaN though nothing that they were computed from is: which node made them so.

Such a constant does no harm where a ``Where`` leaves it out, or a softmax reads it as a mask. Where a node computes
with it, the reason for the refusal is at the node that made it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.node import Node, NotFiniteError


class Origins:
    """The nodes that constants became infinite or NaN by."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def follow(self, node: Node, folded: Mapping[str, NDArray[np.generic]]) -> None:
        """Note which outputs of a node that is known already are not finite."""
        given = next((name for name in node.proto.input if name in self._nodes), None)
        finite = all(value is None or is_finite(value) for value in node.inputs)
        origin = self._nodes[given] if given is not None else node if finite and node.inputs else None
        for name, value in folded.items():
            if origin is not None and not is_finite(value):
                self._nodes[name] = origin

    def named(self, error: NotFiniteError, node: Node) -> ModelError:
        """The error of a node that computes with such a constant, which names the node that made it."""
        name = node.proto.input[error.index] if error.index < len(node.proto.input) else ""
        origin = self._nodes.get(name)
        if origin is None:
            return error
        return ModelError(
            f"the constant {origin.operator} cannot be computed: its result is not finite, "
            f"and {node.operator} {node.name} computes with it",
            where=origin.where,
            fix="check the constants that it reads",
        )


def is_finite(value: object) -> bool:
    """Whether a constant has no element that is infinite or NaN; values that depend on the secret have none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return True
    return bool(np.isfinite(value).all())
