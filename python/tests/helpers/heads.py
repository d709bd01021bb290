"""Small networks with every kind of end, and inputs for them."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from helpers.models import make_model, random_weights

FEATURES = 6
ROWS = 64


def network(outputs: int, ending: str = "", seed: int = 3) -> onnx.ModelProto:
    """Gemm, Relu, Gemm and perhaps one operator more."""
    weights = random_weights(seed, w1=(8, FEATURES), b1=(8,), w2=(outputs, 8), b2=(outputs,))
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], name="fc1", transB=1),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Gemm", ["b", "w2", "b2"], ["c" if ending else "y"], name="fc2", transB=1),
    ]
    if ending:
        nodes.append(helper.make_node(ending, ["c"], ["y"], name="end"))
    return make_model(nodes, ["n", FEATURES], weights)


def rows(count: int = ROWS, seed: int = 5) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, FEATURES)).astype(np.float32)
