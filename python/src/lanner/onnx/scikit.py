"""scikit-learn's operators, of ONNX's domain ai.onnx.ml: scalers, linear models and the choice of columns."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from lanner.errors import spelled
from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.comparison import negation
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers

#: What to do about words.
_WORDS = "encode the words before the prediction, and export the model behind that"


@lowers("ai.onnx.ml.Scaler")
def lower_scaler(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Scaler``: ``(x - offset) * scale``, each of one number or of one per column; the result has x's shape.

    Raises:
        UnsupportedOpError: If there are other numbers of them.
    """
    x = node.wire(0)
    for name, default in (("offset", 0.0), ("scale", 1.0)):
        values = _floats(node, name, default)
        if len(values) not in (1, x.shape[-1]):
            raise node.unsupported(name, f"holds {len(values)} numbers; 1 or {x.shape[-1]} are needed")
        x = graph.add_constant(x, -values) if name == "offset" else graph.multiply_constant(x, values)
    return x


@lowers("ai.onnx.ml.LinearRegressor")
def lower_linear_regressor(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``LinearRegressor``: x (k,); the result is (targets,).

    Raises:
        UnsupportedOpError: If a post transform is asked for, or the coefficients do not fit.
    """
    node.require("post_transform", "NONE")
    return _linear(node, graph, int(node.attr("targets", 1)))


@lowers("ai.onnx.ml.LinearClassifier")
def lower_linear_classifier(node: Node, graph: GraphBuilder) -> tuple[Wire | None, Wire]:
    """Lower ``LinearClassifier`` to its scores, its second output: x (k,); the result is (classes,).

    A post transform at the network's end was taken off before (`lanner.onnx.split`).

    Raises:
        UnsupportedOpError: If its first output, the label, is used, a post transform is left, or the coefficients do
            not fit.
    """
    if node.proto.output[0]:
        fix = spelled("name the scores with ⟦output_name⟧")
        raise node.unsupported(f"output {node.proto.output[0]}", "is a label", fix)
    node.require("post_transform", "NONE")
    none: list[object] = []
    labels = node.attr("classlabels_ints", none) or node.attr("classlabels_strings", none)
    return None, _linear(node, graph, len(labels))


@lowers("ai.onnx.ml.ArrayFeatureExtractor")
def lower_array_feature_extractor(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ArrayFeatureExtractor``: columns, the last axis, in the order of constant indices.

    Raises:
        UnsupportedOpError: If the indices are not constant, or there is no such column.
    """
    x = node.wire(0)
    columns = [int(index) for index in np.ravel(np.asarray(node.constant(1)))]
    if not columns or not all(0 <= column < x.shape[-1] for column in columns):
        raise node.unsupported("input 1", f"is {columns}; indices below {x.shape[-1]} are needed")
    whole = tuple(range(side) for side in x.shape[:-1])
    parts = tuple(graph.slice(x, (*whole, pick)) for pick in _as_ranges(columns))
    return parts[0] if len(parts) == 1 else graph.concat(parts, len(x.shape) - 1)


@lowers("ai.onnx.ml.Imputer")
def lower_imputer(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Imputer``: of numbers it leaves all but those that stand for missing ones, which become others.

    A missing number itself, NaN, is none that a network's input may hold, so nothing is replaced then.

    Raises:
        UnsupportedOpError: If there are other numbers of what is put in the place of others.
    """
    x = node.wire(0)
    whole = "imputed_value_int64s"
    fills = _floats(node, whole) if node.attr(whole, list[int]()) else _floats(node, "imputed_value_floats")
    gone = float(node.attr("replaced_value_int64" if node.attr(whole, list[int]()) else "replaced_value_float", 0))
    if not np.isfinite(gone):
        return x
    if len(fills) not in (1, x.shape[-1]):
        raise node.unsupported("imputed_value_floats", f"holds {len(fills)} numbers; 1 or {x.shape[-1]} are needed")
    return graph.add(x, graph.multiply_constant(_equals(graph, x, gone), fills - np.float32(gone)))


@lowers("ai.onnx.ml.OneHotEncoder")
def lower_one_hot_encoder(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``OneHotEncoder`` of numbers, by comparisons: x (...); the result is (..., categories).

    Raises:
        UnsupportedOpError: If its categories are words.
    """
    x, categories = node.wire(0), [float(each) for each in node.attr("cats_int64s", list[int]())]
    if not categories:
        raise node.unsupported("cats_strings", "holds words; lanner computes on numbers only", _WORDS)
    parts = [graph.reshape(_equals(graph, x, each), (*x.shape, 1)) for each in categories]
    return graph.concat(tuple(parts), len(x.shape))


def _equals(graph: GraphBuilder, x: Wire, number: float) -> Wire:
    """Add 1 where x is a number, else 0."""
    less = graph.shift(x, -number)
    return negation(graph, graph.add(graph.step(less), graph.step(graph.negate(less))))


def _linear(node: Node, graph: GraphBuilder, rows: int) -> Wire:
    x = node.wire(0)
    coefficients, intercepts = _floats(node, "coefficients"), _floats(node, "intercepts")
    if len(x.shape) != 1 or len(coefficients) != rows * x.size:
        raise node.unsupported(
            "coefficients", f"holds {len(coefficients)} numbers; {rows} rows that fit {x.batch_shape} are needed"
        )
    if len(intercepts) not in (0, rows):
        raise node.unsupported("intercepts", f"holds {len(intercepts)} numbers; {rows} are needed")
    return graph.matmul(x, coefficients.reshape(rows, x.size).T, intercepts if len(intercepts) else None)


def _floats(node: Node, name: str, *default: float) -> NDArray[np.float32]:
    return np.array(node.attr(name, []) or default, np.float32)


def _as_ranges(indices: list[int]) -> list[range]:
    """The fewest ranges, taken greedily, that yield the indices one after another."""
    ranges: list[range] = []
    for index, following in itertools.zip_longest(indices, indices[1:]):
        last = ranges[-1] if ranges else None
        if last is not None and len(last) > 0 and index == last.start + last.step * len(last):
            ranges[-1] = range(last.start, index + last.step, last.step)
        else:
            step = 1 if following is None or following == index else following - index
            ranges.append(range(index, index + step, step))
    return ranges
