"""Networks as users export them from five libraries: each agrees with onnxruntime or is refused with every reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.brought import FLOAT_TOLERANCE, Brought, check_modes, compiled
from helpers.times import marked

DATA = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data")
FILES = sorted((DATA / "exported").glob("*.onnx"))

#: Results of networks that are quantised differ by some of their quantiser's steps, those of half floats by theirs.
TOLERANCES = {"mi_qdq": 0.02, "mi_qdyn": 0.02, "mi_f16": 2e-3, "mi_u8": 2e-3}

#: These must be taken. Others may be refused, until what they need is there.
TAKEN = {
    *(f"act_{name}_ts17" for name in ("ELU", "GELU", "SiLU", "Sigmoid", "Softplus")),
    *("act_GELU_dn18", "k_lenet_elu", "k_lenet_tanh", "lenet_tanh_ts17", "op_exp_ts17", "op_sqrt_ts17"),
    *("op_sumsq_ts17", "sk_mlp_tanh", "sk_mlp_tanh_cut"),
    *("act_Hardtanh_ts17", "act_LeakyReLU_ts17", "act_PReLU_ts17", "act_ReLU6_ts17", "autoenc_ts17", "bin_logit_ts17"),
    *("cnn_digits_ts17", "densenet_small_64_ts17", "k_lenet_relu_bn", "k_lenet_relu_bn_o18", "k_mlp_rescale"),
    *("k_mobile", "lenet_relu_dn20", "lenet_relu_ts13", "lenet_relu_ts17", "lenet_view_ts13", "lenet_view_ts17"),
    *("mbv2_32_ts17", "mi_batch8", "mi_qdq", "mi_qdyn", "mlp_digits_dn18", "mlp_digits_ts13", "mlp_digits_ts17"),
    *("op_chunk_ts17", "op_plain_ts17", "reg_lin_ts17", "sk_lr_nozip_cut", "sk_mlp_nozip_cut", "sk_reg", "sk_ridge"),
    *(
        "tab_cancer_ts17",
        "tab_iris_ts17",
        "tab_wine_ts17",
        "tabbn_cancer_ts17",
        "tabraw_cancer_ts17",
        "tabraw_iris_ts17",
    ),
}

#: These take minutes; `test_exported` and `test_merged_heads` have the smaller ones of them, too.
SLOW = {"densenet_small_64_ts17", "encoder_ts17", "mbv2_32_ts17", "vit_small_dn18"}


def named(path: Path) -> str:
    return path.stem


pytestmark = pytest.mark.skipif(
    not FILES, reason=f"exported networks are not in {DATA}; set LANNER_DATA to a folder that holds them"
)


def brought(path: Path) -> Brought:
    return Brought(path.stem, lambda: path, TOLERANCES.get(path.stem, FLOAT_TOLERANCE))


@pytest.mark.parametrize("path", marked(FILES, SLOW, named), ids=named)
def test_every_network_agrees_or_is_refused_with_every_reason(path: Path) -> None:
    assert compiled(brought(path)) is not None or path.stem not in TAKEN


@pytest.mark.parametrize("path", marked(FILES, SLOW, named), ids=named)
def test_integers_are_as_precise_as_asked_in_each_mode(path: Path) -> None:
    check_modes(brought(path), secure=False)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=named)
def test_secure_runs_of_all_equal_the_integers(path: Path) -> None:
    check_modes(brought(path), secure=True)
