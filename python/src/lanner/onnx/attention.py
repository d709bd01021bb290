"""ONNX's operator ``Attention``, taken apart: scores, a mask, a softmax and the sums of values that it weighs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.exponentials import softmax_behind, softmax_of
from lanner.onnx.folding import BATCH
from lanner.onnx.masks import Masked
from lanner.onnx.matrices import multiply_matrices
from lanner.onnx.node import Node
from lanner.onnx.registry import lowers
from lanner.onnx.selection import repeat


@lowers("Attention")
def lower_attention(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Attention``: ``softmax(scale q k' + mask) v`` for each head.

    Shapes: q (heads, s, d), k (kv heads, t, d) and v (kv heads, t, e), or (s, heads d), (t, kv heads d) and
    (t, kv heads e) with the attributes that number the heads; the mask broadcasts to (1, heads, s, t). The result is
    (heads, s, e) or (s, heads e).

    Raises:
        UnsupportedOpError: If keys and values of earlier calls are read or written, scores are capped or shown, or the
            mask depends on the input.
    """
    _check(node)
    flat = len(node.wire(0).shape) == 2
    query = _heads(node, graph, 0, "q_num_heads")
    key, value = (_heads(node, graph, index, "kv_num_heads") for index in (1, 2))
    heads, rows, width = query.shape
    columns = key.shape[1]
    if heads % key.shape[0] or key.shape[0] != value.shape[0] or columns != value.shape[1] or width != key.shape[2]:
        shapes = ", ".join(str(each.shape) for each in (query, key, value))
        raise node.unsupported("inputs", f"have heads of shapes {shapes}, which do not fit")
    key, value = (repeat(graph, each, 0, heads // each.shape[0]) for each in (key, value))
    query = graph.scale(query, float(node.attr("scale", 0.0)) or 1.0 / math.sqrt(width))
    scores = multiply_matrices(graph, query, graph.transpose(key, (0, 2, 1)))
    terms = _terms(node, (heads, rows, columns))
    if terms is None:
        weights = softmax_of(node, graph, scores, 2)
    else:
        weights = softmax_behind(node, graph, Masked.with_terms(graph, scores, terms, 2))
    y = multiply_matrices(graph, weights, value)
    return graph.reshape(graph.transpose(y, (1, 0, 2)), (rows, heads * y.shape[2])) if flat else y


def _check(node: Node) -> None:
    """Refuse what is more than an attention over the keys that are given."""
    for index, name in enumerate(("past_key", "past_value", "nonpad_kv_seqlen"), 4):
        if len(node.inputs) > index and node.inputs[index] is not None:
            raise node.unsupported(name, "is keys or values of earlier calls; one call with all tokens is supported")
    if float(node.attr("softcap", 0.0)):
        raise node.unsupported("softcap", "caps scores; only 0, which caps none, is supported")
    node.single_output()


def _heads(node: Node, graph: GraphBuilder, index: int, attribute: str) -> Wire:
    """An input as (heads, tokens, width)."""
    x = node.wire(index)
    if len(x.shape) == 3:
        return x
    count = int(node.attr(attribute, 0))
    if len(x.shape) != 2 or count < 1 or x.shape[1] % count:
        raise node.unsupported(f"input {index}", f"has shape {x.batch_shape}; {attribute} is {count}")
    tokens, width = x.shape
    return graph.transpose(graph.reshape(x, (tokens, count, width // count)), (1, 0, 2))


def _terms(node: Node, shape: tuple[int, int, int]) -> NDArray[np.float64] | None:
    """What is added to the scores; None where nothing is."""
    given = node.constant(3) if len(node.inputs) > 3 else None
    if given is None and not node.attr("is_causal", 0):
        return None
    terms = np.zeros(shape)
    if given is not None:
        terms = np.where(given, 0.0, -np.inf) if given.dtype.kind == "b" else given.astype(np.float64)
        if np.isnan(terms).any() or (terms == np.inf).any():
            raise node.not_finite(3)
        if terms.ndim == len(shape) + 1 and terms.shape[0] == BATCH:
            terms = terms[0]
        # A mask of fewer keys hides the rest of them.
        missing = shape[2] - terms.shape[-1] if terms.shape[-1] > 1 else 0
        if missing > 0:
            terms = np.pad(terms, [*[(0, 0)] * (terms.ndim - 1), (0, missing)], constant_values=-np.inf)
        try:
            terms = np.broadcast_to(terms, shape)
        except ValueError:
            raise node.unsupported("input 3", f"has shape {given.shape}, which does not fit {shape}") from None
    if node.attr("is_causal", 0):
        terms = np.where(np.tri(*shape[1:], dtype=bool), terms, -np.inf)
    return terms
