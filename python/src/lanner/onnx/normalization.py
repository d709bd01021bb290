"""Normalization: by the statistics that training left, and by a sample's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.errors import ModelError
from lanner.onnx.activation import absolute
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lines import Lines
from lanner.onnx.movement import sample_axis
from lanner.onnx.node import FOR_PREDICTION, Node
from lanner.onnx.operands import broadcasts
from lanner.onnx.powers import never_negative, power
from lanner.onnx.registry import lowers

Array: TypeAlias = NDArray[np.float32]


@lowers("BatchNormalization")
def lower_batch_normalization(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``BatchNormalization``: ``(x - mean) / sqrt(var + epsilon) * scale + bias`` per channel.

    Shapes: x (c, ...), or (rows, c, ...) where rows of samples are merged, the four constants (c,); the result has x's
    shape.

    Raises:
        UnsupportedOpError: If it is in training mode, a statistic is not constant, or samples do not come first.
    """
    node.require("training_mode", 0, FOR_PREDICTION)
    node.single_output()
    x = node.wire(0)
    rows = sum(x.merged)
    if x.axis > 0:
        raise node.unsupported("input 0", f"has shape {x.batch_shape}; samples must come first", "transpose it before")
    channels = x.shape[rows : rows + 1]
    names = ("scale", "bias", "mean", "var")
    tensors = {name: node.weight(index) for index, name in enumerate(names, 1)}
    for name, tensor in tensors.items():
        if tensor.shape != channels:
            raise ModelError(f"{name} has shape {tensor.shape}, not {channels}", where=node.where)
    epsilon = float(node.attr("epsilon", 1e-5))
    if not rows:
        return graph.elementwise("BatchNorm", x, {"eps": epsilon}, dict(tensors))
    scale, bias, mean, var = (
        tensor.reshape(*channels, *(1,) * (len(x.shape) - rows - 1)) for tensor in tensors.values()
    )
    factor = scale / np.sqrt(var + np.float32(epsilon))
    y = graph.add_constant(graph.multiply_constant(x.apart(), factor), bias - mean * factor)
    return replace(y, batch=x.batch, merged=x.merged)


