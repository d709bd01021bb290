"""The size of a batch, as a number: what is computed from it holds for one sample alone, and is refused.

Files ask for the shape of a value to reshape others to it. Such constants are computed twice, for a batch of one and
of two. What is the same follows from a sample's own shape; what is not may be the shape that a value takes, or a row
repeated for each sample, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.builder import Wire
from lanner.onnx.folding import BATCH, fold
from lanner.onnx.node import Node
from lanner.onnx.registry import RECURRENT, SEQUENCE_LENS

#: The other size that constants are computed for.
OTHER = 2

#: Operators whose inputs behind the first are sizes and places; the lowerings see to it that samples stay apart.
_OF_SIZES = {"Reshape", "Expand", "Slice", "Resize", "Upsample"}


class BatchSize:
    """The constants met so far that depend on the batch's size.

    Args:
        opsets: Those of the model.
        free: Whether the file leaves the size open; where it is one, it is a constant as any other.
    """

    def __init__(self, opsets: Sequence[onnx.OperatorSetIdProto], *, free: bool) -> None:
        self._opsets = opsets
        self._free = free
        # The value for `OTHER` samples; None where it cannot be computed.
        self._values: dict[str, NDArray[np.generic] | None] = {}

    @property
    def changing(self) -> Mapping[str, object]:
        """The constants that depend on the size, by name."""
        return self._values

    def follow(self, node: Node, folded: dict[str, NDArray[np.generic]]) -> None:
        """Note what of a node that is known already depends on the size."""
        asks = any(isinstance(value, Wire) for value in node.inputs)
        if not self._free or not (asks or self._values.keys() & set(node.proto.input)):
            return
        others = self._fold(node)
        for name, value in folded.items():
            other = others.get(name)
            if other is None or not (other.shape == value.shape and np.array_equal(other, value)):
                self._values[name] = other

    def check(self, node: Node) -> None:
        """Check that a node that runs takes no such constant as numbers.

        Raises:
            UnsupportedOpError: Naming the input that is one.
        """
        for index, (name, value) in enumerate(zip(node.proto.input, node.inputs, strict=True)):
            if name not in self._values or not isinstance(value, np.ndarray):
                continue
            sizes = node.operator in _OF_SIZES and index > 0 and value.dtype.kind in "iu"
            gathers = node.operator == "GatherND" and index == 1
            if sizes or (gathers and names_each(value, self._values[name])) or (index == 1 and gathers_rows(node)):
                continue
            if not _is_repeated(value, self._values[name], _place_of_batch(node, index)):
                raise node.unsupported(
                    f"input {index}",
                    "depends on the size of the batch; samples are computed one at a time",
                    "export the model without the size of the batch in its arithmetic",
                )

    def for_two(self, node: Node) -> Mapping[str, NDArray[np.generic] | None] | None:
        """The inputs of a node that depend on the size, for a batch of two, as `Node` has them."""
        return {name: self._values[name] for name in node.proto.input if name in self._values} if self._free else None

    def _fold(self, node: Node) -> dict[str, NDArray[np.generic]]:
        """The node's outputs for the other size; nothing where they cannot be computed."""
        inputs = [self._values.get(name, value) for name, value in zip(node.proto.input, node.inputs, strict=True)]
        lacks = any(value is None and name for name, value in zip(node.proto.input, inputs, strict=True))
        if lacks:
            return {}
        try:
            return fold(Node(node.proto, inputs), self._opsets, OTHER) or {}
        except ModelError:
            return {}


def _place_of_batch(node: Node, index: int) -> int | None:
    """The axis of a constant input that meets the batch of the others; None where none does."""
    if node.operator in RECURRENT and index == SEQUENCE_LENS:
        return 0
    widest = max((value for value in node.inputs if isinstance(value, Wire)), key=lambda wire: wire.rank)
    rank = np.asarray(node.constant(index)).ndim
    place = widest.axis + rank - widest.rank
    return place if rank > 1 and place >= 0 and not any(widest.merged) else None


def names_each(value: NDArray[np.generic], other: NDArray[np.generic] | None) -> bool:
    """Whether places in a batch name for each sample that sample itself, and the same places in it.

    Args:
        value: The places for a batch of one, (1, ..., k).
        other: Those for a batch of two.
    """
    if value.ndim < 2 or value.shape[0] != BATCH or other is None or value[..., 0].any():
        return False
    first, second = value[..., :1], value[..., 1:]
    named = np.concatenate([np.concatenate([first + place, second], axis=-1) for place in range(OTHER)])
    return other.shape == named.shape and np.array_equal(other, named)


def gathers_rows(node: Node) -> bool:
    """Whether a ``Gather`` along rows of all samples, (n * rows, ...), takes the same rows of each sample for itself.

    So exporters write ``x[batch, place]`` with the batch's own numbers: as one place of the flattened two axes.
    """
    x = node.inputs[0]
    if node.operator != "Gather" or not isinstance(x, Wire) or x.merged != (False, True) or x.batch:
        return False
    places = np.asarray(node.constant(1))
    if node.attr("axis", 0) % x.rank or places.ndim < 2 or places.shape[0] != BATCH:
        return False
    rows = x.shape[0]
    if not places.size or places.min() < 0 or places.max() >= rows:
        return False
    if node.for_two is None:
        return True
    other = node.for_two.get(node.proto.input[1])
    named = np.concatenate([places + sample * rows for sample in range(OTHER)])
    return other is not None and other.shape == named.shape and np.array_equal(other, named)


def _is_repeated(value: NDArray[np.generic], other: NDArray[np.generic] | None, axis: int | None) -> bool:
    """Whether a constant is the same for each sample along an axis."""
    if other is None or axis is None or value.shape[axis] != BATCH:
        return False
    repeated = np.repeat(value, OTHER, axis)
    return other.shape == repeated.shape and np.array_equal(other, repeated)
