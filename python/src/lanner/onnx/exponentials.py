"""Softmax and its kin inside a network: exponentials of differences from the largest element, and their sums.

Differences are 0 or below, exponentials from 0 to 1, and a sum of k of them, of which one is 1, is from 1 to k. So the
domain of every function is known, and results are right whatever calibration saw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lines import Lines
from lanner.onnx.masks import Masked
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
    place = sample_axis(node, x, axis, "let it be another axis than the batch")
    if node.operator == "Softmax":
        return softmax_of(node, graph, x, place)
    lines = _lines(node, graph, x, place)
    return lines.over(Exponentials.of(graph, lines).logarithms(graph)).back(graph)


def softmax_of(node: Node, graph: GraphBuilder, x: Wire, axis: int) -> Wire:
    """Add the softmax of x, (...), along an axis, counted without the batch.

    Raises:
        UnsupportedOpError: If it has one element, or a mask leaves each line the same one.
    """
    masked = Masked.of(graph, x, axis)
    if masked is not None:
        return softmax_behind(node, graph, masked)
    lines = _lines(node, graph, x, axis)
    return lines.over(Exponentials.of(graph, lines).shares(graph)).back(graph)


def softmax_behind(node: Node, graph: GraphBuilder, masked: Masked) -> Wire:
    """Add the softmax of lines behind a mask, in the scores' shape.

    Raises:
        UnsupportedOpError: If the mask leaves each line the same one element.
    """
    if masked.lines.length == 1:
        raise node.unsupported("the mask", "leaves every row the same one position, which makes the result a constant")
    y = masked.back(graph, Exponentials.of(graph, masked.lines, masked.hidden).shares(graph))
    if masked.undefined is not None:
        graph.note_undefined(y, masked.undefined)
    return y


def _lines(node: Node, graph: GraphBuilder, x: Wire, axis: int) -> Lines:
    if x.shape[axis] == 1:
        told = node.attr("axis", -1)
        raise node.unsupported("axis", f"is {told}, whose one element makes the result a constant")
    return Lines.of(graph, x, [axis])


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
    def of(graph: GraphBuilder, lines: Lines, hidden: NDArray[np.float32] | None = None) -> Exponentials:
        """Add the exponentials of lines; `hidden` is added to the differences, none of which it raises above 0."""
        largest = lines.largest(graph)
        differences = graph.subtract(lines.image, lines.along(graph, largest))
        if hidden is not None:
            differences = graph.add_constant(differences, hidden)
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
