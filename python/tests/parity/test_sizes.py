"""Inputs far fainter than the samples, and rows of zeros, through what divides by their size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import lanner
from helpers.transformers import Exported

ROWS, WIDTH = 4, 12
SAMPLES = 40

#: Of the range of the scores.
TOLERANCE = 0.01


def drawn(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((SAMPLES, ROWS, WIDTH)).astype(np.float32)


def scored(net: Exported, x: str) -> onnx.ModelProto:
    """Scores from the rows' features, averaged over the rows."""
    pooled = net.node("ReduceMean", x, axes=[1], keepdims=0)
    return net.model(net.node("Gemm", pooled, net.drawn(WIDTH, 3), net.drawn(3)), ["n", ROWS, WIDTH])


def rms_norm() -> onnx.ModelProto:
    net = Exported(1)
    mean = net.node("ReduceMean", net.node("Pow", "x", net.constant(2.0)), axes=[-1])
    root = net.node("Sqrt", net.node("Add", mean, net.constant(1e-6)))
    return scored(net, net.node("Mul", "x", net.node("Div", net.constant(1.0), root)))


def layer_norm() -> onnx.ModelProto:
    net = Exported(2)
    return scored(net, net.norm("x", WIDTH))


def residual() -> onnx.ModelProto:
    """Rows that a layer is added to before they are normalised."""
    net = Exported(3)
    return scored(net, net.norm(net.node("Add", "x", net.linear("x", WIDTH, WIDTH)), WIDTH))


def cosine() -> onnx.ModelProto:
    """Cosines of rows with weights, as torch exports ``linear(normalize(x), w)``."""
    net = Exported(4)
    norm = net.node("ReduceL2", "x", axes=[-1], keepdims=1)
    shape = net.node("Expand", net.node("Clip", norm, net.constant(1e-12)), net.node("Shape", "x"))
    return scored(net, net.node("Div", "x", shape))


def share() -> onnx.ModelProto:
    """Magnitudes over their sums."""
    net = Exported(5)
    size = net.node("Abs", "x")
    total = net.node("ReduceSum", size, net.constant([-1]))
    return scored(net, net.node("Div", size, net.node("Add", total, net.constant(1e-6))))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "root mean squares": rms_norm,
    "layer normalisation": layer_norm,
    "a residual sum": residual,
    "a head of cosines": cosine,
    "shares of a sum": share,
}


@pytest.mark.parametrize("name", MODELS)
def test_faint_rows_and_rows_of_zeros_are_right(name: str) -> None:
    proto = MODELS[name]()
    x = drawn(1)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    model = lanner.compile(proto, x, mode="cheetah", output="logits")
    some = drawn(2)[:10]
    partly = some.copy()
    partly[:, 1] = 0.0
    inputs: dict[str, NDArray[np.float32]]
    inputs = {
        "as calibrated": some,
        "a twentieth": some / np.float32(20),
        "zeros": np.zeros_like(some[:1]),
        "a row of zeros": partly,
    }
    inputs["twice"] = np.clip(1.9 * some, x.min() * 2, x.max() * 2)
    for kind, each in inputs.items():
        truth = np.asarray(session.run(None, {"x": each})[0])
        given = model.predict_fixed(each)
        width = np.ptp(np.asarray(session.run(None, {"x": some})[0]))
        assert np.abs(given - truth).max() <= TOLERANCE * width, kind
        assert model.predict_integers(each)[1] == 0, kind


def test_a_faint_prediction_is_what_the_reference_says() -> None:
    model = lanner.compile(rms_norm(), drawn(1), mode="cheetah", output="logits")
    faint = drawn(3)[0] / 20
    (integers,), _ = model.predict_integers(faint[np.newaxis])
    assert lanner.run(model, faint).integers == integers.tolist()
