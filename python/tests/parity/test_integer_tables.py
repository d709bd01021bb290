"""Integers as they are, of tables and of inputs, that a ``DequantizeLinear`` reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import lanner
from helpers.several import Arrays, drawn, expected, model_of, node, off_by
from lanner.errors import UnsupportedOpError

WORDS, LENGTH, WIDTH = 9, 5, 4

_TABLE = np.random.default_rng(1).integers(0, 256, (WORDS, WIDTH)).astype(np.uint8)
_IDS = np.random.default_rng(2).integers(0, WORDS, (60, LENGTH))
_UNIT: dict[str, Any] = {"scale": np.float32(0.03), "zero": np.uint8(117)}


def check(proto: onnx.ModelProto, arrays: Arrays, bound: float = 0.005) -> None:
    model = lanner.compile(proto, arrays, output="value")
    assert off_by(model.predict_fixed(arrays), expected(proto, arrays, "y")) < bound


@pytest.mark.parametrize("steps_first", [False, True])
def test_a_table_of_integers_is_looked_up(steps_first: bool) -> None:
    """With the steps first the batch lies along the second axis, as recurrent networks have it."""
    there = [node("Transpose", ["rows"], "moved", perm=[1, 0, 2])] if steps_first else []
    back = [node("Transpose", ["read"], "samples", perm=[1, 0, 2])] if steps_first else []
    nodes = [
        node("Gather", ["table", "ids"], "rows"),
        *there,
        node("DequantizeLinear", ["moved" if steps_first else "rows", "scale", "zero"], "read"),
        *back,
        node("MatMul", ["samples" if steps_first else "read", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"ids": (TensorProto.INT64, ["n", LENGTH])}
    proto = model_of(nodes, inputs, {"y": ["n", LENGTH, 3]}, table=_TABLE, w=drawn(WIDTH, 3), **_UNIT)
    check(proto, {"ids": _IDS})


def of_bytes(**constants: Any) -> tuple[onnx.ModelProto, Arrays]:  # noqa: ANN401
    nodes = [node("DequantizeLinear", ["x", "scale", "zero"], "read"), node("MatMul", ["read", "w"], "y")]
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.UINT8, ["n", WIDTH])}
    proto = model_of(nodes, inputs, {"y": ["n", 3]}, w=drawn(WIDTH, 3), **constants)
    x: NDArray[np.uint8] = np.random.default_rng(3).integers(0, 256, (60, WIDTH)).astype(np.uint8)
    return proto, {"x": x}


def test_an_input_of_integers_is_read_in_its_unit() -> None:
    check(*of_bytes(**_UNIT))


def test_integers_of_several_units_are_refused() -> None:
    scales = np.full(WIDTH, 0.03, np.float32)
    proto, arrays = of_bytes(scale=scales, zero=np.full(WIDTH, 117, np.uint8))
    with pytest.raises(UnsupportedOpError, match="holds several scales"):
        lanner.compile(proto, arrays)


def test_quantised_values_whose_samples_come_second_are_no_integers() -> None:
    """They are real values already, and their unit is not applied again."""
    nodes = [
        node("Transpose", ["x"], "moved", perm=[1, 0, 2]),
        node("QuantizeLinear", ["moved", "scale", "zero"], "q"),
        node("DequantizeLinear", ["q", "scale", "zero"], "read"),
        node("Transpose", ["read"], "samples", perm=[1, 0, 2]),
        node("MatMul", ["samples", "w"], "y"),
    ]
    inputs: dict[str, tuple[int, list[str | int]]] = {"x": (TensorProto.FLOAT, ["n", LENGTH, WIDTH])}
    proto = model_of(nodes, inputs, {"y": ["n", LENGTH, 3]}, w=drawn(WIDTH, 3), **_UNIT)
    check(proto, {"x": drawn(60, LENGTH, WIDTH)}, 0.02)
