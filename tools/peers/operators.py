"""Evaluates lanner's float graph with jax, for systems that take jax functions.

Runs in the other system's virtual environment, which has no lanner. A graph is the JSON document of
`lanner.onnx.builder.FloatGraph`; one sample at a time, without a batch axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import transformer
from jax import lax

Tensors = Mapping[str, jax.Array]
Attributes = Mapping[str, Any]
Operator = Callable[[Attributes, Tensors, jax.Array], jax.Array]


def evaluate(document: Mapping[str, Any], tensors: Tensors, x: jax.Array) -> jax.Array:
    """The output of a graph.

    Args:
        document: The graph.
        tensors: Its weights by name.
        x: One sample, of the shape that the graph's input has.

    Raises:
        KeyError: If an operator is not among `OPERATORS`.
    """
    if "onnx" in document:
        return transformer.evaluate(document, tensors, x)
    values = {document["inputs"][0]["name"]: x}
    for node in document["nodes"]:
        ((name, attributes),) = node["op"].items() if isinstance(node["op"], dict) else ((node["op"], {}),)
        first, *others = (values[wire] for wire in node["inputs"])
        values[node["name"]] = first + others[0] if name == "Add" else OPERATORS[name](attributes, tensors, first)
    return values[document["output"]]


def _conv(attributes: Attributes, tensors: Tensors, x: jax.Array) -> jax.Array:
    top, left, bottom, right = attributes["pads"]
    y = lax.conv_general_dilated(
        x[jnp.newaxis],
        tensors[attributes["weight"]],
        attributes["strides"],
        ((top, bottom), (left, right)),
        rhs_dilation=attributes["dilations"],
        feature_group_count=attributes["groups"],
    )[0]
    return y if attributes["bias"] is None else y + tensors[attributes["bias"]].reshape(-1, 1, 1)


def _matmul(attributes: Attributes, tensors: Tensors, x: jax.Array) -> jax.Array:
    y = (x[jnp.newaxis] @ tensors[attributes["weight"]])[0]
    return y if attributes["bias"] is None else y + tensors[attributes["bias"]]


def _relu(_attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return jax.nn.relu(x)


def _max_pool(attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, *_window(attributes))


def _average_pool(attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    if any(attributes["pads"]):
        raise ValueError("an average pool with padding is not written")
    height, width = attributes["kernel"]
    return lax.reduce_window(x, 0.0, lax.add, *_window(attributes)) * (1.0 / (height * width))


def _window(attributes: Attributes) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Size, steps and padding of windows over (c, h, w)."""
    top, left, bottom, right = attributes["pads"]
    return (1, *attributes["kernel"]), (1, *attributes["strides"]), ((0, 0), (top, bottom), (left, right))


def _global_average_pool(_attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return x.mean((1, 2), keepdims=True)


def _flatten(_attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return x.reshape(-1)


def _reshape(attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return x.reshape(attributes["shape"])


def _slice(attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    triples = zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True)
    return x[tuple(slice(start, start + (size - 1) * step + 1, step) for start, size, step in triples)]


def _pad(attributes: Attributes, _tensors: Tensors, x: jax.Array) -> jax.Array:
    return jnp.pad(x, tuple(zip(attributes["before"], attributes["after"], strict=True)))


#: Every operator that the compared networks have, but for the addition of two values.
OPERATORS: Mapping[str, Operator] = {
    "Conv": _conv,
    "MatMul": _matmul,
    "Relu": _relu,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Slice": _slice,
    "Pad": _pad,
}
