"""Networks that are odd in one way each: quantised, of a fixed batch, with a part that no version here computes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from helpers.brought import Brought
from helpers.models import make_model, random_weights, tiny_classifier

#: Results of a quantised network differ by some of its quantiser's steps.
STEPS = 0.05

IMAGE = ("n", 3, 8, 8)


def odd_models() -> list[Brought]:
    """Every network."""
    quantised = [Brought(name, make, STEPS) for name, make in QUANTISED.items()]
    return [*quantised, *(Brought(name, make) for name, make in {**ODD, **ODD_REFUSED}.items())]


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Standard normal images for `tiny_classifier`."""

    def __init__(self) -> None:
        x = np.random.default_rng(3).standard_normal((64, 1, 8, 8)).astype(np.float32)
        self._batches = iter([{"x": sample[np.newaxis]} for sample in x])

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._batches, None)


def _quantised(quantise: Callable[[str, str], object]) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "integer.onnx"
        onnx.save(tiny_classifier(), str(source))
        quantise(str(source), str(target))
        return onnx.load(str(target))


def _static(**options: Any) -> Callable[[], onnx.ModelProto]:  # noqa: ANN401
    return lambda: _quantised(lambda source, target: quantize_static(source, target, _Samples(), **options))


QDQ, INTEGERS = QuantFormat.QDQ, QuantFormat.QOperator

QUANTISED: dict[str, Callable[[], onnx.ModelProto]] = {
    "pairs of quantisation": _static(quant_format=QDQ),
    "pairs, unsigned": _static(quant_format=QDQ, activation_type=QuantType.QUInt8),
    "pairs, a scale per channel": _static(quant_format=QDQ, per_channel=True),
    "pairs, symmetric": _static(quant_format=QDQ, extra_options={"ActivationSymmetric": True}),
    "pairs of 16 bits": _static(quant_format=QDQ, activation_type=QuantType.QInt16),
    "operators of integers": _static(quant_format=INTEGERS, activation_type=QuantType.QUInt8),
    "operators of integers, a scale per channel": _static(
        quant_format=INTEGERS, activation_type=QuantType.QUInt8, per_channel=True
    ),
    "quantised by its own range": lambda: _quantised(
        lambda source, target: quantize_dynamic(source, target, weight_type=QuantType.QUInt8)
    ),
}


def _node(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def _between(*middle: onnx.NodeProto, last: str = "", **weights: tuple[int, ...]) -> Callable[[], onnx.ModelProto]:
    """Nodes from ``a``, which a convolution makes, to ``b``, which a matrix reads; perhaps one more is last."""
    nodes = [
        _node("Conv", ["x", "conv"], "a", pads=[1] * 4),
        *middle,
        _node("Flatten", ["b"], "flat"),
        _node("MatMul", ["flat", "matrix"], "logits" if last else "y"),
    ]
    if last:
        nodes.append(_node(last, ["logits"], "y"))
    shapes = {"conv": (4, 3, 3, 3), "matrix": (256, 5), **weights}
    return lambda: make_model(nodes, IMAGE, random_weights(5, **shapes))


def _changed(make: Callable[[], onnx.ModelProto], change: Callable[[onnx.GraphProto], object]) -> Any:  # noqa: ANN401
    def changed() -> onnx.ModelProto:
        model = make()
        change(model.graph)
        return model

    return changed


def _fix_batch(graph: onnx.GraphProto) -> None:
    for entry in (graph.input[0], graph.output[0]):
        entry.type.tensor_type.shape.dim[0].dim_value = 8


def _set_sides(graph: onnx.GraphProto) -> None:
    for axis in (2, 3):
        graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"side{axis}"


_relu = _node("Relu", ["a"], "b")
_plain = _between(_relu)

ODD: dict[str, Callable[[], onnx.ModelProto]] = {
    "a batch of eight": _changed(_plain, _fix_batch),
    "a softmax at the end": _between(_relu, last="Softmax"),
    "a log-softmax at the end": _between(_relu, last="LogSoftmax"),
    "an identity at the end": _between(_relu, last="Identity"),
    "a residual": _between(_node("Relu", ["a"], "c"), _node("Add", ["a", "c"], "b")),
    "a square": _between(_node("Mul", ["a", "a"], "b")),
    **{
        f"{name} inside": _between(_node(name, ["a"], "b"))
        for name in ("Tanh", "Elu", "Selu", "Softplus", "Exp", "Erf")
    },
    "SiLU inside": _between(_node("Sigmoid", ["a"], "c"), _node("Mul", ["a", "c"], "b")),
    "softmax inside": _between(_node("Softmax", ["a"], "b", axis=1)),
    "layer normalisation": _between(_node("LayerNormalization", ["a", "scale"], "b", axis=-1), scale=(8,)),
    "attention": _between(
        _node("Transpose", ["a"], "c", perm=[0, 1, 3, 2]),
        _node("MatMul", ["a", "c"], "d"),
        _node("Softmax", ["d"], "e", axis=-1),
        _node("MatMul", ["e", "a"], "b"),
    ),
    "a gate inside": _between(_node("Tanh", ["a"], "c"), _node("Sigmoid", ["a"], "d"), _node("Mul", ["c", "d"], "b")),
}

#: Those that are refused.
ODD_REFUSED: dict[str, Callable[[], onnx.ModelProto]] = {
    "a tangent inside": _between(_node("Tan", ["a"], "b")),
    "softmax over the batch": _between(_node("Softmax", ["a"], "b", axis=0)),
    "statistics of the batch": _between(_node("MeanVarianceNormalization", ["a"], "b")),
    "waves and integers between": _between(
        _node("Tan", ["a"], "c"),
        _node("Cast", ["c"], "d", to=onnx.TensorProto.INT32),
        _node("Cast", ["d"], "e", to=onnx.TensorProto.FLOAT),
        _node("Atan", ["e"], "b"),
    ),
    "sides that are not fixed": _changed(_between(_node("Tan", ["a"], "b")), _set_sides),
    "no batch": lambda: make_model([_node("MatMul", ["x", "m"], "y")], (6,), random_weights(0, m=(6, 3))),
}
