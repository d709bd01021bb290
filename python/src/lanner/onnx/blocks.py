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
    x, block = _blocks(node)
    mode = node.attr("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.unsupported("mode", f"is {mode}; DCR and CRD are supported")
    channels, height, width = x.shape
    if channels % (block * block):
        raise node.unsupported("blocksize", f"is {block}, which does not divide {channels} channels twice")
    depth = channels // (block * block)
    split, order = (
        ((block, block, depth), (2, 3, 0, 4, 1)) if mode == "DCR" else ((depth, block, block), (0, 3, 1, 4, 2))
    )
    blocks = graph.transpose(graph.reshape(x, (*split, height, width)), order)
    return graph.reshape(blocks, (depth, height * block, width * block))


@lowers("SpaceToDepth")
def lower_space_to_depth(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``SpaceToDepth``: x (c, h b, w b); the result is (b b c, h, w).

    Raises:
        UnsupportedOpError: If the block does not fit the image.
    """
    x, block = _blocks(node)
    channels, height, width = x.shape
    if height % block or width % block:
        raise node.unsupported("blocksize", f"is {block}, which does not divide an image of {height} x {width}")
    sides = (channels, height // block, block, width // block, block)
    blocks = graph.transpose(graph.reshape(x, sides), (2, 4, 0, 1, 3))
    return graph.reshape(blocks, (channels * block * block, sides[1], sides[3]))


def _blocks(node: Node) -> tuple[Wire, int]:
    x, block = node.wire(0), int(node.attr("blocksize", 0))
    if len(x.shape) != 3:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; an image is needed")
    if block < 1:
        raise node.unsupported("blocksize", f"is {block}; a number from 1 is needed")
    return x, block
