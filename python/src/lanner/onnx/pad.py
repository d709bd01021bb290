"""Padding: with a constant, or with the value's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.movement import integers
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.selection import pick


@lowers("Pad")
def lower_pad(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Pad``; negative pads cut off first.

    A constant other than 0 is added to zeros; what reflects, repeats the edge or wraps around is picked from the value.

    Raises:
        UnsupportedOpError: If the mode is unknown, samples are added, or nothing is left.
    """
    x, mode = node.wire(0), node.attr("mode", "constant")
    if mode not in ("constant", *_OWN):
        raise node.unsupported("mode", f"is {mode}; constant, {', '.join(_OWN)} are supported")
    before, after = _pads(node, len(x.shape) + 1)
    if before[0] or after[0]:
        raise node.unsupported("pads", "adds samples to the batch")
    kept = tuple(
        range(max(-low, 0), side - max(-high, 0))
        for low, side, high in zip(before[1:], x.shape, after[1:], strict=True)
    )
    if not all(kept):
        raise node.unsupported("pads", f"leaves nothing of {x.shape}")
    added = [(max(low, 0), max(high, 0)) for low, high in zip(before[1:], after[1:], strict=True)]
    inside = graph.slice(x, kept)
    if mode != "constant":
        return _with_own_elements(node, graph, inside, mode, added)
    return pad_with(graph, inside, added, 0.0 if node.constant(2) is None else float(node.weight(2).reshape(())))


def pad_with(graph: GraphBuilder, x: Wire, added: Sequence[tuple[int, int]], value: float) -> Wire:
    """Put a constant around x, as often before and after each axis as given."""
    padded = graph.pad(x, tuple(low for low, _ in added), tuple(high for _, high in added))
    if value == 0.0 or padded is x:
        return padded
    return graph.add_constant(padded, np.pad(np.zeros(x.shape, np.float32), added, constant_values=value))


def _with_own_elements(node: Node, graph: GraphBuilder, x: Wire, mode: str, added: list[tuple[int, int]]) -> Wire:
    for axis, (side, (low, high)) in enumerate(zip(x.shape, added, strict=True)):
        if mode == "reflect" and max(low, high) >= side:
            raise node.unsupported("pads", f"is {max(low, high)}, where reflection has {side - 1} elements")
        if low or high:
            graph.check_size([low + side + high])
            # "reflect", "edge" and "wrap" are NumPy's names, too.
            places = np.pad(np.arange(side), (low, high), mode=cast(Any, mode))
            x = pick(graph, x, axis, places.tolist())
    return x


def _pads(node: Node, rank: int) -> tuple[list[int], list[int]]:
    """Pads before and after, per axis, with the batch axis."""
    pads, axes = integers(node, 1) or [], integers(node, 3)
    axes = list(range(rank)) if axes is None else axes
    if len(pads) != 2 * len(axes) or not all(-rank <= axis < rank for axis in axes):
        raise node.unsupported("pads", f"is {pads}; two numbers per axis are needed")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[len(axes) + position]
    return before, after


#: Modes that pad with the value's own elements.
_OWN = ("reflect", "edge", "wrap")
