"""One ONNX node as a lowering sees it: its attributes and its inputs' values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError, Refusal, UnsupportedOpError
from lanner.onnx.builder import Wire

if TYPE_CHECKING:
    from lanner.onnx.registry import Value

T = TypeVar("T")


#: What to do about a node of which nothing more is known.
_CHANGE = "change this part of the model; docs/operators.md lists what is accepted"

#: What to do about an operator that behaves as in training.
FOR_PREDICTION = "export the model as it predicts; in PyTorch, call model.eval() before the export"


class NotFiniteError(ModelError):
    """Weights that a node computes with are NaN or infinite.

    Attributes:
        index: Which of its inputs holds them.
    """

    index: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node and what its inputs are.

    Attributes:
        proto: The node of the ONNX file.
        inputs: A value per input; None where an optional input is absent.
        for_two: Those constants by name that depend on the size of the batch, as they are for a batch of two, None
            where that is not known; None in place of all where the file fixes a batch of one.
    """

    proto: onnx.NodeProto
    inputs: Sequence[Value | None]
    for_two: Mapping[str, NDArray[np.generic] | None] | None = field(default_factory=dict)

    def reading(self, inputs: Sequence[Value | None], proto: onnx.NodeProto | None = None) -> Node:
        """The same node with other inputs, and other attributes where they are given."""
        return replace(self, inputs=inputs, proto=proto or self.proto)

    @property
    def operator(self) -> str:
        """The ONNX operator's name."""
        return self.proto.op_type

    @property
    def qualified_operator(self) -> str:
        """The operator's name, behind its domain where that is not ONNX's own."""
        domain = self.proto.domain
        return self.operator if domain in ("", "ai.onnx") else f"{domain}.{self.operator}"

    @property
    def name(self) -> str:
        """The node's name; a node without one goes by its first output."""
        return self.proto.name or next(filter(None, self.proto.output), "")

    def attr(self, name: str, default: T) -> T:
        """An attribute's value, or its default; text is decoded."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                value: Any = onnx.helper.get_attribute_value(attribute)
                return cast(T, value.decode() if isinstance(value, bytes) else value)
        return default

    def wire(self, index: int) -> Wire:
        """The input that depends on the secret.

        Raises:
            UnsupportedOpError: If this input is a constant.
        """
        value = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(value, Wire):
            raise self.unsupported(f"input {index}", "must come from the model's input")
        return value

    def constant(self, index: int) -> NDArray[np.generic] | None:
        """An input that is known at compile time; None where it is absent.

        Raises:
            UnsupportedOpError: If this input depends on the secret.
        """
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Wire):
            raise self.unsupported(f"input {index}", "must be a constant")
        return value

    def weight(self, index: int) -> NDArray[np.float32]:
        """An input that holds weights, as finite float32.

        Raises:
            UnsupportedOpError: If it depends on the secret.
            ModelError: If it is absent or not finite.
        """
        weight = self.number(index)
        if not np.isfinite(weight).all():
            raise self.not_finite(index)
        return weight

    def number(self, index: int) -> NDArray[np.float32]:
        """An input that is known at compile time, as float32, which may be infinite or NaN.

        Raises:
            UnsupportedOpError: If it depends on the secret.
            ModelError: If it is absent.
        """
        value = self.constant(index)
        if value is None:
            raise ModelError(f"{self.operator} has no input {index}", where=self.where)
        with np.errstate(over="ignore"):
            return np.asarray(value, dtype=np.float32)

    def not_finite(self, index: int) -> NotFiniteError:
        """The error that names an input that is NaN or infinite."""
        what = f"input {index} of {self.operator} holds NaN or infinite weights"
        error = NotFiniteError(what, where=self.where, fix="train or export the model again")
        error.index = index
        return error

    @property
    def where(self) -> str:
        """The node as an error names it."""
        return f"node {self.name}"

    def unsupported(self, attribute: str, reason: str, fix: str = "") -> UnsupportedOpError:
        """The error that names the node, the operator and the attribute."""
        what, fix = f"{attribute} of {self.operator} {reason}", fix or _CHANGE
        refusal = Refusal(what, self.where, self.name, self.qualified_operator, attribute, fix)
        return UnsupportedOpError(what, where=self.where, fix=fix, nodes=[refusal])

    def require(self, attribute: str, default: object, fix: str = "") -> None:
        """Check that an attribute has its default value; `fix` says how it gets it.

        Raises:
            UnsupportedOpError: If it has not.
        """
        value = self.attr(attribute, default)
        if value != default:
            raise self.unsupported(attribute, f"is {value}; only {default} is supported", fix)

    def single_output(self) -> None:
        """Check that only the first output is used.

        Raises:
            UnsupportedOpError: Naming the first further output.
        """
        further = [name for name in self.proto.output[1:] if name]
        if further:
            raise self.unsupported(f"output {further[0]}", "is not supported")


def with_attributes(proto: onnx.NodeProto, **values: object) -> onnx.NodeProto:
    """A node with other values of some attributes."""
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    kept = [entry for entry in proto.attribute if entry.name not in values]
    del copy.attribute[:]
    copy.attribute.extend([*kept, *(onnx.helper.make_attribute(name, value) for name, value in values.items())])
    return copy
