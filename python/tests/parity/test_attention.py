"""Attention and normalisation by a sample's own statistics, beside onnxruntime and in secure runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import make_model, random_weights
from helpers.times import marked
from helpers.transformers import Exported, transformer, vision_transformer
from lanner.errors import ModelError

MODES = ("gazelle", "falcon", "cheetah")
SAMPLES = 40

FLOAT_TOLERANCE = 1e-4

#: Of the largest output, at the default precision: a logit off by 0.5% of their range.
FIXED_TOLERANCE = 0.01

TRANSFORMERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "a block": transformer,
    "a block whose normalisation is in parts": lambda: transformer(opset=14),
    "a vision transformer": vision_transformer,
}


def samples(proto: onnx.ModelProto, scale: float = 1.0, seed: int = 5) -> NDArray[np.float32]:
    shape = [side.dim_value for side in proto.graph.input[0].type.tensor_type.shape.dim][1:]
    drawn = scale * np.random.default_rng(seed).standard_normal((SAMPLES, *shape))
    return drawn.astype(np.float32)


def expected(proto: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.float32]:
    values = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    return np.asarray(values).reshape(len(x), -1)


def check(proto: onnx.ModelProto, model: lanner.Model, x: NDArray[np.float32]) -> None:
    """Compare both executors with onnxruntime."""
    truth = expected(proto, x)
    largest = float(np.abs(truth).max())
    assert np.abs(model.native.float(x) - truth).max() <= FLOAT_TOLERANCE * largest
    assert np.abs(model.predict_fixed(x) - truth).max() <= FIXED_TOLERANCE * largest


#: One of each pair is enough from day to day.
DAILY = [
    ("a block", "gazelle"),
    ("a block whose normalisation is in parts", "falcon"),
    ("a vision transformer", "cheetah"),
]
PAIRS = list(itertools.product(TRANSFORMERS, MODES))


@pytest.mark.parametrize("pair", marked(PAIRS, set(PAIRS) - set(DAILY), tuple), ids=" in ".join)
def test_transformers_agree_and_run_privately(pair: tuple[str, str]) -> None:
    name, mode = pair
    proto = TRANSFORMERS[name]()
    x = samples(proto)
    model = lanner.compile(proto, x, mode=mode, output="logits")
    check(proto, model, x)
    (integers,), overflows = model.predict_integers(x[:1])
    assert overflows == 0
    assert lanner.run(model, x[0]).integers == integers.tolist()


def at(*nodes: tuple[Any, ...], opset: int = 17, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401 - arrays
    """Nodes from ``a``, a convolution of an image (n, 4, 5, 6), to ``t``, and a dense layer behind them.

    A node is an operator, its inputs, and its attributes; it writes ``t`` where it names no output.
    """
    made = [helper.make_node("Conv", ["x", "mix"], ["a"], name="mix")]
    for operator, inputs, *rest in nodes:
        attributes: dict[str, Any] = dict(*rest)
        outputs = attributes.pop("outputs", ["t"])
        made.append(helper.make_node(operator, inputs, outputs, name=f"under_test_{outputs[0]}", **attributes))
    weights = {
        name: np.asarray(value, np.int64 if name in ("axes", "shape") else np.float32)
        for name, value in constants.items()
    }
    kernels = {"mix": random_weights(1, mix=(4, 3, 1, 1))["mix"]}
    probe = make_model(made, ("n", 3, 5, 6), {**weights, **kernels}, opset=opset, output="t")
    session = onnxruntime.InferenceSession(probe.SerializeToString())
    width = session.run(None, {"x": np.ones((1, 3, 5, 6), np.float32)})[0].size
    dense = random_weights(3, fc=(5, width), fc_bias=(5,))
    made += [
        helper.make_node("Flatten", ["t"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "fc", "fc_bias"], ["y"], name="fc", transB=1),
    ]
    return make_model(made, ("n", 3, 5, 6), {**weights, **kernels, **dense}, opset=opset)


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(7).uniform(0.5, 1.5, shape).astype(np.float32)


def of_means(*nodes: Any, far: float = 8.0, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401 - as `at`
    """Values ``o`` far from 0, normalised by their means, ``m``, and those of their squares, ``q``, as flax does."""
    return at(
        ("Add", ["a", "far"], {"outputs": ["o"]}),
        *nodes,
        ("Mul", ["m", "m"], {"outputs": ["f"]}),
        ("Sub", ["q", "f"], {"outputs": ["d"]}),
        ("Max", ["none", "d"], {"outputs": ["e"]}),
        ("Add", ["e", "eps"], {"outputs": ["v"]}),
        ("Sqrt", ["v"], {"outputs": ["w"]}),
        ("Sub", ["o", "m"], {"outputs": ["z"]}),
        ("Div", ["z", "w"]),
        far=far,
        none=0,
        eps=1e-5,
        **constants,
    )


FORMS: dict[str, Callable[[], onnx.ModelProto]] = {
    "softmax of channels": lambda: at(("Softmax", ["a"], {"axis": 1})),
    "softmax of columns": lambda: at(("Softmax", ["a"])),
    "softmax of the axes from one on, as before opset 13": lambda: at(("Softmax", ["a"], {"axis": 2}), opset=11),
    "softmax of all, as before opset 13": lambda: at(("Softmax", ["a"]), opset=9),
    "log-softmax": lambda: at(("LogSoftmax", ["a"], {"axis": -2})),
    "softmax at a temperature": lambda: at(("Div", ["a", "c"], {"outputs": ["s"]}), ("Softmax", ["s"]), c=0.25),
    "softmax in parts": lambda: at(
        ("ReduceMax", ["a"], {"axes": [-1], "outputs": ["m"]}),
        ("Sub", ["a", "m"], {"outputs": ["d"]}),
        ("Exp", ["d"], {"outputs": ["e"]}),
        ("ReduceSum", ["e", "axes"], {"outputs": ["s"]}),
        ("Div", ["e", "s"]),
        axes=[-1],
    ),
    "log of a sum of exponentials": lambda: at(("ReduceLogSumExp", ["a"], {"axes": [1, -1]})),
    "log of a sum": lambda: at(("Exp", ["a"], {"outputs": ["e"]}), ("ReduceLogSum", ["e"], {"axes": [1]})),
    "norm of columns": lambda: at(("ReduceL2", ["a"], {"axes": [3], "keepdims": 0})),
    "layer normalisation": lambda: at(
        ("LayerNormalization", ["a", "c", "b"], {"axis": 2, "epsilon": 1e-3}), c=numbers(5, 6), b=numbers(5, 6)
    ),
    "layer normalisation of all": lambda: at(
        ("LayerNormalization", ["a", "c"], {"axis": 1, "stash_type": 1}), c=numbers(4, 5, 6)
    ),
    "a mean and an inverse deviation": lambda: at(
        ("LayerNormalization", ["a", "c"], {"axis": -2, "outputs": ["u", "m", "v"]}),
        ("Mul", ["m", "v"], {"outputs": ["w"]}),
        ("Add", ["u", "w"]),
        c=numbers(5, 6),
    ),
    "root mean squares in parts": lambda: at(
        ("Pow", ["a", "two"], {"outputs": ["s"]}),
        ("ReduceMean", ["s"], {"axes": [2, 3], "outputs": ["m"]}),
        ("Add", ["m", "eps"], {"outputs": ["v"]}),
        ("Sqrt", ["v"], {"outputs": ["r"]}),
        ("Reciprocal", ["r"], {"outputs": ["i"]}),
        ("Mul", ["a", "i"]),
        two=2,
        eps=1e-5,
    ),
    "a variance as a difference of means": lambda: of_means(
        ("ReduceMean", ["o"], {"axes": [-1], "outputs": ["m"]}),
        ("Mul", ["o", "o"], {"outputs": ["s"]}),
        ("ReduceMean", ["s"], {"axes": [-1], "outputs": ["q"]}),
    ),
    "a variance as a difference of scaled sums over axes that are moved": lambda: of_means(
        ("Transpose", ["o"], {"perm": [0, 3, 1, 2], "outputs": ["p"]}),
        ("ReduceSum", ["p", "axes"], {"keepdims": 0, "outputs": ["n"]}),
        ("Pow", ["p", "two"], {"outputs": ["s"]}),
        ("ReduceSum", ["s", "axes"], {"keepdims": 0, "outputs": ["r"]}),
        ("Mul", ["n", "part"], {"outputs": ["k"]}),
        ("Mul", ["r", "part"], {"outputs": ["l"]}),
        ("Reshape", ["k", "shape"], {"outputs": ["m"]}),
        ("Reshape", ["l", "shape"], {"outputs": ["q"]}),
        axes=[2, 3],
        two=2,
        part=1 / 20,
        shape=[0, 1, 1, 6],
    ),
    "instance normalisation": lambda: at(("InstanceNormalization", ["a", "c", "b"]), c=numbers(4), b=numbers(4)),
    "group normalisation": lambda: at(
        ("GroupNormalization", ["a", "c", "b"], {"num_groups": 2}), c=numbers(4), b=numbers(4), opset=21
    ),
    "mean and variance of an image": lambda: at(("MeanVarianceNormalization", ["a"], {"axes": [2, 3]})),
    "images of norm one": lambda: at(
        ("Reshape", ["a", "shape"], {"outputs": ["r"]}),
        ("LpNormalization", ["r"], {"axis": 2, "p": 2}),
        shape=[0, 4, -1],
    ),
    "rows whose magnitudes add up to one": lambda: at(("LpNormalization", ["a"], {"axis": 1, "p": 1})),
    "a product of both sides' repeats": lambda: at(
        ("ReduceMean", ["a"], {"axes": [1], "outputs": ["m"]}),
        ("ReduceMax", ["a"], {"axes": [2], "outputs": ["n"]}),
        ("Mul", ["m", "n"]),
    ),
    "a quotient by a column": lambda: at(
        ("Exp", ["a"], {"outputs": ["e"]}),
        ("ReduceSum", ["e", "axes"], {"outputs": ["s"]}),
        ("Div", ["a", "s"]),
        axes=[2],
    ),
    "matrices": lambda: at(("Transpose", ["a"], {"perm": [0, 1, 3, 2], "outputs": ["u"]}), ("MatMul", ["a", "u"])),
    "matrices of which one is repeated": lambda: at(
        ("ReduceMean", ["a"], {"axes": [1], "outputs": ["m"]}),
        ("Transpose", ["m"], {"perm": [0, 1, 3, 2], "outputs": ["u"]}),
        ("MatMul", ["a", "u"]),
    ),
    "an equation of two": lambda: at(("Einsum", ["a", "a"], {"equation": "nchw,ndhw->nhcd"})),
    "an equation that sums one alone": lambda: at(("Einsum", ["a", "a"], {"equation": "nchw,ndkw->ncd"})),
}


@pytest.mark.parametrize("name", marked(FORMS, {"log of a sum"}))
def test_forms_agree_and_run_privately(name: str) -> None:
    proto = FORMS[name]()
    x = samples(proto)
    model = lanner.compile(proto, x, mode="cheetah", output="logits")
    check(proto, model, x)
    (integers,), overflows = model.predict_integers(x[:1])
    assert overflows == 0
    assert lanner.run(model, x[0]).integers == integers.tolist()


def test_a_variance_as_a_difference_of_means_loses_nothing_to_a_large_mean() -> None:
    """In float32 a mean square of 1e6 leaves nothing of a variance of 1."""
    proto = of_means(
        ("ReduceMean", ["o"], {"axes": [-1], "outputs": ["m"]}),
        ("Mul", ["o", "o"], {"outputs": ["s"]}),
        ("ReduceMean", ["s"], {"axes": [-1], "outputs": ["q"]}),
        far=1000.0,
    )
    about = at(("LayerNormalization", ["a", "c"], {"axis": -1, "epsilon": 1e-5}), c=np.ones(6))
    x = samples(proto)
    truth = expected(about, x)
    largest = float(np.abs(truth).max())
    assert np.abs(expected(proto, x) - truth).max() > 0.1 * largest
    model = lanner.compile(proto, x, mode="cheetah", output="logits", precision="16")
    assert np.abs(model.native.float(x) - truth).max() <= 1e-3 * largest


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_a_softmax_at_the_end_is_computed_where_values_are_asked_for(operator: str) -> None:
    net = Exported(4)
    scores = net.node("Gemm", "x", net.drawn(6, 5), net.drawn(5))
    proto = net.model(net.node(operator, scores, axis=1), ["n", 6])
    x = samples(proto)
    model = lanner.compile(proto, x, output="value")
    check(proto, model, x)
    assert lanner.run(model, x[0]).values == pytest.approx(expected(proto, x[:1])[0], abs=0.02)


def test_a_softmax_is_right_far_outside_of_calibration() -> None:
    net = Exported(6)
    steep = net.node("Mul", net.linear("x", 6, 8), net.constant(4.0))
    proto = net.model(net.node("MatMul", net.node("Softmax", steep, axis=-1), net.drawn(8, 3)), ["n", 6])
    near, far = samples(proto, 0.5), samples(proto, 0.9, seed=8)
    model = lanner.compile(proto, near, mode="cheetah", output="logits", input_range=(-4.0, 4.0))
    _, overflows = model.predict_integers(far)
    assert overflows == 0
    truth = expected(proto, far)
    assert np.abs(model.predict_fixed(far) - truth).max() <= 2 * FIXED_TOLERANCE * np.abs(truth).max()


@pytest.mark.parametrize("spread", [0.0, 2.0, 4.0])
def test_a_normalisation_is_precise_over_variances_of_any_magnitude(spread: float) -> None:
    """Rows whose deviations are up to e^spread times apart."""
    net, width = Exported(7), 32
    normal = net.norm(net.node("MatMul", "x", net.constant(np.eye(width))), width)
    proto = net.model(net.node("MatMul", normal, net.drawn(width, 3)), ["n", 4, width])
    scales = np.exp(np.random.default_rng(1).uniform(-spread / 2, spread / 2, (SAMPLES, 4, 1)))
    x = (samples(proto) * scales).astype(np.float32)
    model = lanner.compile(proto, x, mode="cheetah", output="logits")
    check(proto, model, x)


REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "softmax over the batch": (
        lambda: at(("Softmax", ["a"], {"axis": 0})),
        "axis of Softmax is 0; samples must stay apart",
    ),
    "softmax of one": (
        lambda: at(
            ("ReduceMean", ["a"], {"axes": [1], "outputs": ["m"]}),
            ("Softmax", ["m"], {"axis": 1}),
        ),
        "axis of Softmax is 1, whose one element",
    ),
    "normalisation over the batch": (
        lambda: at(("MeanVarianceNormalization", ["a"])),
        r"axes of MeanVarianceNormalization is \[0, 2, 3\]; samples must stay apart",
    ),
    "an equation over the batch": (
        lambda: at(("Einsum", ["a", "a"], {"equation": "nchw,mchw->nm"})),
        "equation of Einsum is nchw,mchw->nm; samples must stay apart",
    ),
    "scales that are secret": (
        lambda: at(
            ("ReduceMean", ["a"], {"axes": [0, 1, 2], "keepdims": 0, "outputs": ["m"]}),
            ("LayerNormalization", ["a", "m"]),
        ),
        "axes of ReduceMean",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_node_and_why(name: str) -> None:
    make, sentence = REFUSED[name]
    proto = make()
    with pytest.raises(ModelError, match=sentence) as caught:
        lanner.compile(proto, samples(proto), output="logits")
    assert all(reason.node.startswith("under_test") and reason.fix for reason in caught.value.nodes)


def test_matrices_of_other_axes_are_refused_by_their_shapes() -> None:
    net = Exported(9)
    rows = net.node("MatMul", "x", net.drawn(6, 6))
    product = net.node("MatMul", rows, net.node("Transpose", rows, perm=[1, 0]))
    proto = net.model(product, ["n", 6])
    with pytest.raises(ModelError, match="samples must"):
        lanner.compile(proto, samples(proto), output="logits")