@lowers("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def lower_layer_normalization(node: Node, graph: GraphBuilder) -> tuple[Wire | None, ...]:
    """Lower ``LayerNormalization`` along the last axes, from one on, and ``RMSNormalization``, which takes no mean off.

    ``SimplifiedLayerNormalization`` is onnxruntime's name of the second one.

    Shapes: x (...), scale and bias of the last axes; the result has x's shape, the mean and the inverse deviation have
    sides of 1 there.

    Raises:
        UnsupportedOpError: If the axes hold the batch.
    """
    x = node.wire(0)
    lines = Lines.of(graph, x, range(sample_axis(node, x, node.attr("axis", -1)), len(x.shape)))
    normal = Normalized.of(graph, lines, float(node.attr("epsilon", 1e-5)), centred=node.operator[0] == "L")
    y = _affine(node, graph, normal.lines.back(graph), lambda constant: constant)
    told = zip((normal.mean, normal.inverse), node.proto.output[1:], strict=False)
    return (y, *(lines.reduced(graph, each, keepdims=True) if each and name else None for each, name in told))


@lowers("InstanceNormalization", "GroupNormalization")
def lower_group_normalization(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``InstanceNormalization`` and ``GroupNormalization`` of x (c, ...), with constants for each channel.

    Raises:
        UnsupportedOpError: If scale or bias is not constant, or groups do not fit.
    """
    x = node.wire(0)
    channels = x.shape[0]
    groups = int(node.attr("num_groups", 0)) if node.operator[0] == "G" else channels
    if groups < 1 or channels % groups:
        raise node.unsupported("num_groups", f"is {groups}, of {channels} channels")
    grouped = graph.reshape(x, (groups, x.size // groups))
    normal = Normalized.of(graph, Lines.of(graph, grouped, [1]), float(node.attr("epsilon", 1e-5)))
    y = graph.reshape(normal.lines.back(graph), x.shape)

    def of_channels(constant: Array) -> Array:
        if constant.shape != (channels,):
            raise node.unsupported("input 1", f"has shape {constant.shape}; one number for each channel is needed")
        return constant.reshape(channels, *(1,) * (len(x.shape) - 1))

    return _affine(node, graph, y, of_channels)


@lowers("MeanVarianceNormalization")
def lower_mean_variance_normalization(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``MeanVarianceNormalization`` along axes of a sample; the result has x's shape.

    Raises:
        UnsupportedOpError: If the axes hold the batch, as those do that it has where none are given.
    """
    x = node.wire(0)
    rank = len(x.shape) + 1
    axes = node.attr("axes", [0, 2, 3])
    if not axes or not all(-rank <= axis < rank and axis % rank for axis in axes):
        raise node.unsupported("axes", f"is {list(axes)}; samples must stay apart")
    lines = Lines.of(graph, x, sorted({axis % rank - 1 for axis in axes}))
    # A deviation of 1e-9 is added there, where variances have one of its square.
    return Normalized.of(graph, lines, 1e-18).lines.back(graph)


@lowers("LpNormalization")
def lower_lp_normalization(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LpNormalization`` along one axis: x over the sum of magnitudes, or over the root of that of squares.

    Raises:
        UnsupportedOpError: If the axis is the batch, or p is neither 1 nor 2.
    """
    x = node.wire(0)
    axis, p = sample_axis(node, x, node.attr("axis", -1)), node.attr("p", 2)
    if p not in (1, 2):
        raise node.unsupported("p", f"is {p}; 1 and 2 are supported")
    lines = Lines.of(graph, x, [axis])
    return lines.over(graph.matrix_product(lines.image, _inverse_norm(graph, lines, p))).back(graph)


@lowers("ai.onnx.ml.Normalizer")
def lower_normalizer(node: Node, graph: GraphBuilder) -> Wire:
    """Lower scikit-learn's ``Normalizer``: a row over its largest element, or over a norm; rows of zeros stay.

    Shapes: x (k,) or (..., k); the result has x's shape.

    Raises:
        UnsupportedOpError: If it has another norm, or the largest element of what may be negative.
    """
    x, norm = node.wire(0), node.attr("norm", "MAX")
    lines = Lines.of(graph, x, [len(x.shape) - 1])
    if norm == "MAX":
        if not never_negative(graph, x):
            what = "is MAX, which divides by the largest element, and that may be near 0 where elements may be negative"
            raise node.unsupported("norm", what, "train the model with norm l1 or l2")
        inverse = power(graph, lines.largest(graph), -1.0)
    elif norm in ("L1", "L2"):
        inverse = _inverse_norm(graph, lines, 1 if norm == "L1" else 2)
    else:
        raise node.unsupported("norm", f"is {norm}; MAX, L1 and L2 are supported")
    return lines.over(graph.matrix_product(lines.image, inverse)).back(graph)


@lowers("LRN")
def lower_local_response(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LRN``: x over a power of a sum of squares of neighbouring channels, which do not reach beyond the ends.

    Shapes: x (c, ...); the result has x's shape.

    Raises:
        UnsupportedOpError: If the window has no channel, or bias is not above 0.
    """
    x, size = node.wire(0), int(node.attr("size", 0))
    alpha, beta, bias = float(node.attr("alpha", 1e-4)), float(node.attr("beta", 0.75)), float(node.attr("bias", 1.0))
    if size < 1:
        raise node.unsupported("size", f"is {size}; a number from 1 is needed")
    if bias <= 0.0 or alpha < 0.0:
        raise node.unsupported("bias", f"is {bias:g} with an alpha of {alpha:g}; a sum above 0 is needed")
    columns = graph.reshape(x, (1, x.shape[0], x.size // x.shape[0]))
    pads = [(size - 1) // 2, 0, size // 2, 0]
    attributes = {"kernel": [size, 1], "strides": [1, 1], "pads": pads, "count_include_pad": True}
    mean = graph.add_node("AveragePool", (graph.square(columns),), columns.shape, attributes)
    divided = graph.multiply(columns, power(graph, graph.scale(mean, alpha), -beta, bias))
    return graph.reshape(divided, x.shape)


@dataclass(frozen=True, slots=True)
class Normalized:
    """Lines less their means, over their standard deviations.

    Attributes:
        lines: The result.
        mean: Each line's mean, (lines, 1, 1); None where it was not taken off.
        inverse: The inverse of each line's standard deviation, (lines, 1, 1).
    """

    lines: Lines
    mean: Wire | None
    inverse: Wire

    @staticmethod
    def of(graph: GraphBuilder, lines: Lines, epsilon: float, *, centred: bool = True) -> Normalized:
        """Add what normalises lines, epsilon being added to their variances."""
        mean = lines.mean(graph) if centred else None
        x = lines.image if mean is None else graph.subtract(lines.image, lines.along(graph, mean))
        variance = lines.over(graph.square(x)).mean(graph)
        inverse = power(graph, variance, -0.5, epsilon)
        return Normalized(lines.over(graph.matrix_product(x, inverse)), mean, inverse)


def _inverse_norm(graph: GraphBuilder, lines: Lines, p: int) -> Wire:
    """Add one over the norm of each line, of magnitudes or of squares: (lines, 1, 1)."""
    of_each = absolute(graph, lines.image) if p == 1 else graph.square(lines.image)
    return power(graph, lines.over(of_each).sum(graph), -1.0 / p)


def _affine(node: Node, graph: GraphBuilder, y: Wire, shaped: Callable[[Array], Array]) -> Wire:
    """Multiply by a node's scale and add its bias, where they are, in a shape that broadcasts to y's."""
    for index, combine in ((1, graph.multiply_constant), (2, graph.add_constant)):
        if len(node.inputs) > index and node.inputs[index] is not None:
            constant = shaped(node.weight(index))
            if not broadcasts(constant.shape, y.shape):
                raise node.unsupported(f"input {index}", f"has shape {constant.shape}, which does not fit {y.shape}")
            # A scale of ones, or a bias of zeros, would be a layer that does nothing.
            neutral = (constant == (1.0 if index == 1 else 0.0)).all()
            y = y if neutral else combine(y, constant)
    return y
