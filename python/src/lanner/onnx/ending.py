"""Operators that may only end a network.

What the client learns is the output policy's to decide, so a final softmax or arg-max is taken off: the policy computes
the label or the probability from the logits.
"""

from __future__ import annotations

from lanner.onnx.builder import Wire
from lanner.onnx.node import Node

ENDINGS = ("Softmax", "LogSoftmax", "ArgMax")


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
