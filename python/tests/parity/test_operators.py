"""Each operator, imported: the native executors against onnxruntime, and the secure run against those.

The operator under test stands in a small network that ends in a dense layer, so that the whole path compiles; every
output number is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import OPSET, make_model, random_weights

IMAGE = ("n", 3, 7, 9)

#: Operators that the usual opset does not have.
NEW = {"Gelu", "Mish"}

#: The names of constants that are integers.
INTEGERS = ("shape", "axes", "starts", "ends", "steps", "pads", "sizes", "indices")


def node(operator: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - as ONNX's own helper
    """A node that turns ``x`` and further inputs into ``t``."""
    return helper.make_node(operator, ["x", *inputs], ["t"], name="under_test", **attributes)


def constants(**values: object) -> dict[str, NDArray[np.generic]]:
    return {
        name: np.asarray(value, dtype=np.int64 if name in INTEGERS else np.float32) for name, value in values.items()
    }


def conv(**attributes: Any) -> Case:  # noqa: ANN401 - as ONNX's own helper
    group = attributes.get("group", 1)
    weights = random_weights(1, w=(6, 3 // group, 3, 2), b=(6,))
    return [node("Conv", "w", "b", **attributes)], weights


def at(source: str, operator: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    """A node that turns a value and further inputs into ``t``."""
    return helper.make_node(operator, [source, *inputs], ["t"], name="under_test", **attributes)


def rows(operator: str, *inputs: str, **attributes: Any) -> Case:  # noqa: ANN401 - as ONNX's own helper
    """The image as three rows, under an operator whose weights, if it has any, are four kernels of three taps."""
    weights = {} if not inputs else random_weights(2, w=(3, 4, 3) if operator == "ConvTranspose" else (4, 3, 3))
    view = helper.make_node("Reshape", ["x", "shape"], ["r"], name="r")
    return [view, at("r", operator, *inputs, **attributes)], {**weights, **constants(shape=[0, 3, -1])}


def volume(operator: str, *inputs: str, **attributes: Any) -> Case:  # noqa: ANN401 - as ONNX's own helper
    """The image as three channels of 3 x 3 x 7, under an operator with kernels of two taps a side."""
    channels = (3, 2) if operator == "ConvTranspose" else (6, 3 // attributes.get("group", 1))
    kernels = random_weights(2, w=(*channels, 2, 2, 2), b=(2 if operator == "ConvTranspose" else 6,))
    view = helper.make_node("Reshape", ["x", "shape"], ["v"], name="v")
    return [view, at("v", operator, *inputs, **attributes)], {
        **(kernels if inputs else {}),
        **constants(shape=[0, 3, 3, 3, 7]),
    }


def of_one(entry: onnx.NodeProto) -> Case:
    """What makes one number of a sample, over all axes but the batch's."""
    axes = [1, 2, 3]
    if entry.op_type == "ReduceSum":
        entry.input.append("axes")
        return [entry], constants(axes=axes)
    entry.attribute.append(helper.make_attribute("axes", axes))
    return [entry], {}


def residual(operator: str) -> Case:
    """A convolution that keeps the shape, and its sum or difference with what it reads."""
    return [
        helper.make_node("Conv", ["x", "w"], ["c"], name="c", pads=[1, 1, 1, 1]),
        node(operator, "c"),
    ], random_weights(8, w=(3, 3, 3, 3))


def sliced(**values: list[int]) -> Case:
    return [node("Slice", *(name if name in values else "" for name in SLICED))], constants(**values)


def split(outputs: tuple[str, ...], *inputs: str, axis: int, **values: list[int]) -> Case:
    """A split whose parts are joined again in the other order."""
    return [
        helper.make_node("Split", ["x", *inputs], outputs, name="parts", axis=axis),
        helper.make_node("Concat", outputs[::-1], ["t"], name="under_test", axis=axis),
    ], constants(**values)


