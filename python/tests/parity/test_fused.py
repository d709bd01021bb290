"""Operators that onnxruntime's optimiser makes of several of ONNX's, beside onnxruntime and in private."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from helpers.several import Arrays, off_by
from lanner.errors import LannerError

TOKENS, WIDTH, HEADS, WORDS = 5, 8, 2, 12

FLOAT = TensorProto.FLOAT


def drawn(*shape: int, seed: int = 0, by: float = 0.5) -> NDArray[np.float32]:
    return (by * np.random.default_rng([seed, *shape]).normal(size=shape)).astype(np.float32)


def fused(operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, outputs, name=outputs[0], domain="com.microsoft", **attributes)


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[int]]], weights: dict[str, NDArray[Any]]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, ["n", *sides]) for name, (kind, sides) in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def expected(model: onnx.ModelProto, arrays: Arrays) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], arrays)[0])


def ones(count: int) -> NDArray[np.float32]:
    return np.ones(count, np.float32) + drawn(count, by=0.1)


def encoder() -> tuple[onnx.ModelProto, Arrays, Arrays]:
    """A layer of BERT as the optimiser leaves it: ids, a mask, and three operators that hold the rest."""
    names = ["ids", "", "words", "places", "", "s0", "b0"]
    nodes = [
        fused("EmbedLayerNormalization", names, "e", "", epsilon=1e-5),
        fused("Attention", ["e", "w", "b", "mask"], "a", num_heads=HEADS),
        fused("SkipLayerNormalization", ["a", "e", "s1", "b1", "extra"], "h", "", "", "sum", epsilon=1e-5),
        helper.make_node("Add", ["h", "sum"], ["y"], name="y"),
    ]
    weights = {
        "words": drawn(WORDS, WIDTH, by=1.0),
        "places": drawn(TOKENS + 3, WIDTH),
        "s0": ones(WIDTH),
        "b0": drawn(WIDTH),
        "s1": ones(WIDTH),
        "b1": drawn(WIDTH, seed=1),
        "extra": drawn(WIDTH),
        "w": drawn(WIDTH, 3 * WIDTH),
        "b": drawn(3 * WIDTH),
    }
    whole = TensorProto.INT32
    model = model_of(nodes, {"ids": (whole, [TOKENS]), "mask": (whole, [TOKENS])}, weights)

    def samples(count: int, seed: int) -> Arrays:
        rng = np.random.default_rng(seed)
        ids = rng.integers(0, WORDS, (count, TOKENS)).astype(np.int32)
        lengths = rng.integers(2, TOKENS + 1, (count, 1))
        return {"ids": ids, "mask": (np.arange(TOKENS) < lengths).astype(np.int32)}

    return model, samples(32, 0), samples(8, 1)


def test_an_optimised_encoder_is_that_of_onnxruntime_and_runs_in_private() -> None:
    proto, calibration, others = encoder()
    exact = expected(proto, others)
    model = lanner.compile(proto, calibration, output="value", mode="cheetah", precision="2%")
    assert np.abs(np.ravel(model.predict_float(others)) - exact.ravel()).max() < 1e-3
    assert off_by(model.predict_fixed(others), exact) < 0.02
    sample = {name: values[:1] for name, values in others.items()}
    assert lanner.run(model, sample).integers == model.predict_integers(sample)[0][0].tolist()


def attention(**attributes: Any) -> onnx.ModelProto:  # noqa: ANN401 - as ONNX's own helper
    bias = drawn(3 * WIDTH)
    nodes = [
        *(helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in ("q", "k", "v")),
        fused("MultiHeadAttention", ["qx", "kx", "vx", "bias"], "y", num_heads=HEADS, **attributes),
    ]
    weights = {name: drawn(WIDTH, WIDTH, seed=seed) for seed, name in enumerate(("q", "k", "v"))}
    return model_of(nodes, {"x": (FLOAT, [TOKENS, WIDTH])}, {**weights, "bias": bias})


FORMS = {
    "queries, keys and values apart": attention(),
    "a scale of its own": attention(scale=0.2),
    "a causal mask": attention(unidirectional=1),
    "a causal mask in one product": model_of(
        [fused("Attention", ["x", "w", "b"], "y", num_heads=HEADS, unidirectional=1)],
        {"x": (FLOAT, [TOKENS, WIDTH])},
        {"w": drawn(WIDTH, 3 * WIDTH), "b": drawn(3 * WIDTH)},
    ),
    "a normalisation without a mean": model_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            fused("SkipSimplifiedLayerNormalization", ["h", "x", "s"], "y", epsilon=1e-5),
        ],
        {"x": (FLOAT, [TOKENS, WIDTH])},
        {"w": drawn(WIDTH, WIDTH), "s": ones(WIDTH)},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_those_of_onnxruntime(name: str) -> None:
    proto, x = FORMS[name], drawn(24, TOKENS, WIDTH, by=1.0)
    exact = expected(proto, {"x": x})
    model = lanner.compile(proto, x, output="value", mode="cheetah", precision="2%")
    assert np.abs(np.ravel(model.native.float(x)) - exact.ravel()).max() < 1e-4 * np.ptp(exact) + 1e-4
    assert off_by(model.predict_fixed(x), exact) < 0.02


def test_keys_of_earlier_calls_are_refused() -> None:
    proto = model_of(
        [fused("Attention", ["x", "w", "b", "", "past"], "y", "present", num_heads=HEADS)],
        {"x": (FLOAT, [TOKENS, WIDTH])},
        {"w": drawn(WIDTH, 3 * WIDTH), "b": drawn(3 * WIDTH), "past": drawn(2, 1, HEADS, 2, WIDTH // HEADS)},
    )
    with pytest.raises(
        LannerError, match=r"Attention of domain com\.microsoft is not supported: it is several operators"
    ):
        lanner.compile(proto, drawn(4, TOKENS, WIDTH), output="value")
