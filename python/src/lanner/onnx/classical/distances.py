"""Sums of squares: distances over deviations, as Gaussian models have them, and terms that are operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import Edit, attributes, axes_of, is_of

#: The most entries of the matrix that divides columns by deviations.
_MOST_ENTRIES = 1 << 24


def simplify_distances(edit: Edit) -> None:
    """Divide before squaring, and let every ``Gemm`` have a constant term."""
    edit.each(_divided_first)
    edit.each(_with_constant_term)


def _divided_first(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """Sums of ``(x - m)^2 / v`` over the columns, for each class, as those of the squares of ``x / s - m / s``.

    With s the root of v, numbers of one size are squared, and a matrix gives them, which takes the columns' own units.
    """
    if not is_of(node, ("ReduceSum",)) or axes_of(edit, node) not in ([2], [-1]):
        return None
    quotient = edit.maker(node.input[0], "Div")
    square = None if quotient is None else edit.maker(quotient.input[0], "Pow")
    less = None if square is None else edit.maker(square.input[0], "Sub")
    reshaped = None if less is None else edit.maker(less.input[0], "Reshape")
    if quotient is None or square is None or less is None or reshaped is None:
        return None
    variance, mean = edit.constant(quotient.input[1]), edit.constant(less.input[1])
    shape = edit.constant(reshaped.input[1])
    if variance is None or mean is None or shape is None or edit.number(square.input[1]) != 2.0:
        return None
    if mean.ndim != 3 or variance.shape != mean.shape or shape.tolist() != [-1, 1, mean.shape[2]]:
        return None
    _, classes, columns = mean.shape
    if mean.shape[0] != 1 or classes * columns**2 > _MOST_ENTRIES or not (variance.astype(np.float64) > 0).all():
        return None
    name, kept = node.name or node.output[0], bool(attributes(node).get("keepdims", 1))
    inverse = 1.0 / np.sqrt(variance[0].astype(np.float64))
    weight = np.zeros((columns, classes, columns), np.float32)
    weight[np.arange(columns), :, np.arange(columns)] = inverse.T
    matrix = edit.hold(weight.reshape(columns, -1), f"{name}_matrix")
    term = edit.hold((-mean[0] * inverse).astype(np.float32).ravel(), f"{name}_term")
    centred, squared, apart = (edit.fresh(f"{name}_{part}") for part in ("centred", "squared", "apart"))
    shape_of = edit.hold(np.array([-1, classes, columns], np.int64), f"{name}_shape")
    # Sums of a class keep every bit of the squares, where a matrix of ones would have weights.
    return [
        helper.make_node("Gemm", [reshaped.input[0], matrix, term], [centred], name=centred),
        helper.make_node("Mul", [centred, centred], [squared], name=squared),
        helper.make_node("Reshape", [squared, shape_of], [apart], name=apart),
        edit.sum_along(apart, node.output[0], 2, int(kept)),
    ]


def _with_constant_term(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """A ``Gemm`` whose third operand is computed, as a sum; of zeros there is none."""
    if not is_of(node, ("Gemm",)) or len(node.input) < 3 or not node.input[2]:
        return None
    term, held = node.input[2], attributes(node)
    if edit.constant(term) is not None or held.get("beta", 1.0) != 1.0:
        return None
    nothing = edit.maker(term, "Mul")
    if nothing is not None and 0.0 in map(edit.number, nothing.input):
        return [helper.make_node("Gemm", node.input[:2], node.output, name=node.name, **held)]
    if edit.maker(term) is None:
        return None
    product = edit.fresh(f"{node.output[0]}_product")
    return [
        helper.make_node("Gemm", node.input[:2], [product], name=f"{node.name}_product", **held),
        helper.make_node("Add", [product, term], node.output, name=node.name),
    ]
