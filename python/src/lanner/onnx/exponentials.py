"""Softmax and its kin inside a network: exponentials of differences from the largest element, and their sums.

Differences are 0 or below, exponentials from 0 to 1, and a sum of k of them, of which one is 1, is from 1 to k. So the
domain of every function is known, and results are right whatever calibration saw.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lines import Lines
from lanner.onnx.movement import sample_axis
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Softmax", "LogSoftmax")
def lower_softmax(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Softmax`` and ``LogSoftmax`` along one axis; the result has x's shape.

    Raises:
        UnsupportedOpError: If the axis is the batch, or has one element.
    """
    x = node.wire(0)
    axis = node.attr("axis", -1)
    lines = Lines.of(graph, x, [sample_axis(node, x, axis, "let it be another axis than the batch")])
    if lines.length == 1:
        raise node.unsupported("axis", f"is {axis}, whose one element makes the result a constant")
    powers = Exponentials.of(graph, lines)
    if node.operator == "LogSoftmax":
        return lines.over(powers.logarithms(graph)).back(graph)
    return lines.over(powers.shares(graph)).back(graph)


@dataclass(frozen=True, slots=True)
class Exponentials:
    """The exponentials of lines' differences from their largest elements.

    Attributes:
        lines: The elements.
        largest: The largest element of each line, (lines, 1, 1).
        differences: What each element is above it, none of which is above 0.
        powers: The exponentials of the differences.
        sum: Their sum in each line, (lines, 1, 1).
    """

    lines: Lines
    largest: Wire
    differences: Wire
    powers: Wire
    sum: Wire

    @staticmethod
    def of(graph: GraphBuilder, lines: Lines) -> Exponentials:
        """Add the exponentials of lines."""
        largest = lines.largest(graph)
        differences = graph.subtract(lines.image, lines.along(graph, largest))
        powers = graph.within(differences, "Exp", high=0.0)
        return Exponentials(lines, largest, differences, powers, lines.over(powers).sum(graph))

    def shares(self, graph: GraphBuilder) -> Wire:
        """Add each exponential's share of its line's sum."""
        inverse = graph.within(self.sum, "Reciprocal", low=1.0, high=float(self.lines.length))
        return graph.matrix_product(self.powers, inverse)

    def logarithm(self, graph: GraphBuilder) -> Wire:
        """Add the logarithm of each line's sum, (lines, 1, 1)."""
        return graph.within(self.sum, "Log", low=1.0, high=float(self.lines.length))

    def logarithms(self, graph: GraphBuilder) -> Wire:
        """Add the logarithm of each exponential's share."""
        return graph.subtract(self.differences, self.lines.along(graph, self.logarithm(graph)))

    def total(self, graph: GraphBuilder) -> Wire:
        """Add the logarithm of the sum of the elements' own exponentials, (lines, 1, 1)."""
        return graph.add(self.largest, self.logarithm(graph))
