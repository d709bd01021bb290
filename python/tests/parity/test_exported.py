"""Networks as users export them from PyTorch and Keras: the float graph equals onnxruntime on the file itself."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import lanner
from helpers.times import marked

#: Where the networks lie, which are not part of the project; tests that want them skip without.
DATA = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data") / "exported"

#: All whose operators have a lowering, but for their endings.
TAKEN = (
    *(f"act_{name}_ts17" for name in ("Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "PReLU", "ReLU6")),
    *(f"act_{name}_ts17" for name in ("ELU", "GELU", "SiLU", "Sigmoid", "Softplus")),
    *("act_GELU_dn18", "k_lenet_elu", "k_lenet_tanh", "lenet_tanh_ts17", "op_exp_ts17"),
    *(f"op_{name}_ts17" for name in ("abs", "chunk", "einsum", "gate", "max", "maxred", "pixelshuffle", "plain")),
    *(f"op_{name}_ts17" for name in ("reflect", "sum", "up")),
    *("ecg_flat_ts17", "ecg_gap_ts17", "autoenc_ts17", "bin_logit_ts17", "densenet_small_64_ts17", "mbv2_32_ts17"),
    *("k_lenet_relu_bn", "k_lenet_relu_bn_o18", "k_mlp_rescale", "k_mobile", "lenet_relu_dn20", "lenet_relu_ts13"),
    *("lenet_view_ts13", "lenet_view_ts17", "mi_f16", "mi_u8", "mlp_digits_dn18", "mlp_digits_ts13", "sk_reg"),
    *("encoder_ts17", "vit_small_dn18"),
    *("cnn_digits_ts17", "tab_iris_ts17", "tabbn_cancer_ts17", "tabraw_cancer_ts17"),
)

#: Of the largest score: rounding of activations to 8 bits, in up to fifty layers.
FIXED_TOLERANCE = 0.06


@pytest.mark.parametrize("name", marked(TAKEN, {"mbv2_32_ts17", "vit_small_dn18"}))
def test_exported_networks_compute_what_onnxruntime_does(name: str) -> None:
    path = DATA / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{name} is not in {DATA}; set LANNER_DATA to a folder that holds exported/{name}.onnx")
    session = onnxruntime.InferenceSession(str(path))
    entry = session.get_inputs()[0]
    kind = np.dtype(KINDS[entry.type])
    rng = np.random.default_rng(0)
    shape = (16, *entry.shape[1:])
    x = rng.integers(0, 256, shape) if kind.kind == "u" else rng.standard_normal(shape)
    x = x.astype(kind)
    expected = np.concatenate([session.run(None, {entry.name: sample[None]})[0] for sample in x]).reshape(16, -1)
    model = lanner.compile(path, x, output="logits")
    given = x.astype(np.float32)
    computed = model.native.float(given)
    largest = float(np.abs(computed).max())
    scores = ended(computed, onnx.load(str(path)).graph.node[-1].op_type)
    tolerance = 2e-3 if kind.itemsize == 2 else 1e-4
    assert np.allclose(scores, expected, rtol=tolerance, atol=tolerance * float(np.abs(expected).max()))
    assert np.allclose(model.predict_float(given), computed, rtol=1e-4, atol=1e-4 * largest)
    assert np.abs(model.predict_fixed(given) - computed).max() <= FIXED_TOLERANCE * largest


def ended(logits: NDArray[np.float32], operator: str) -> NDArray[np.float32]:
    """What the network's last operator makes of the logits."""
    if operator not in ("Softmax", "LogSoftmax"):
        return logits
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    softmax: NDArray[np.float32] = exponentials / exponentials.sum(1, keepdims=True)
    return np.log(softmax) if operator == "LogSoftmax" else softmax


#: The types of inputs by onnxruntime's names.
KINDS = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
