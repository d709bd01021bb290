"""Windows against the counts and pads that onnxruntime finds."""

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from helpers.models import make_model
from lanner.errors import ModelError
from lanner.onnx.node import Node
from lanner.onnx.window import resolve_window

SETTINGS = [
    setting
    for setting in itertools.product(
        (5, 6, 7), (2, 3), (1, 2, 3), ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), (0, 1)
    )
    # Windows that skip pixels have no use for padding.
    if not (setting[3].startswith("SAME") and setting[1] < setting[2])
]


@pytest.mark.parametrize(("size", "kernel", "stride", "auto", "ceil"), SETTINGS)
def test_output_has_as_many_windows_as_onnxruntime(size: int, kernel: int, stride: int, auto: str, ceil: int) -> None:
    pads: dict[str, Any] = {"pads": [1, 0, 1, 0], "ceil_mode": ceil} if auto == "NOTSET" else {}
    attributes: dict[str, Any] = {"kernel_shape": [kernel, kernel], "strides": [stride, stride], "auto_pad": auto}
    proto = helper.make_node("MaxPool", ["x"], ["y"], **attributes, **pads)
    session = onnxruntime.InferenceSession(make_model([proto], ["n", 1, size, size], {}).SerializeToString())
    (result,) = session.run(None, {"x": np.zeros((1, 1, size, size), np.float32)})
    window = resolve_window(Node(proto, []), (kernel, kernel), (size, size))
    assert window.output == result.shape[2:]


def test_window_that_does_not_fit_is_a_model_error() -> None:
    proto = helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[9, 9])
    with pytest.raises(ModelError, match=r"node pool.*9 x 9.*5 x 5"):
        resolve_window(Node(proto, []), (9, 9), (5, 5))


def test_rows_are_images_of_height_one() -> None:
    attributes: dict[str, Any] = {"kernel_shape": [3], "strides": [2], "pads": [2, 1], "dilations": [2], "ceil_mode": 1}
    window = resolve_window(Node(helper.make_node("MaxPool", ["x"], ["y"], **attributes), []), (3,), (7,))
    assert (window.kernel, window.strides, window.dilations) == ((1, 3), (1, 2), (1, 2))
    assert (window.pads, window.output, window.overhang) == ((0, 2, 0, 2), (1, 4), (0, 1))
