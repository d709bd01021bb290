"""Operands of element-wise operators at one shape, by numpy's rule within a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import UNBOUNDED, GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.infinite import is_finite
from lanner.onnx.node import Node
from lanner.onnx.selection import broadcast


@dataclass(frozen=True, slots=True)
class Operands:
    """What an element-wise operator combines.

    Attributes:
        secrets: The operands computed from the input, all of one shape.
        constants: The others, without a batch axis; each broadcasts to that shape.
    """

    secrets: list[Wire]
    constants: list[NDArray[np.float32]]


def read_operands(node: Node, graph: GraphBuilder, *, unbounded: bool = False) -> Operands:
    """Read all inputs; secrets of fewer elements than the result are repeated; constants are finite or `unbounded`.

    Raises:
        UnsupportedOpError: If the shapes do not fit, or the batch axis would meet another axis.
    """
    shape, constants = aligned(node, unbounded=unbounded)
    secrets = [broadcast(graph, value, shape) for value in node.inputs if isinstance(value, Wire)]
    return Operands(secrets, constants)


def shape_of_all(node: Node) -> tuple[int, ...]:
    """The shape to which all inputs broadcast, without the batch axis.

    Raises:
        UnsupportedOpError: As of `read_operands`.
    """
    return aligned(node)[0]


def add_term(node: Node, graph: GraphBuilder, x: Wire, value: NDArray[np.generic]) -> Wire:
    """Add ``x + value``, where the value may be a mask: a softmax takes it off, and nothing else may read it.

    Raises:
        NotFiniteError: If the value is NaN or infinite above.
    """
    terms = np.asarray(value, np.float32)
    if np.isnan(terms).any() or (terms == np.inf).any():
        raise node.not_finite(next(index for index, given in enumerate(node.inputs) if not is_finite(given)))
    y = graph.add_constant(x, terms)
    if terms.size and terms.min() <= UNBOUNDED:
        what = f"puts {terms.min():g} into a value, which only a Softmax may read, as a mask"
        graph.note_unbounded(y, node.unsupported("a constant", what, "export the model with a finite constant"))
    return y


def aligned(node: Node, *, unbounded: bool = False) -> tuple[tuple[int, ...], list[NDArray[np.float32]]]:
    """The shape to which all inputs broadcast, and the constants without a batch axis, finite or `unbounded`.

    Raises:
        UnsupportedOpError: As of `read_operands`.
    """
    rank = max(len(value.shape) for value in node.inputs if isinstance(value, Wire))
    shapes: list[tuple[int, ...]] = []
    constants = []
    for index, value in enumerate(node.inputs):
        if isinstance(value, Wire):
            if len(value.shape) != rank:
                raise _misfit(node, index, value.batch_shape)
            shapes.append(value.shape)
            continue
        constant = node.number(index) if unbounded else node.weight(index)
        if constant.ndim == rank + 1 and constant.shape[0] == BATCH:
            constant = constant[0]
        if constant.ndim > rank:
            raise _misfit(node, index, str(constant.shape))
        shapes.append(constant.shape)
        constants.append(constant)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(map(str, shapes))
        raise node.unsupported("inputs", f"have shapes {listed}, which do not broadcast") from None
    return shape, constants


def _misfit(node: Node, index: int, shape: str) -> Exception:
    return node.unsupported(f"input {index}", f"has shape {shape}, which would not keep samples apart")


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a constant of a shape can be repeated to another one."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
