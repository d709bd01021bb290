"""Which tensors trees read, and which of them are the same, or columns of one another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray

from lanner.onnx.node import Node

#: More columns than any table has.
_MOST = 1 << 20


class Tables:
    """The tensors of a graph that hold columns.

    Args:
        graph: The graph.
        constants: Its initializers.
    """

    def __init__(self, graph: onnx.GraphProto, constants: Mapping[str, NDArray[np.generic]]) -> None:
        self._constants = constants
        self._producers = {name: node for node in graph.node for name in node.output if name}
        self._widths: dict[str, int | None] = {
            entry.name: entry.type.tensor_type.shape.dim[1].dim_value or None
            for entry in graph.input
            if len(entry.type.tensor_type.shape.dim) > 1
        }
        self._same: dict[str, str] = {}
        known: dict[object, str] = {}
        # In the file's order, which is topological.
        for node in graph.node:
            if len(node.output) != 1:
                continue
            name, read = node.output[0], tuple(map(self.same, node.input))
            attributes = tuple(sorted(entry.SerializeToString() for entry in node.attribute))
            if node.op_type == "Identity":
                self._same[name] = read[0]
            else:
                self._same[name] = known.setdefault((node.domain, node.op_type, read, attributes), name)
            self._widths[name] = self._counted(node)

    def same(self, name: str) -> str:
        """The first tensor that is computed as this one is."""
        return self._same.get(name, name)

    def whole(self, name: str) -> tuple[str, NDArray[np.int64] | None]:
        """The tensor whose columns this one's are, and which they are; None where they are all."""
        picked: NDArray[np.int64] | None = None
        while (node := self._producers.get(name)) is not None and (places := self._picked(node)) is not None:
            width = self.width(node.input[0])
            if width is None or not ((places >= -width) & (places < width)).all():
                break
            places = places % width
            picked = places if picked is None else places[picked]
            name = node.input[0]
        return name, picked

    def width(self, name: str) -> int | None:
        """How many columns a tensor has; None where that is not known."""
        return self._widths.get(name)

    def _counted(self, node: onnx.NodeProto) -> int | None:
        """How many columns a node's output has."""
        places = self._picked(node)
        if places is not None:
            return len(places)
        widths = [self.width(each) for each in node.input if each not in self._constants]
        if not widths or None in widths:
            return None
        joins = node.op_type in ("Concat", "FeatureVectorizer")
        width = sum(width or 0 for width in widths) if joins else widths[0] or 0
        return width if width <= _MOST else None

    def _picked(self, node: onnx.NodeProto) -> NDArray[np.int64] | None:
        """Which columns a node picks; None where it does something else."""
        along = node.op_type == "ArrayFeatureExtractor" or (
            node.op_type == "Gather" and Node(node, []).attr("axis", 0) in (1, -1)
        )
        held = self._constants.get(node.input[1]) if along and len(node.input) > 1 else None
        if held is None or (node.op_type == "Gather" and held.ndim != 1):
            return None
        return np.ravel(held).astype(np.int64)
