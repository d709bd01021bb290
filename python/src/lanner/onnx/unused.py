"""Leaves out nodes that no output depends on."""

from __future__ import annotations

import onnx

from lanner.onnx.bodies import names_read


def leave_out_unused(graph: onnx.GraphProto) -> None:
    """Leave out the nodes that no output of a graph depends on, in place."""
    needed, kept = {entry.name for entry in graph.output}, list[onnx.NodeProto]()
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed |= names_read(node)
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept[::-1])
