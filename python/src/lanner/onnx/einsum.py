"""Einstein sums of one secret with constants, which are linear maps."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.gemm import grouped
from lanner.onnx.node import Node
from lanner.onnx.reduction import sum_along
from lanner.onnx.registry import lowers


@lowers("Einsum")
def lower_einsum(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Einsum`` of one secret: sums along axes, then a product with constant matrices if there are constants.

    Raises:
        UnsupportedOpError: If two operands are secret, the secret names an axis twice, or samples would be mixed.
    """
    secrets = [index for index, value in enumerate(node.inputs) if isinstance(value, Wire)]
    if len(secrets) > 1:
        raise node.unsupported(f"input {secrets[1]}", "must be a constant: a product of secrets is not supported")
    x = node.wire(secrets[0])
    terms, result = _terms(node, (BATCH, *x.shape), secrets[0])
    own = terms.pop(secrets[0])
    named = "".join(terms)
    if len(set(own)) < len(own):
        raise node.unsupported("equation", "takes a diagonal of the secret")
    if result[:1] != own[0] or len(result) < 2 or len(set(result)) < len(result) or own[0] in named:
        raise node.unsupported("equation", f"is {_equation(node)}; samples must stay apart")
    own, result = own[1:], result[1:]
    kept = "".join(letter for letter in own if letter in result or letter in named)
    if not kept:
        raise node.unsupported("equation", f"is {_equation(node)}, which leaves no axis of the secret")
    sides = dict(zip(own, x.shape, strict=True))
    if kept != own:
        summed = sum_along(graph, x, [place for place, letter in enumerate(own) if letter not in kept])
        x = graph.reshape(summed, tuple(sides[letter] for letter in kept))
    if terms:
        weights = [node.weight(index) for index in range(len(node.inputs)) if index != secrets[0]]
        x, kept = _product(node, graph, x, kept, _Constants(terms, weights), result)
    return graph.transpose(x, tuple(kept.index(letter) for letter in result))


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
