"""Channels as places of an image, and places as channels."""

from __future__ import annotations

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("DepthToSpace")
def lower_depth_to_space(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``DepthToSpace`` in modes ``DCR`` and ``CRD``: x (c b b, h, w); the result is (c, h b, w b).

    Raises:
        UnsupportedOpError: If the mode is another, or the channels do not fit the block.
    """
    x, block, depth_first = _blocks(node)
    channels, height, width = x.shape
    if channels % (block * block):
        raise node.unsupported("blocksize", f"is {block}, and {channels} channels are no multiple of its square")
    depth = channels // (block * block)
    split, order = ((block, block, depth), (2, 3, 0, 4, 1)) if depth_first else ((depth, block, block), (0, 3, 1, 4, 2))
    blocks = graph.transpose(graph.reshape(x, (*split, height, width)), order)
    return graph.reshape(blocks, (depth, height * block, width * block))


@lowers("SpaceToDepth")
def lower_space_to_depth(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``SpaceToDepth`` in modes ``DCR`` and ``CRD``: x (c, h b, w b); the result is (c b b, h, w).

    Raises:
        UnsupportedOpError: If the mode is another, or the block does not fit the image.
    """
    x, block, depth_first = _blocks(node)
    channels, height, width = x.shape
    if height % block or width % block:
        raise node.unsupported("blocksize", f"is {block}, which does not divide an image of {height} x {width}")
    sides = (channels, height // block, block, width // block, block)
    order = (2, 4, 0, 1, 3) if depth_first else (0, 2, 4, 1, 3)
    blocks = graph.transpose(graph.reshape(x, sides), order)
    return graph.reshape(blocks, (channels * block * block, sides[1], sides[3]))


def _blocks(node: Node) -> tuple[Wire, int, bool]:
    """The image, the side of a block, and whether the places of a block are the slowest axis of the channels."""
    x, block, mode = node.wire(0), int(node.attr("blocksize", 0)), node.attr("mode", "DCR")
    if len(x.shape) != 3:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; an image is needed")
    if block < 1:
        raise node.unsupported("blocksize", f"is {block}; a number from 1 is needed")
    if mode not in ("DCR", "CRD"):
        raise node.unsupported("mode", f"is {mode}; DCR and CRD are supported")
    return x, block, mode == "DCR"
