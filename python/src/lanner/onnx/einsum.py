"""Einstein sums of one secret with constants, which are linear maps, and of two, which are products of matrices."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.gemm import grouped
from lanner.onnx.node import Node
from lanner.onnx.reduction import sum_along
from lanner.onnx.registry import lowers


@lowers("Einsum")
def lower_einsum(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Einsum``: sums along axes, then a product with constant matrices or with another secret's.

    Raises:
        UnsupportedOpError: If three operands are secret, or two beside a constant, one names an axis twice, or samples
            would be mixed.
    """
    secrets = [index for index, value in enumerate(node.inputs) if isinstance(value, Wire)]
    if len(secrets) > 1:
        return _of_secrets(node, graph)
    x = node.wire(secrets[0])
    terms, result = _terms(node)
    own = terms.pop(secrets[0])
    named = "".join(terms)
    if len(set(own)) < len(own):
        raise node.unsupported("equation", "takes a diagonal of the secret")
    if result[:1] != own[0] or len(result) < 2 or len(set(result)) < len(result) or own[0] in named:
        raise node.unsupported("equation", f"is {_equation(node)}; samples must stay apart")
    own, result = own[1:], result[1:]
    if not set(own) & {*result, *named}:
        raise node.unsupported("equation", f"is {_equation(node)}, which leaves no axis of the secret")
    x, kept = _summed(graph, x, own, {*result, *named})
    if terms:
        weights = [node.weight(index) for index in range(len(node.inputs)) if index != secrets[0]]
        x, kept = _product(node, graph, x, kept, _Constants(terms, weights), result)
    return graph.transpose(x, tuple(kept.index(letter) for letter in result))


def _of_secrets(node: Node, graph: GraphBuilder) -> Wire:
    """The product of two secrets: one pair of matrices for all axes that both have and the result keeps."""
    if len(node.inputs) > 2:
        raise node.unsupported("equation", f"is {_equation(node)}; of two secrets no other operand is supported")
    terms, result = _terms(node)
    batch = result[:1]
    for term in (*terms, result):
        if len(set(term)) < len(term):
            raise node.unsupported("equation", "takes a diagonal of the secret")
        if not batch or term[:1] != batch or len(term) < 2:
            raise node.unsupported("equation", f"is {_equation(node)}; samples must stay apart")
    result = result[1:]
    operands = []
    for index, term in enumerate(terms):
        other = terms[1 - index]
        operands.append(_summed(graph, node.wire(index), term[1:], set(result) | set(other)))
    (x, left), (y, right) = operands
    sizes = dict(zip(left, x.shape, strict=True)) | dict(zip(right, y.shape, strict=True))
    if any(sizes[letter] != side for letter, side in zip(left, x.shape, strict=True)):
        raise node.unsupported("equation", f"is {_equation(node)}, which does not fit the inputs' shapes")
    groups = [letter for letter in left if letter in right and letter in result]
    inner = [letter for letter in left if letter in right and letter not in result]
    rows, columns = ([letter for letter in term if letter not in groups + inner] for term in (left, right))
    stacks, heights, depth, widths = (
        math.prod(sizes[letter] for letter in letters) for letters in (groups, rows, inner, columns)
    )
    ordered = graph.transpose(x, tuple(left.index(letter) for letter in (*groups, *rows, *inner)))
    turned = graph.transpose(y, tuple(right.index(letter) for letter in (*groups, *inner, *columns)))
    pairs = graph.reshape(ordered, (stacks, heights, depth)), graph.reshape(turned, (stacks, depth, widths))
    made = "".join((*groups, *rows, *columns))
    product = graph.reshape(graph.matrix_product(*pairs), tuple(sizes[letter] for letter in made))
    return graph.transpose(product, tuple(made.index(letter) for letter in result))


def _summed(graph: GraphBuilder, x: Wire, own: str, needed: set[str]) -> tuple[Wire, str]:
    """Sum a secret, whose axes have the letters `own`, along those that nothing needs; also returns what is left."""
    kept = "".join(letter for letter in own if letter in needed)
    if kept in ("", own):
        return x, own
    summed = sum_along(graph, x, [place for place, letter in enumerate(own) if letter not in kept])
    return graph.reshape(summed, tuple(x.shape[own.index(letter)] for letter in kept)), kept


@dataclass(frozen=True, slots=True)
class _Constants:
    """The constants of an equation, and the letters of each one's axes."""

    terms: list[str]
    weights: list[NDArray[np.float32]]


def _product(
    node: Node, graph: GraphBuilder, x: Wire, own: str, constants: _Constants, result: str
) -> tuple[Wire, str]:
    """Multiply x, whose axes have the letters `own`, by the constants; also returns the letters of the product."""
    named = "".join(constants.terms)
    groups = [letter for letter in result if letter in own and letter in named]
    rows = [letter for letter in result if letter in own and letter not in named]
    columns = [letter for letter in result if letter not in own]
    inner = [letter for letter in own if letter not in result]
    sizes = dict(zip(own, x.shape, strict=True))
    try:
        equation = f"{','.join(constants.terms)}->{''.join((*groups, *inner, *columns))}"
        matrices = np.einsum(equation, *(weight.astype(np.float64) for weight in constants.weights))
    except ValueError:
        matrices = np.zeros([])
    if matrices.shape[: len(groups) + len(inner)] != tuple(sizes[letter] for letter in (*groups, *inner)):
        raise node.unsupported("equation", f"is {_equation(node)}, which does not fit the inputs' shapes")
    sizes.update(zip(columns, matrices.shape[len(groups) + len(inner) :], strict=True))
    stacks, heights, depth, widths = (
        math.prod(sizes[letter] for letter in letters) for letters in (groups, rows, inner, columns)
    )
    ordered = graph.transpose(x, tuple(own.index(letter) for letter in (*groups, *rows, *inner)))
    stacked = graph.reshape(ordered, (stacks, heights, depth))
    product = grouped(graph, stacked, matrices.reshape(stacks, depth, widths).astype(np.float32))
    made = "".join((*groups, *rows, *columns))
    return graph.reshape(product, tuple(sizes[letter] for letter in made)), made


def _terms(node: Node) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with letters of their own in place of an ellipsis."""
    equation = _equation(node)
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    ranks = [
        len(value.shape) + 1 if isinstance(value, Wire) else np.ndim(node.weight(index))
        for index, value in enumerate(node.inputs)
    ]
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
