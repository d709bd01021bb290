"""Einstein sums of one secret with constants, which are linear maps."""

from __future__ import annotations

import math
import string

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.gemm import grouped
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers


@lowers("Einsum")
def lower_einsum(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Einsum`` of one secret, alone or with constants, to a product with constant matrices.

    Raises:
        UnsupportedOpError: If two operands are secret, the secret names an axis twice, or samples would be mixed.
    """
    secrets = [index for index, value in enumerate(node.inputs) if isinstance(value, Wire)]
    if len(secrets) > 1:
        raise node.unsupported(f"input {secrets[1]}", "must be a constant: a product of secrets is not supported")
    place = secrets[0]
    x = node.wire(place)
    terms, output = _terms(node, (BATCH, *x.shape), place)
    own, batch = terms[place], terms[place][0]
    others = [index for index in range(len(terms)) if index != place]
    if len(set(own)) < len(own):
        raise node.unsupported("equation", "takes a diagonal of the secret")
    if output[:1] != batch or len(output) < 2 or len(set(output)) < len(output):
        raise node.unsupported("equation", f"is {_equation(node)}; samples must stay apart")
    weights = [node.weight(index) for index in others]
    if any(batch in terms[index] for index in others):
        raise node.unsupported("equation", f"is {_equation(node)}; a constant must not name the axis of samples")
    sides = dict(zip(own[1:], x.shape, strict=True))
    named = "".join(terms[index] for index in others)
    groups = [letter for letter in output[1:] if letter in sides and letter in named]
    rows = [letter for letter in output[1:] if letter in sides and letter not in named]
    columns = [letter for letter in output[1:] if letter not in sides]
    inner = [letter for letter in own[1:] if letter not in output]
    matrices = _matrices(node, [terms[index] for index in others], weights, groups, inner, columns, sides)
    sizes = {**sides, **dict(zip(columns, matrices.shape[len(groups) + len(inner) :], strict=True))}

    def count(letters: list[str]) -> int:
        return math.prod(sizes[letter] for letter in letters)

    ordered = graph.transpose(x, tuple(own.index(letter) - 1 for letter in (*groups, *rows, *inner)))
    stacked = graph.reshape(ordered, (count(groups), count(rows), count(inner)))
    product = grouped(graph, stacked, matrices.reshape(count(groups), count(inner), count(columns)))
    made = (*groups, *rows, *columns)
    whole = graph.reshape(product, tuple(sizes[letter] for letter in made))
    return graph.transpose(whole, tuple(made.index(letter) for letter in output[1:]))


def _matrices(
    node: Node,
    terms: list[str],
    weights: list[NDArray[np.float32]],
    groups: list[str],
    inner: list[str],
    columns: list[str],
    sides: dict[str, int],
) -> NDArray[np.float32]:
    """The product of the constants over the named axes; what only the secret sums over is a row of ones for each."""
    named = "".join(terms)
    ones = [letter for letter in inner if letter not in named]
    target = "".join((*groups, *inner, *columns))
    equation = ",".join((*terms, *ones)) + "->" + target
    operands = [weight.astype(np.float64) for weight in weights]
    operands += [np.ones(sides[letter]) for letter in ones]
    if not operands:
        return np.ones([], np.float32)
    try:
        product = np.einsum(equation, *operands)
    except ValueError:
        product = np.zeros([])
    if product.shape[: len(groups) + len(inner)] != tuple(sides[letter] for letter in (*groups, *inner)):
        raise node.unsupported("equation", f"is {_equation(node)}, which does not fit the inputs' shapes")
    return np.asarray(product, np.float32)


def _terms(node: Node, source: tuple[int, ...], place: int) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with letters of their own in place of an ellipsis."""
    equation = _equation(node)
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    ranks = [len(source) if index == place else np.ndim(node.weight(index)) for index in range(len(node.inputs))]
    if len(terms) != len(ranks):
        raise node.unsupported("equation", f"is {equation}, for {len(ranks)} operands")
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    dots = "".join(free[: max(0, *hidden)])
    for index, (term, count) in enumerate(zip(terms, hidden, strict=True)):
        if count < 0 or (count and "..." not in term):
            raise node.unsupported("equation", f"is {equation}, which does not fit the inputs' shapes")
        terms[index] = term.replace("...", dots[len(dots) - count :])
    if not arrow:
        letters = "".join(terms)
        output = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1 and letter not in dots)
        )
    output = output.replace("...", dots)
    if not set(output) <= set("".join(terms)):
        raise node.unsupported("equation", f"is {equation}, whose result names an axis that no operand has")
    return terms, output


def _equation(node: Node) -> str:
    return str(node.attr("equation", "")).replace(" ", "")
