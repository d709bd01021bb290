"""Sizes and numbers in a file that nothing can be built of are refused by name, and before anything is built."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, shape_inference

from helpers.models import make_model, random_weights
from lanner.errors import ModelError
from lanner.onnx import import_model
from lanner.onnx.builder import MAX_INPUTS, GraphBuilder, Wire
from lanner.onnx.opaque import InferredShapes
from lanner.onnx.selection import tile

NAN, INFINITE = float("nan"), float("inf")


def model_of(operator: str, *inputs: str, weights: dict[str, Any], **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401
    nodes = [
        helper.make_node(operator, ["x", *inputs], ["z"], name="odd", **attributes),
        helper.make_node("GlobalAveragePool", ["z"], ["mean"], name="mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("MatMul", ["flat", "m"], ["y"], name="fc"),
    ]
    return make_model(nodes, ["n", 3, 4, 4], {**random_weights(0, m=(3, 2)), **weights})


def resize(*scales: float, roi: list[float] | None = None, **attributes: Any) -> onnx.ModelProto:  # noqa: ANN401
    weights = {"scales": np.array(scales, np.float32), "roi": np.array(roi or [], np.float32)}
    return model_of("Resize", "roi", "scales", weights=weights, mode="nearest", **attributes)


def clip(low: float, high: float) -> onnx.ModelProto:
    return model_of("Clip", "low", "high", weights={"low": np.float32(low), "high": np.float32(high)})


def whole(operator: str, **values: list[int]) -> onnx.ModelProto:
    return model_of(operator, *values, weights={name: np.array(value, np.int64) for name, value in values.items()})


CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}

ODD = {
    "a vast resize": (resize(1, 1, 1e9, 1e9), "elements"),
    "an infinite resize": (resize(1, 1, INFINITE, 1), "scales of Resize"),
    "a resize by NaN": (resize(1, 1, NAN, 1), "scales of Resize"),
    "a resize beyond float32": (resize(1, 1, 3e38, 1), "scales of Resize"),
    "a resize by less than nothing": (resize(1, 1, -1, 1), "scales of Resize"),
    "a crop of NaN": (resize(1, 1, 2, 2, roi=[0, 0, NAN, 0, 1, 1, 1, 1], **CROP), "roi of Resize"),
    "NaN around a crop": (
        resize(1, 1, 2, 2, roi=[0, 0, 0, 0, 1, 1, 1, 1], extrapolation_value=NAN, **CROP),
        "extrapolation_value of Resize",
    ),
    "vast sizes": (
        model_of("Resize", "", "", "sizes", weights={"sizes": np.array([1, 3, 2**40, 4], np.int64)}, mode="nearest"),
        "elements",
    ),
    "a vast tile": (whole("Tile", times=[1, 1, 10**9, 1]), "elements"),
    "a tile beyond integers": (whole("Tile", times=[1, 2**62, 2**62, 1]), "elements"),
    "a vast expansion": (whole("Expand", shape=[1, 3, 4, 4, 10**9]), "shape of Expand"),
    "a vast pad": (whole("Pad", pads=[0, 0, 10**9, 0, 0, 0, 0, 0]), "elements"),
    "a vast pad of the edge": (
        model_of("Pad", "pads", weights={"pads": np.array([0] * 7 + [10**9], np.int64)}, mode="edge"),
        "elements",
    ),
    "a bound of NaN": (clip(NAN, 1), "input 1 of Clip"),
    "an upper bound of NaN": (clip(0, NAN), "input 2 of Clip"),
}


@pytest.mark.parametrize("name", ODD)
def test_it_is_refused_by_name(name: str) -> None:
    model, told = ODD[name]
    with pytest.raises(ModelError) as caught:
        import_model(model)
    assert caught.value.where == "node odd"
    assert told in caught.value.what


@pytest.mark.parametrize(("operator", "kind"), [("Div", np.int64), ("Mod", np.int64), ("Div", np.float32)])
def test_constants_are_not_divided_by_zero(operator: str, kind: type) -> None:
    model = make_model(
        [
            helper.make_node(operator, ["some", "none"], ["k"], name="odd"),
            helper.make_node("Cast", ["k"], ["real"], name="real", to=onnx.TensorProto.FLOAT),
            helper.make_node("Add", ["x", "real"], ["z"], name="add"),
            helper.make_node("MatMul", ["z", "m"], ["y"], name="fc"),
        ],
        ["n", 4],
        {"some": np.array([6, 7, 8, 9], kind), "none": np.array([1, 0, 1, 1], kind), **random_weights(0, m=(4, 2))},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError, match=f"constant {operator} cannot be computed") as caught:
            import_model(model)
    assert caught.value.where == "node odd"


def test_constants_that_overflow_are_refused() -> None:
    nodes = [
        helper.make_node("Exp", ["large"], ["k"], name="odd"),
        helper.make_node("Add", ["x", "k"], ["z"], name="add"),
        helper.make_node("MatMul", ["z", "m"], ["y"], name="fc"),
    ]
    weights = {"large": np.full(4, 1e3, np.float32), **random_weights(0, m=(4, 2))}
    with pytest.raises(ModelError, match=r"constant Exp cannot be computed.*not finite"):
        import_model(make_model(nodes, ["n", 4], weights))


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ConstantOfShape", [np.array([10**6, 10**6])]),
        ("Expand", [np.zeros(1, np.float32), np.array([10**6, 10**6])]),
        ("Range", [np.array(0), np.array(1), np.array(0)]),
    ],
)
def test_vast_constants_are_not_made(operator: str, inputs: list[Any]) -> None:
    weights = {f"w{index}": value for index, value in enumerate(inputs)}
    nodes = [
        helper.make_node(operator, list(weights), ["k"], name="odd"),
        helper.make_node("Cast", ["k"], ["real"], name="real", to=onnx.TensorProto.FLOAT),
        helper.make_node("Add", ["x", "real"], ["z"], name="add"),
        helper.make_node("MatMul", ["z", "m"], ["y"], name="fc"),
    ]
    with pytest.raises(ModelError, match=f"constant {operator} cannot be computed") as caught:
        import_model(make_model(nodes, ["n", 4], {**weights, **random_weights(0, m=(4, 2))}))
    assert caught.value.where == "node odd"


def test_vast_constants_are_not_made_to_learn_shapes_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    infer = shape_inference.infer_shapes

    def spy(model: onnx.ModelProto, *, data_prop: bool) -> onnx.ModelProto:
        asked.append(data_prop)
        return infer(model, data_prop=data_prop)

    for count in (10, 10**9):
        nodes = [
            helper.make_node("Tan", ["x"], ["y"]),
            helper.make_node("Range", ["from", "to", "by"], ["k"]),
        ]
        weights = {"from": np.array(0), "to": np.array(count), "by": np.array(1)}
        shapes = InferredShapes(make_model(nodes, ["n", 4], weights))
        monkeypatch.setattr(shape_inference, "infer_shapes", spy)
        assert shapes.stand_in("y") == Wire("?y", (4,))
        monkeypatch.undo()
    assert asked == [True, False]


def test_infinite_bounds_bound_nothing() -> None:
    import_model(clip(0, INFINITE))
    import_model(clip(-INFINITE, INFINITE))


@pytest.mark.parametrize("times", [1, MAX_INPUTS, MAX_INPUTS + 1, 3 * MAX_INPUTS, MAX_INPUTS**2 // 4])
def test_many_repeats_take_few_nodes(times: int) -> None:
    graph = GraphBuilder("x", (2, 4))
    repeated = tile(graph, graph.input, 1, times)
    assert repeated.shape == (2, 4 * times)
    assert len(json.loads(graph.finish(repeated).document)["nodes"]) <= 4
