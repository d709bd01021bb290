"""Evaluates the ONNX nodes of a transformer with jax, as its functions are written there.

Runs in the other system's virtual environment, which has no lanner. `networks.onnx_document` writes the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

#: A node's attributes and public inputs, then its values.
Operator = Callable[..., jax.Array]


def evaluate(document: Mapping[str, Any], tensors: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
    """The output of the nodes of a file.

    Args:
        document: The nodes.
        tensors: The weights by name.
        x: One sample, of the input's shape.

    Raises:
        KeyError: If an operator is not among `OPERATORS`.
    """
    values = {**tensors, document["inputs"][0]["name"]: x}
    for node in document["onnx"]:
        given = (values[name] for name in node["inputs"])
        values[node["name"]] = OPERATORS[node["operator"]](node["attributes"], node["public"], *given)
    return values[document["output"]]


def _reshape(_attributes: Mapping[str, Any], public: list[list[int]], x: jax.Array) -> jax.Array:
    (shape,) = public
    # ONNX's 0 is the side that there is.
    return x.reshape([side or x.shape[axis] for axis, side in enumerate(shape)])


def _normalized(attributes: Mapping[str, Any], _public: list[Any], x: jax.Array, *affine: jax.Array) -> jax.Array:
    scale, bias = affine
    apart = x - x.mean(-1, keepdims=True)
    deviation = jax.lax.rsqrt((apart * apart).mean(-1, keepdims=True) + attributes["epsilon"])
    return apart * deviation * scale + bias


#: Every operator that the compared transformers have.
OPERATORS: Mapping[str, Operator] = {
    "MatMul": lambda _attributes, _public, x, y: jnp.matmul(x, y),
    "Add": lambda _attributes, _public, x, y: x + y,
    "Div": lambda _attributes, public, x: x * (1.0 / public[0]),
    # By a hyperbolic tangent, as jax does unless it is told otherwise: the exact one costs SPU twice as much.
    "Gelu": lambda _attributes, _public, x: jax.nn.gelu(x),
    "Identity": lambda _attributes, _public, x: x,
    "LayerNormalization": _normalized,
    "ReduceMean": lambda attributes, public, x: x.mean(tuple(public[0]), keepdims=bool(attributes["keepdims"])),
    "Reshape": _reshape,
    "Softmax": lambda attributes, _public, x: jax.nn.softmax(x, axis=attributes["axis"]),
    "Transpose": lambda attributes, _public, x: x.transpose(attributes["perm"]),
}
