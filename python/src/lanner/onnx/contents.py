"""What a model's graphs hold, those in loops and branches included."""

from __future__ import annotations

from collections.abc import Iterator

import onnx


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and all graphs that are attributes of its nodes."""
    yield graph
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from all_graphs(inner)


def constant_nodes(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """The tensors that the graph's own ``Constant`` nodes hold, by name."""
    return {
        node.output[0]: node.attribute[0].t
        for node in graph.node
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value"
    }


def all_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The initializers and the tensors that are attributes."""
    for inner in all_graphs(graph):
        yield from inner.initializer
        for attribute in (attribute for node in inner.node for attribute in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