def channels_last() -> Case:
    """Pointwise arithmetic in the order of TensorFlow, between two convolutions in the order of ONNX."""
    return [
        helper.make_node("Transpose", ["x"], ["nhwc"], name="to_last", perm=[0, 2, 3, 1]),
        helper.make_node("Add", ["nhwc", "c"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["r"], name="r"),
        helper.make_node("Transpose", ["r"], ["nchw"], name="to_first", perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["nchw", "w"], ["t"], name="under_test"),
    ], {**constants(c=[0.5, -0.5, 0.25]), **random_weights(9, w=(4, 3, 2, 2))}


def scaled(operator: str, factor: float, **attributes: Any) -> Case:  # noqa: ANN401 - as ONNX's own helper
    """An operator of the input times a factor."""
    product = helper.make_node("Mul", ["x", "c"], ["scaled"], name="scaled")
    return [product, at("scaled", operator, **attributes)], constants(c=factor)


def positive(operator: str, *inputs: str, **values: float) -> Case:
    """An operator of values between 0.1 and 2.1."""
    shifted = helper.make_node("Add", ["x", "c"], ["shifted"], name="shifted")
    return [shifted, at("shifted", operator, *inputs)], constants(c=1.1, **values)


SLICED = ("starts", "ends", "axes", "steps")

Case = tuple[list[onnx.NodeProto], dict[str, NDArray[np.generic]]]

CASES: dict[str, Callable[[], Case]] = {
    "conv": conv,
    "conv with strides and pads": lambda: conv(strides=[2, 3], pads=[1, 0, 2, 1]),
    "conv with same upper": lambda: conv(auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv with same lower": lambda: conv(auto_pad="SAME_LOWER", strides=[2, 2]),
    "conv with valid": lambda: conv(auto_pad="VALID"),
    "conv without bias": lambda: ([node("Conv", "w")], random_weights(2, w=(4, 3, 2, 2))),
    "depthwise conv": lambda: conv(group=3, pads=[1, 1, 1, 0], strides=[2, 1]),
    "dilated conv": lambda: conv(dilations=[2, 3]),
    "conv whose taps are far apart": lambda: conv(dilations=[1, 1100], pads=[1, 1100, 1, 1100], strides=[1, 2]),
    "batch normalization": lambda: (
        [node("BatchNormalization", "scale", "bias", "mean", "var", epsilon=1e-3)],
        constants(scale=[1, -2, 3], bias=[0.5, 0, -1], mean=[0.1, -0.2, 0.3], var=[1, 2, 0.5]),
    ),
    "leaky_relu": lambda: ([node("LeakyRelu", alpha=0.1)], {}),
    "relu": lambda: ([node("Relu")], {}),
    "leaky_relu beyond slopes of fixed point": lambda: ([node("LeakyRelu", alpha=-0.5)], {}),
    "slopes by channel": lambda: ([node("PRelu", "slope")], constants(slope=[[[0.25]], [[-0.5]], [[1.5]]])),
    "slopes by column": lambda: ([node("PRelu", "slope")], constants(slope=np.linspace(0, 0.5, 9))),
    "slopes by channel as Keras writes them": lambda: (
        [
            helper.make_node("Relu", ["x"], ["r"], name="r"),
            helper.make_node("Neg", ["x"], ["n"], name="n"),
            helper.make_node("Relu", ["n"], ["s"], name="s"),
            helper.make_node("Mul", ["s", "slope"], ["m"], name="m"),
            at("r", "Add", "m"),
        ],
        constants(slope=[[[-0.25]], [[0.5]], [[-1.5]]]),
    ),
    "abs": lambda: ([node("Abs")], {}),
    "hard sigmoid": lambda: ([node("HardSigmoid", alpha=0.7, beta=0.4)], {}),
    "hard swish": lambda: (
        [helper.make_node("Mul", ["x", "c"], ["scaled"], name="scaled"), at("scaled", "HardSwish")],
        constants(c=5),
    ),
    **{name: partial(scaled, name, 4) for name in ("Sigmoid", "Tanh", "Erf", "Softsign", "Exp", "Sin", "Cos")},
    **{name: partial(scaled, name, 4) for name in ("Softplus", "Elu", "Selu", "Celu", "Mish")},
    "gelu": lambda: scaled("Gelu", 4),
    "gelu by a tangent": lambda: scaled("Gelu", 4, approximate="tanh"),
    **{name: partial(positive, name) for name in ("Log", "Sqrt", "Reciprocal")},
    "cube": lambda: ([node("Pow", "c")], constants(c=3)),
    "inverse root": lambda: positive("Pow", "e", e=-0.5),
    "silu in parts": lambda: ([helper.make_node("Sigmoid", ["x"], ["s"], name="s"), node("Mul", "s")], {}),
    "quotient of two": lambda: (
        [
            helper.make_node("Sigmoid", ["x"], ["s"], name="s"),
            helper.make_node("Conv", ["x", "w"], ["c"], name="c", pads=[1, 1, 1, 1]),
            helper.make_node("Div", ["c", "s"], ["t"], name="under_test"),
        ],
        random_weights(8, w=(3, 3, 3, 3)),
    ),
    "thresholded relu at 0": lambda: ([node("ThresholdedRelu", alpha=0.0)], {}),
    "relu6": lambda: ([node("Clip", "low", "high")], constants(low=0, high=1.5)),
    "clip between other bounds": lambda: ([node("Clip", "low", "high")], constants(low=-0.5, high=0.25)),
    "clip from above": lambda: ([node("Clip", "", "high")], constants(high=0.25)),
    "clip between wide bounds": lambda: ([node("Clip", "low", "high")], constants(low=-65504, high=65504)),
    "clip from above, far": lambda: ([node("Clip", "", "high")], constants(high=100)),
    "relu6 in parts": lambda: (
        [helper.make_node("Relu", ["x"], ["r"], name="r"), at("r", "Min", "high")],
        constants(high=0.5),
    ),
    "maximum with constants": lambda: (
        [node("Max", "a", "b")],
        constants(a=[[[-0.5]], [[0]], [[0.25]]], b=-0.125),
    ),
    "minimum with a far constant": lambda: ([node("Min", "a")], constants(a=30)),
    "maximum of two": lambda: residual("Max"),
    "minimum of two": lambda: residual("Min"),
    "maximum of three and a constant": lambda: (
        [
            helper.make_node("Neg", ["x"], ["n"], name="n"),
            helper.make_node("Conv", ["x", "w"], ["c"], name="c", pads=[1, 1, 1, 1]),
            node("Max", "n", "c", "low"),
        ],
        {**random_weights(8, w=(3, 3, 3, 3)), **constants(low=0.25)},
    ),
    "clip that is relu": lambda: ([node("Clip", "low")], constants(low=0)),
    "max pool": lambda: ([node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])], {}),
    "max pool with pads": lambda: ([node("MaxPool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 0])], {}),
    "max pool rounding up": lambda: ([node("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)], {}),
    "max pool with same lower": lambda: (
        [node("MaxPool", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER")],
        {},
    ),
    "average pool": lambda: ([node("AveragePool", kernel_shape=[2, 3], strides=[1, 2])], {}),
    "average pool that counts its pads": lambda: (
        [node("AveragePool", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1)],
        {},
    ),
    "average pool whose divisor varies": lambda: (
        [node("AveragePool", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])],
        {},
    ),
    "convolution of rows": lambda: rows("Conv", "w", pads=[2, 1], strides=[2], dilations=[2]),
    "pools of rows": lambda: (
        [
            *rows("Conv", "w")[0][:1],
            helper.make_node("Conv", ["r", "w"], ["c"], name="c"),
            helper.make_node("Relu", ["c"], ["a"], name="a"),
            helper.make_node("MaxPool", ["a"], ["m"], name="m", kernel_shape=[3], strides=[2], pads=[1, 0]),
            at("m", "AveragePool", kernel_shape=[2], ceil_mode=1, strides=[2]),
        ],
        rows("Conv", "w")[1],
    ),
    "mean of rows": lambda: rows("GlobalAveragePool"),
    "transposed convolution": lambda: (
        [node("ConvTranspose", "w", "b", strides=[2, 3], pads=[1, 0, 2, 1], output_padding=[1, 2], dilations=[2, 1])],
        random_weights(1, w=(3, 2, 3, 2), b=(2,)),
    ),
    "transposed convolution of groups": lambda: (
        [node("ConvTranspose", "w", group=3, strides=[2, 2], auto_pad="SAME_LOWER")],
        random_weights(1, w=(3, 2, 3, 3)),
    ),
    "transposed convolution of rows": lambda: rows("ConvTranspose", "w", strides=[2], output_shape=[125]),
    "nearest elements, twice as many": lambda: (
        [node("Resize", "", "scales", coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
        constants(scales=[1, 1, 2, 2]),
    ),
    "nearest elements, of an odd size": lambda: (
        [node("Resize", "", "scales", coordinate_transformation_mode="align_corners", nearest_mode="ceil")],
        constants(scales=[1, 1, 1.5, 0.5]),
    ),
    "depth to space": lambda: (
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="c"),
            at("c", "DepthToSpace", blocksize=2, mode="CRD"),
        ],
        random_weights(8, w=(8, 3, 1, 1)),
    ),
    "space to depth": lambda: (
        [
            helper.make_node("Slice", ["x", "starts", "ends"], ["even"], name="even"),
            at("even", "SpaceToDepth", blocksize=2),
        ],
        constants(starts=[0, 0, 0, 0], ends=[2**40, 3, 6, 8]),
    ),
    "sum over a column": lambda: ([node("ReduceSum", "axes", keepdims=0)], constants(axes=[-1])),
    "mean over channels": lambda: ([node("ReduceMean", axes=[1])], {}),
    "maximum over channels and rows": lambda: ([node("ReduceMax", axes=[1, -2])], {}),
    "minimum over the image": lambda: ([node("ReduceMin", axes=[2, 3], keepdims=0)], {}),
    "magnitudes of a row": lambda: ([node("ReduceL1", axes=[3])], {}),
    "squares of a row": lambda: ([node("ReduceSumSquare", axes=[3])], {}),
    "global max pool": lambda: ([node("GlobalMaxPool")], {}),
    "contraction": lambda: ([node("Einsum", "w", equation="nchw,chk->nwk")], random_weights(8, w=(3, 7, 2))),
    "product over the last axis": lambda: ([node("MatMul", "w")], random_weights(6, w=(9, 4))),
    "product from the left": lambda: (
        [helper.make_node("MatMul", ["w", "x"], ["t"], name="under_test")],
        random_weights(6, w=(3, 4, 7)),
    ),
    "global average pool": lambda: ([node("GlobalAveragePool")], {}),
    "mean over the image": lambda: ([node("ReduceMean", axes=[2, 3], keepdims=0)], {}),
    "mean over the image, channels last": lambda: (
        [
            helper.make_node("Transpose", ["x"], ["nhwc"], name="to_last", perm=[0, 2, 3, 1]),
            helper.make_node("ReduceMean", ["nhwc"], ["t"], name="under_test", axes=[1, -2]),
        ],
        {},
    ),
    "square": lambda: ([node("Pow", "c")], constants(c=2)),
    "product with itself": lambda: ([node("Mul", "x")], {}),
    "product of two": lambda: ([helper.make_node("Relu", ["x"], ["r"], name="r"), node("Mul", "r")], {}),
    "product with a gate for each channel": lambda: (
        [
            helper.make_node("GlobalAveragePool", ["x"], ["m"], name="m"),
            helper.make_node("Conv", ["m", "w", "b"], ["c"], name="c"),
            helper.make_node("HardSigmoid", ["c"], ["gate"], name="gate"),
            node("Mul", "gate"),
        ],
        random_weights(8, w=(3, 3, 1, 1), b=(3,)),
    ),
    "sum of several": lambda: (
        [helper.make_node("Relu", ["x"], ["r"], name="r"), node("Sum", "r", "c", "x")],
        constants(c=np.linspace(-1, 1, 9)),
    ),
    "mean of several": lambda: ([helper.make_node("Relu", ["x"], ["r"], name="r"), node("Mean", "r", "x")], {}),
    "sum with a constant of more elements": lambda: (
        [helper.make_node("GlobalAveragePool", ["x"], ["m"], name="m"), at("m", "Add", "c")],
        constants(c=np.linspace(-1, 1, 12).reshape(3, 4, 1)),
    ),
    "sum with a convolution": lambda: residual("Add"),
    "difference with a convolution": lambda: residual("Sub"),
    "transpose": lambda: ([node("Transpose", perm=[0, 3, 1, 2])], {}),
    "channels last": channels_last,
    "concat": lambda: (
        [helper.make_node("Relu", ["x"], ["r"], name="r"), node("Concat", "r", "x", axis=-3)],
        {},
    ),
    "slice": lambda: sliced(starts=[1, -8], ends=[6, 2**40], axes=[2, -1], steps=[2, 3]),
    "slice backwards": lambda: sliced(starts=[-1, 4], ends=[-(2**40), 0], axes=[1, 2], steps=[-1, -2]),
    "slice without axes": lambda: sliced(starts=[0, 1], ends=[2**40, 3]),
    "split": lambda: split(("a", "b"), "sizes", axis=3, sizes=[2, 7]),
    "split in equal parts": lambda: split(("a", "b", "c"), axis=1),
    "gather of one index": lambda: ([node("Gather", "indices", axis=2)], constants(indices=-2)),
    "gather of several": lambda: ([node("Gather", "indices", axis=1)], constants(indices=[2, 1, 0])),
    "gather in no order": lambda: ([node("Gather", "indices", axis=2)], constants(indices=[[0, 5, 5], [6, -6, 2]])),
    "expand": lambda: (
        [helper.make_node("ReduceMean", ["x"], ["m"], name="m", axes=[1, 3]), at("m", "Expand", "shape")],
        constants(shape=[2, 1, 4]),
    ),
    "tile": lambda: ([node("Tile", "shape")], constants(shape=[1, 2, 1, 2])),
    "pad by reflection": lambda: ([node("Pad", "pads", mode="reflect")], constants(pads=[0, 0, 3, 1, 0, 0, 2, 8])),
    "pad by the edge": lambda: ([node("Pad", "pads", mode="edge")], constants(pads=[0, 1, -1, 2, 0, 0, 2, 0])),
    "pad": lambda: ([node("Pad", "pads")], constants(pads=[0, 1, 2, 0, 0, 0, 1, 3])),
    "pad with a value": lambda: (
        [node("Pad", "pads", "v")],
        constants(pads=[0, 0, 1, 2, 0, 0, 0, 1], v=-0.75),
    ),
    "pad that cuts": lambda: ([node("Pad", "pads")], constants(pads=[0, 0, -2, 1, 0, 2, 1, -3])),
    "shortcut of a residual network": lambda: (
        [
            helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["half"], name="half"),
            helper.make_node("Pad", ["half", "pads"], ["padded"], name="padded"),
            helper.make_node("Conv", ["x", "w"], ["c"], name="c", pads=[1, 1, 1, 1], strides=[2, 2]),
            helper.make_node("Add", ["c", "padded"], ["t"], name="under_test"),
        ],
        {
            **constants(starts=[0, 0], ends=[7, 9], axes=[2, 3], steps=[2, 2], pads=[0, 1, 0, 0, 0, 2, 0, 0]),
            **random_weights(8, w=(6, 3, 3, 3)),
        },
    ),
    "squeeze": lambda: (
        [
            helper.make_node("GlobalAveragePool", ["x"], ["m"], name="m"),
            helper.make_node("Squeeze", ["m", "axes"], ["t"], name="under_test"),
        ],
        constants(axes=[2, 3]),
    ),
    "flatten": lambda: ([node("Flatten")], {}),
    "reshape": lambda: ([node("Reshape", "shape")], constants(shape=[0, -1, 9])),
    "reshape with the batch inferred": lambda: ([node("Reshape", "shape")], constants(shape=[-1, 21, 9])),
    "unsqueeze": lambda: ([node("Unsqueeze", "axes")], constants(axes=[1])),
    "transpose that moves nothing": lambda: (
        [
            helper.make_node("Unsqueeze", ["x", "axes"], ["u"], name="u"),
            helper.make_node("Transpose", ["u"], ["t"], name="under_test", perm=[0, 2, 1, 3, 4]),
        ],
        constants(axes=[2]),
    ),
    "identity": lambda: ([node("Identity")], {}),
    "dropout": lambda: ([node("Dropout", "ratio")], constants(ratio=0.5)),
    "cast to float": lambda: ([node("Cast", to=1)], {}),
    "add a scalar": lambda: ([node("Add", "c")], constants(c=0.5)),
    "add per channel": lambda: ([node("Add", "c")], constants(c=[[[[1]], [[-2]], [[3]]]])),
    "subtract a constant": lambda: ([node("Sub", "c")], constants(c=[[[1]], [[-2]], [[3]]])),
    "subtract from a constant": lambda: (
        [helper.make_node("Sub", ["c", "x"], ["t"], name="under_test")],
        constants(c=[[[1]], [[-2]], [[3]]]),
    ),
    "multiply": lambda: ([node("Mul", "c")], constants(c=np.linspace(-1, 1, 9))),
    "divide": lambda: ([node("Div", "c")], constants(c=[[[2]], [[-4]], [[0.5]]])),
    "negate": lambda: ([node("Neg")], {}),
    "constant node": lambda: (
        [
            helper.make_node("Constant", [], ["c"], value_float=2.0),
            node("Mul", "c"),
        ],
        {},
    ),
    "convolution of volumes": lambda: volume("Conv", "w", "b", pads=[1, 0, 1, 0, 1, 2], strides=[2, 1, 3]),
    "convolution of volumes in groups, with holes": lambda: volume(
        "Conv", "w", "b", group=3, dilations=[2, 1, 3], pads=[2, 1, 0, 0, 1, 1]
    ),
    "transposed convolution of volumes": lambda: volume(
        "ConvTranspose", "w", "b", strides=[2, 1, 3], pads=[1, 0, 1, 0, 1, 2], output_padding=[1, 0, 2]
    ),
    "max pool of volumes": lambda: volume(
        "MaxPool", kernel_shape=[2, 3, 2], strides=[1, 2, 3], pads=[1, 1, 0, 0, 1, 1]
    ),
    "average pool of volumes": lambda: volume("AveragePool", kernel_shape=[2, 3, 2], pads=[1, 0, 0, 0, 1, 1]),
    "mean of volumes": lambda: volume("GlobalAveragePool"),
    "largest of volumes": lambda: volume("GlobalMaxPool"),
    "max pool with holes": lambda: (
        [node("MaxPool", kernel_shape=[3, 2], dilations=[2, 3], pads=[2, 1, 1, 0], strides=[1, 2])],
        {},
    ),
    "norm over windows": lambda: ([node("LpPool", kernel_shape=[2, 3], strides=[1, 2], p=2)], {}),
    "sum of magnitudes over windows": lambda: ([node("LpPool", kernel_shape=[2, 3], pads=[1, 0, 0, 1], p=1)], {}),
    "norm over all": lambda: ([node("GlobalLpPool", p=2)], {}),
    "local response normalization": lambda: ([node("LRN", size=3, alpha=0.5, beta=0.75, bias=1.0)], {}),
    "local response normalization by a root": lambda: ([node("LRN", size=5, alpha=0.1, beta=0.5, bias=2.0)], {}),
    "between elements, twice as many": lambda: (
        [node("Resize", "", "scales", mode="linear", coordinate_transformation_mode="half_pixel")],
        constants(scales=[1, 1, 2, 2]),
    ),
    "between elements, of an odd size": lambda: (
        [node("Resize", "", "scales", mode="linear", coordinate_transformation_mode="align_corners")],
        constants(scales=[1, 1, 0.75, 1.5]),
    ),
    "between elements, by cubes": lambda: (
        [node("Resize", "", "scales", mode="cubic", coordinate_transformation_mode="half_pixel")],
        constants(scales=[1, 1, 2, 1.5]),
    ),
    "thresholded relu": lambda: ([node("ThresholdedRelu", alpha=0.4)], {}),
    "shrink": lambda: ([node("Shrink", lambd=0.4, bias=0.1)], {}),
    "soft shrink": lambda: ([node("Shrink", lambd=0.4, bias=0.4)], {}),
    "sign": lambda: ([node("Sign")], {}),
    "sum over everything": lambda: of_one(node("ReduceSum", keepdims=0)),
    "norm of everything": lambda: of_one(node("ReduceL2", keepdims=0)),
    "shape of the input feeding a reshape": lambda: (
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Gather", ["s", "zero"], ["n"]),
            helper.make_node("Unsqueeze", ["n", "axes"], ["head"]),
            helper.make_node("Concat", ["head", "shape"], ["target"], axis=0),
            node("Reshape", "target"),
        ],
        {**constants(axes=[0], shape=[-1]), "zero": np.array(0)},
    ),
}


def network(nodes: list[onnx.NodeProto], weights: dict[str, NDArray[np.generic]]) -> onnx.ModelProto:
    """The nodes, then a dense layer of five outputs."""
    opset = 20 if NEW.intersection(entry.op_type for entry in nodes) else OPSET
    probe = make_model(nodes, IMAGE, weights, opset=opset, output="t")
    session = onnxruntime.InferenceSession(probe.SerializeToString())
    width = session.run(None, {"x": np.zeros((1, *IMAGE[1:]), np.float32)})[0].size
    tail = [
        helper.make_node("Flatten", ["t"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "fc", "fc_bias"], ["y"], name="fc", alpha=0.5, beta=2.0),
    ]
    dense = random_weights(3, fc_bias=(5,)) | {"fc": random_weights(4, fc=(5, width))["fc"].T.copy()}
    return make_model([*nodes, *tail], IMAGE, {**weights, **dense}, opset=opset)


def samples() -> NDArray[np.float32]:
    return np.random.default_rng(5).uniform(-1, 1, (16, 3, 7, 9)).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_native_executors_equal_onnxruntime(name: str) -> None:
    proto, x = network(*CASES[name]()), samples()
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    model = lanner.compile(proto, x, output="logits")
    assert np.allclose(model.native.float(x), expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(model.predict_float(x), expected, rtol=1e-4, atol=1e-5)
    spread = float(np.abs(expected).max())
    assert np.abs(model.predict_fixed(x) - expected).max() < 0.05 * spread + 0.01


@pytest.mark.parametrize("name", CASES)
def test_secure_run_equals_the_fixed_point_reference(name: str) -> None:
    x = samples()
    model = lanner.compile(network(*CASES[name]()), x, output="logits")
    integers, overflows = model.predict_integers(x[:2])
    assert overflows == 0
    for sample, expected in zip(x, integers, strict=False):
        assert lanner.run(model, sample).integers == expected.tolist()


@pytest.mark.parametrize("ending", [["Softmax"], ["LogSoftmax"], ["ArgMax"], ["Softmax", "ArgMax"]])
def test_endings_leave_the_logits(ending: list[str]) -> None:
    nodes, weights = CASES["conv"]()
    proto, x = network(nodes, weights), samples()
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    names = ["y", *(f"end{index}" for index in range(len(ending)))]
    for operator, source, target in zip(ending, names, names[1:], strict=False):
        proto.graph.node.append(helper.make_node(operator, [source], [target], name=target, axis=1))
    kind = onnx.TensorProto.INT64 if ending[-1] == "ArgMax" else onnx.TensorProto.FLOAT
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info(names[-1], kind, ["n", "outputs"]))
    model = lanner.compile(proto, x, output="logits")
    assert np.allclose(model.predict_float(x), expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(model.native.float(x), expected, rtol=1e-4, atol=1e-5)


def test_reshape_to_a_batch_of_one_is_taken_sample_by_sample() -> None:
    proto, x = network([node("Reshape", "shape")], constants(shape=[1, -1])), samples()
    singly = onnxruntime.InferenceSession(proto.SerializeToString())
    expected = np.concatenate([singly.run(None, {"x": sample[None]})[0] for sample in x])
    model = lanner.compile(proto, x, output="logits")
    assert np.allclose(model.predict_float(x), expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(model.native.float(x), expected, rtol=1e-4, atol=1e-5)


def test_batch_fixed_at_one_is_taken_sample_by_sample() -> None:
    proto, x = network(*CASES["relu"]()), samples()
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model = lanner.compile(proto, x, output="logits")
    assert np.allclose(model.predict_float(x), expected, rtol=1e-4, atol=1e-5)
