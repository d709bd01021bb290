"""Operators that may only end a network.

What the client learns is the output policy's to decide, so a final softmax or arg-max is taken off: the policy computes
the label or the probability from the logits.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from lanner.onnx.builder import Wire
from lanner.onnx.node import Node

ENDINGS = ("Softmax", "LogSoftmax", "ArgMax")

#: Behind an ending these show the same numbers in another shape; the conversion of old opsets adds them.
_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")


def take_endings(nodes: Iterable[onnx.NodeProto], output: str) -> tuple[str, list[onnx.NodeProto]]:
    """The name of the logits, and the final operators between them and the output, the first one first."""
    producers = {name: node for node in nodes for name in node.output}
    node = producers.get(output)
    while node is not None and _is_any_of(node, _VIEWS):
        node = producers.get(node.input[0])
    logits, endings = output, []
    while node is not None and _is_any_of(node, ENDINGS):
        endings.append(node)
        logits = node.input[0]
        node = producers.get(logits)
    return logits, endings[::-1]


def _is_any_of(node: onnx.NodeProto, operators: Iterable[str]) -> bool:
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def check_ending(node: Node, logits: Wire) -> None:
    """Check that a final operator picks among one sample's logits.

    Raises:
        UnsupportedOpError: If it works along another axis, or breaks ties otherwise than to the lowest index.
    """
    axis = node.attr("axis", 0 if node.operator == "ArgMax" else -1)
    rank = len(logits.shape) + 1
    # Trailing axes of one element, as after global pooling, do not change which axis holds the classes.
    if axis % rank == 0 or logits.shape[axis % rank - 1] != logits.size:
        raise node.unsupported("axis", f"is {axis}; it must be the axis of the classes")
    if node.operator == "ArgMax":
        node.require("select_last_index", 0)
