"""Support vector machines: kernels of a row with each support vector, and weighted sums of these."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.node import Node
from lanner.onnx.reduction import sum_along
from lanner.onnx.registry import lowers
from lanner.onnx.selection import broadcast, pick

Array = NDArray[np.float32]

#: Kernels by the names that ONNX gives them.
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")

#: The highest power of a polynomial kernel.
_MOST_DEGREES = 8

#: The most products of columns that a polynomial kernel is always written in.
_MOST_MONOMIALS = 512


@lowers("ai.onnx.ml.SVMRegressor")
def lower_svm_regressor(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``SVMRegressor``: x (k,); the result is (1,).

    Raises:
        UnsupportedOpError: If a post transform or a sign is asked for, or its numbers do not fit.
    """
    node.require("post_transform", "NONE")
    node.require("one_class", 0)
    x, coefficients, terms = node.wire(0), _floats(node, "coefficients"), _floats(node, "rho")
    count = int(node.attr("n_supports", 0))
    vectors = _vectors(node, x, count) if count else None
    if len(terms) != 1 or len(coefficients) != (count or x.size):
        raise node.unsupported("coefficients", f"holds {len(coefficients)} numbers for {count} support vectors")
    if vectors is None:
        return graph.matmul(x, coefficients.reshape(-1, 1), terms)
    return weighted(node, graph, x, vectors, coefficients.reshape(-1, 1), terms)


@lowers("ai.onnx.ml.SVMClassifier")
def lower_svm_classifier(node: Node, graph: GraphBuilder) -> tuple[Wire | None, Wire]:
    """Lower ``SVMClassifier`` to its decisions, its second output: x (k,); the result is (pairs of classes,).

    Of two classes the result is (2,): the decision for the second one, and its negative.

    Raises:
        UnsupportedOpError: If probabilities or a post transform are asked for, or its numbers do not fit.
    """
    node.require("post_transform", "NONE")
    if node.attr("prob_a", list[float]()):
        raise node.unsupported(
            "prob_a",
            "couples the probabilities of all class pairs by iteration",
            "choose output label, or train it with probability=False and calibrate it by CalibratedClassifierCV",
        )
    x, terms = node.wire(0), _floats(node, "rho")
    counts = [int(count) for count in node.attr("vectors_per_class", list[int]())]
    if not counts:
        raise node.unsupported("vectors_per_class", "is absent", "export a linear model as LinearClassifier")
    vectors, coefficients = _vectors(node, x, sum(counts)), _floats(node, "coefficients")
    pairs = list(combinations(range(len(counts)), 2))
    if len(coefficients) != (len(counts) - 1) * sum(counts) or len(terms) != len(pairs):
        raise node.unsupported("coefficients", f"holds {len(coefficients)} numbers for {sum(counts)} support vectors")
    weight = _of_pairs(coefficients.reshape(len(counts) - 1, -1), counts, pairs)
    if len(counts) == 2:
        weight, terms = np.concatenate([-weight, weight], axis=1), np.concatenate([-terms, terms])
    return None, weighted(node, graph, x, vectors, weight, terms)


def weighted(node: Node, graph: GraphBuilder, x: Wire, vectors: Array, weight: Array, terms: Array) -> Wire:
    """Add the sums of a row's kernels: x (k,), vectors (m, k), weight (m, n), terms (n,); the result is (n,).

    Raises:
        UnsupportedOpError: If there is no such kernel.
    """
    kind = str(node.attr("kernel_type", "LINEAR"))
    gamma, term, degree = (_floats(node, "kernel_params").tolist() + [0.0] * 3)[:3]
    used = np.flatnonzero(np.abs(weight).max(1) > 0)
    vectors, weight = vectors[used], weight[used]
    if kind == "LINEAR":
        return graph.matmul(x, (vectors.astype(np.float64).T @ weight).astype(np.float32), terms)
    if kind == "POLY" and (expanded := _expanded(graph, x, vectors, weight, terms, (gamma, term, degree))) is not None:
        return expanded
    if kind == "RBF":
        kernels = graph.within(_less_distances(graph, x, vectors, gamma), "Exp", high=0.0)
    elif kind in ("POLY", "SIGMOID"):
        products = graph.matmul(x, np.float32(gamma) * vectors.T, np.full(len(vectors), term, np.float32))
        kernels = _power(node, graph, products, degree) if kind == "POLY" else graph.function(products, "Tanh")
    else:
        raise node.unsupported("kernel_type", f"is {kind}; {', '.join(_KERNELS)} are supported")
    return graph.matmul(kernels, weight, terms)


def _less_distances(graph: GraphBuilder, x: Wire, vectors: Array, gamma: float) -> Wire:
    """Add ``-gamma |x - v|^2`` for each vector v, around their middle: so its three terms are as small as may be."""
    middle = vectors.mean(0, dtype=np.float64)
    around = vectors.astype(np.float64) - middle
    x = graph.add_constant(x, -middle.astype(np.float32))
    own = -gamma * (around**2).sum(1)
    # One sum for all vectors keeps every bit of the squares.
    size = graph.reshape(sum_along(graph, graph.square(x), [0]), (1,))
    return graph.add(
        broadcast(graph, graph.scale(size, -gamma), (len(vectors),)),
        graph.matmul(x, (2.0 * gamma * around.T).astype(np.float32), own.astype(np.float32)),
    )


