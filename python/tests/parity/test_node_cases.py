"""The onnx package's own cases of every operator: each equals onnxruntime, or is refused by name for a stated reason.

Equal means: the float executor within 1e-4, and the fixed-point executor within two hundredths of the largest output,
which is what an input of 8 bits, weights of 8 bits and a rounding leave.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import lanner
from helpers.node_cases import NodeCase, node_cases
from helpers.times import marked
from lanner.errors import InputError, LannerError, ModelError, UnsupportedOpError
from lanner.inputs import batch_of

#: The operators that lanner takes.
SUPPORTED = [
    *("Conv", "Gemm", "MatMul", "BatchNormalization", "Relu", "Clip", "LeakyRelu", "PRelu"),
    *("MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "Add", "Sub", "Mul", "Div", "Neg", "Pow"),
    *("Flatten", "Reshape", "Transpose", "Concat", "Slice", "Split", "Gather", "Pad", "Squeeze", "Unsqueeze"),
    *("Identity", "Dropout", "Constant", "Softmax", "LogSoftmax", "ArgMax"),
    *("Abs", "HardSigmoid", "HardSwish", "ThresholdedRelu", "Max", "Min", "Sum", "Mean", "GlobalMaxPool"),
    *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ConvTranspose", "Resize", "Upsample"),
    *("DepthToSpace", "SpaceToDepth", "Expand", "Tile", "Einsum"),
    *("Sigmoid", "Tanh", "Erf", "Softsign", "Exp", "Log", "Sqrt", "Reciprocal", "Softplus", "Mish", "Elu", "Celu"),
    *("Selu", "Swish", "Gelu", "LSTM", "GRU", "RNN", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
    *("LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"),
    *("MeanVarianceNormalization", "LpNormalization", "LpPool", "LRN"),
    *("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "And", "Or", "Xor", "Not", "Sign", "Shrink"),
    *("Sin", "Cos"),
]

#: Operators with so many cases, or so hard ones, that they take a test more than five seconds.
LONG = {"AveragePool", "GRU", "LayerNormalization", "LogSoftmax", "LSTM", "RMSNormalization", "RNN", "ReduceLogSumExp"}

#: Operators that are refused whatever their form.
UNKNOWN = [
    *("Tan", "Floor"),
]

FLOAT_TOLERANCE = 1e-4

#: Where onnxruntime computes in half precision.
HALF_TOLERANCE = 2e-3
FIXED_TOLERANCE = 0.02


TRAINING = ("test_training_dropout_default", "test_training_dropout", "test_training_dropout_zero_ratio")
BINARY = ("add", "sub", "mul", "div")
COMPARED = ("greater", "less", "greater_equal", "less_equal", "equal")
TRUTHS = ("and", "or", "xor")
INTEGERS = ("int8", "int16", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Refusal:
    """Cases that are refused: why, the sentence's beginning behind the node, the cases' names, and which node it is."""

    reason: str
    sentence: str
    cases: tuple[str, ...]
    node: str = "under_test"


REFUSALS = (
    Refusal(
        "private values are tensors of floats",
        "input the_secret of {operator} is of type ",
        (
            *(f"test_{name}_{kind} of *" for name in BINARY for kind in INTEGERS),
            *("test_div_int32_trunc of *", "test_maxpool_2d_uint8"),
            *("test_pow_types_int* of secret 0", "test_pow_types_float32_* of secret 1"),
            *("test_pow_types_int64_int64 of secret 1", "test_pow_types_int32_int32 of secret 1"),
            *("test_identity_sequence", "test_identity_opt"),
        ),
    ),
    Refusal(
        "indices that are asked for as many numbers as there are places",
        "an input of Equal holds looked-up values that are compared with different constants",
        ("test_equal_uint* of *",),
    ),
    Refusal(
        "a function of values on both sides of where it is not defined",
        "{operator} with inputs from -4 to 2 is not supported",
        ("test_reciprocal_example",),
    ),
    Refusal(
        "a secret exponent",
        "input [01] of Pow must (come from|be a constant)",
        ("test_pow of *1", "test_pow_example of *1", "test_pow_bcast_array of *1", "test_pow_types_int*_float32 of *1"),
    ),
    Refusal(
        "powers that differ",
        "input 1 of Pow must be one number other than 0",
        (
            *("test_pow of secret 0", "test_pow_example of secret 0", "test_pow_bcast_array of secret 0"),
            "test_pow_types_float32_* of secret 0",
        ),
    ),
    Refusal(
        "a secret of fewer axes, whose samples would meet another axis",
        "input [01] of {operator} has shape",
        (
            *(f"test_{name}_bcast of *t 1" for name in (*BINARY, *COMPARED)),
            # There is no case of Equal with two secrets.
            *(f"test_{name}_bcast of *and 1" for name in (*BINARY, *COMPARED) if name != "equal"),
            *(f"test_{name}_bcast{axes} of secret 1" for name in TRUTHS for axes in ("3v*", "4v2d", "4v3d")),
        ),
    ),
    Refusal(
        "a secret that matrices on its right enlarge",
        "input 1 of MatMul has shape",
        ("test_matmul_bcast of secret 0", "test_matmul_1d_3d of secret 0"),
    ),
    Refusal(
        "a secret that matrices on its left enlarge",
        "input 0 of MatMul has shape",
        ("test_matmul_bcast of secret 1",),
    ),
    Refusal(
        "a matrix on the left would mix samples",
        "inputs of MatMul have shapes",
        ("test_matmul_1d_3d of secret 1", "test_matmul_4d_1d of secret 1", "test_matmul_1d_1d of secret 1"),
    ),
    Refusal(
        "secrets of different axes, of which one would be the batch of the other's",
        "inputs of MatMul have shapes",
        tuple(f"test_matmul_{sides} of *and*" for sides in ("1d_3d", "4d_1d", "1d_1d")),
    ),
    Refusal("statistics of all samples", "axes of MeanVarianceNormalization is", ("test_mvn",)),
    Refusal(
        "a row of zeros has no norm to divide by",
        "calibration samples: at sample 0, `under_test.Function` becomes infinite",
        ("test_l2normalization_axis_0",),
    ),
    Refusal("a bias that differs by sample", "input 2 of Gemm has shape", ("test_gemm_default_matrix_bias",)),
    Refusal("a product over samples", "transA of Gemm is 1", ("test_gemm_transposeA", "test_gemm_all_attributes")),
    Refusal("training", "training_mode of {operator} is", ("test_batchnorm_*_training_mode", *TRAINING)),
    Refusal("bounds that contradict each other", "input 1 of Clip is 2", ("test_clip_min_greater_than_max",)),
    Refusal(
        "further outputs that are used",
        "output [a-z] of {operator} is not supported",
        ("test_maxpool_with_argmax_*", "test_dropout_default_mask*", "test_training_dropout*_mask"),
    ),
    Refusal(
        "rows of samples at the end of a network",
        "input 0 of Flatten has shape",
        ("test_flatten_axis[23]", "test_flatten_negative_axis[12]"),
        node="b_flat_out",
    ),
    Refusal("nothing is left", "ends of Slice leaves nothing", ("test_slice_start_out_of_bounds",)),
    Refusal(
        "a sum that leaves no axis, or goes along a diagonal",
        "equation of Einsum (is|takes)",
        ("test_einsum_inner_prod of *", "test_einsum_batch_diagonal"),
    ),
    Refusal("an axis in front of the samples", "shape of Expand turns", ("test_expand_dim_changed",)),
    Refusal(
        "classes that are not one sample's whole output",
        "axis of {operator} is",
        ("test_argmax_default_axis_*",),
    ),
    Refusal(
        "ties that go to the highest index",
        "select_last_index of ArgMax is 1",
        ("test_argmax_no_keepdims_example_s*", "test_argmax_keepdims_example_s*", "test_argmax_neg*_example_s*"),
    ),
)

#: No axis, or one without elements, is the input's fault, not an operator's.
EMPTY = (
    *("test_einsum_scalar", "test_reduce_max_empty_set_bool"),
    *("test_reshape_allowzero_reordered", "test_split_zero_size_splits_*", "test_reduce_sum_empty_set*"),
    *("test_reduce_l1_empty_set", "test_reduce_sum_square_empty_set"),
    *(
        "test_reduce_max_empty_set",
        "test_reduce_min_empty_set",
        "test_reduce_l2_empty_set",
        "test_reduce_log_sum_*empty_set",
    ),
)


@functools.cache
def cases_of(operator: str) -> list[NodeCase]:
    return list(node_cases(operator))


@pytest.mark.parametrize("operator", marked(SUPPORTED, LONG))
def test_every_case_is_equal_or_refused_by_name(operator: str) -> None:
    cases = cases_of(operator)
    assert cases
    complaints = [f"{case.name}: {complaint}" for case in cases for complaint in complaints_of(case, operator)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("operator", UNKNOWN)
def test_every_case_of_an_unknown_operator_is_refused_by_name(operator: str) -> None:
    for case in cases_of(operator):
        with pytest.raises(UnsupportedOpError, match=f"^node under_test: operator {operator} is not supported"):
            compiled(case)


def test_every_refusal_concerns_a_case() -> None:
    names = [case.name for operator in SUPPORTED for case in cases_of(operator)]
    assert len(set(names)) == len(names)
    patterns = [pattern for refusal in REFUSALS for pattern in refusal.cases] + list(EMPTY)
    assert [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)] == []


def complaints_of(case: NodeCase, operator: str) -> list[str]:
    """What is wrong with how a case is taken, or nothing."""
    refusals = [refusal for refusal in REFUSALS if matches(case, refusal.cases)]
    if len(refusals) + matches(case, EMPTY) > 1:
        return [f"is refused for more than one reason: {refusals}"]
    try:
        model = compiled(case)
    except (ModelError, InputError) as error:
        if matches(case, EMPTY):
            return [] if error.where == "input the_secret" else [f"blames the wrong place: {error}"]
        if not refusals:
            return [f"is refused without a reason: {error}"]
        (refusal,) = refusals
        return wrong_refusal(error, refusal.sentence.replace("{operator}", operator), refusal.node)
    if refusals or matches(case, EMPTY):
        return ["is taken, and the table says that it is refused"]
    return wrong_values(case, model)


def matches(case: NodeCase, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(case.name, pattern) for pattern in patterns)


def compiled(case: NodeCase) -> lanner.Model:
    # A volume's elements are many for the layer that the case ends in.
    return lanner.compile(
        case.model, case.x.astype(np.float32), output="logits", allow_imprecise=True, max_memory="32GB"
    )


def wrong_refusal(error: LannerError, sentence: str, node: str) -> list[str]:
    """Whether a refusal names the node, and the operator and attribute as the sentence does."""
    # What calibration finds names the node itself.
    named = isinstance(error, InputError) or error.where in (f"node {node}", node)
    named = named and isinstance(error, UnsupportedOpError | InputError)
    if named and re.search(rf"^(node `under_test`: )?{sentence}", error.what):
        return []
    return [f"is refused otherwise than by '{sentence}': {error!r} at {error.where}"]


def wrong_values(case: NodeCase, model: lanner.Model) -> list[str]:
    """Where an executor's values differ from onnxruntime's."""
    x = np.ascontiguousarray(case.x, np.float32)
    computed = model.native.float(batch_of(x, model.manifest.input))
    fixed = model.predict_fixed(x)
    largest = float(np.abs(computed).max())
    complaints = []
    tolerance = HALF_TOLERANCE if case.x.dtype.itemsize == 2 else FLOAT_TOLERANCE
    expected = case.expected.astype(np.float64)
    if not np.allclose(ended(case, model, computed), expected, rtol=tolerance, atol=0.1 * tolerance):
        complaints.append(f"float computes {computed}, not {case.expected}")
    if not np.abs(fixed - computed).max() <= FIXED_TOLERANCE * largest:
        complaints.append(f"fixed point computes {fixed}, not {computed}")
    return complaints


def ended(case: NodeCase, model: lanner.Model, logits: NDArray[np.float32]) -> Any:  # noqa: ANN401 - of any type
    """What the case's ending makes of the logits."""
    if case.ending != "ArgMax":
        return logits
    (node,) = (node for node in case.model.graph.node if node.op_type == "ArgMax")
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    scores = logits.reshape(len(logits), *model.manifest.output_shape)
    return scores.argmax(attributes.get("axis", 0)).reshape(len(logits), -1)