def _expanded(
    graph: GraphBuilder,
    x: Wire,
    vectors: Array,
    weight: Array,
    terms: Array,
    kernel: tuple[float, float, float],
) -> Wire | None:
    """Add the sums of polynomial kernels as one polynomial in the columns, whose factors are added up here.

    Large terms of many vectors that cancel out are no matter of fixed point then. None where the vectors are fewer
    than the products of columns, or the degree is no small whole number.
    """
    gamma, term, degree = kernel
    size = x.size
    if not (degree.is_integer() and 1 <= degree <= _MOST_DEGREES):
        return None
    degree = int(degree)
    if math.comb(size + degree, degree) > max(_MOST_MONOMIALS, 2 * len(vectors)):
        return None
    deep = vectors.astype(np.float64)
    middle, spread = deep.mean(0), deep.std(0)
    spread[spread == 0.0] = 1.0
    # Of x = middle + spread z: gamma x v + term = gamma (spread v) z + (gamma middle v + term).
    slopes, starts = gamma * deep * spread, gamma * (deep @ middle) + term
    z = graph.multiply_constant(graph.add_constant(x, -middle.astype(np.float32)), (1.0 / spread).astype(np.float32))
    constant = np.einsum("m,mn->n", starts**degree, weight.astype(np.float64)) + terms
    parts, factors = list[Wire](), list[NDArray[np.float64]]()
    powers: list[tuple[Wire, list[tuple[int, ...]]]] = []
    for order in range(1, degree + 1):
        wire, names = _monomials(graph, z, powers, order)
        powers.append((wire, names))
        # Of the power's expansion: the ways to write a product, and what is left to the constant part.
        left = math.comb(degree, order) * starts ** (degree - order)
        rows = []
        for name in names:
            counts = np.bincount(name, minlength=size)
            ways = math.factorial(order) / math.prod(math.factorial(count) for count in counts.tolist())
            rows.append(ways * ((left * np.prod(slopes**counts, axis=1)) @ weight))
        parts.append(wire)
        factors.append(np.array(rows))
    # Each order has factors of its own size, and so layers of their own.
    sums = [
        graph.matmul(part, rows.astype(np.float32), constant.astype(np.float32) if not index else None)
        for index, (part, rows) in enumerate(zip(parts, factors, strict=True))
    ]
    total = sums[0]
    for other in sums[1:]:
        total = graph.add(total, other)
    return total


def _monomials(
    graph: GraphBuilder, z: Wire, powers: list[tuple[Wire, list[tuple[int, ...]]]], order: int
) -> tuple[Wire, list[tuple[int, ...]]]:
    """Add all products of so many columns, and the columns of each, in order; `powers` has those of fewer."""
    if order == 1:
        return z, [(column,) for column in range(z.size)]
    before, names = powers[-1]
    found, firsts, seconds = list[tuple[int, ...]](), list[int](), list[int]()
    for place, name in enumerate(names):
        for column in range(name[-1], z.size):
            found.append((*name, column))
            firsts.append(place)
            seconds.append(column)
    return graph.multiply(pick(graph, before, 0, firsts), pick(graph, z, 0, seconds)), found


def _power(node: Node, graph: GraphBuilder, x: Wire, degree: float) -> Wire:
    if not (degree.is_integer() and 1 <= degree <= _MOST_DEGREES):
        raise node.unsupported("kernel_params", f"has the degree {degree:g}; 1 to {_MOST_DEGREES} are supported")
    result, left, square = None, int(degree), x
    while left:
        if left & 1:
            result = square if result is None else graph.multiply(result, square)
        left >>= 1
        square = graph.square(square) if left else square
    return x if result is None else result


def _of_pairs(coefficients: Array, counts: list[int], pairs: list[tuple[int, int]]) -> Array:
    """The weight of each vector in each pair's decision: coefficients (classes - 1, m); the result is (m, pairs)."""
    first = np.cumsum([0, *counts])
    weight = np.zeros((sum(counts), len(pairs)), np.float32)
    for pair, (one, other) in enumerate(pairs):
        own, others = slice(first[one], first[one + 1]), slice(first[other], first[other + 1])
        weight[own, pair] = coefficients[other - 1, own]
        weight[others, pair] = coefficients[one, others]
    return weight


def _vectors(node: Node, x: Wire, count: int) -> Array:
    vectors = _floats(node, "support_vectors")
    if len(x.shape) != 1 or len(vectors) != count * x.size or not count:
        raise node.unsupported(
            "support_vectors", f"holds {len(vectors)} numbers; {count} rows that fit {x.batch_shape} are needed"
        )
    return vectors.reshape(count, x.size)


def _floats(node: Node, name: str) -> Array:
    return np.array(node.attr(name, list[float]()), np.float32)
