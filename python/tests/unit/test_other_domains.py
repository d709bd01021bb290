"""Files without an operator of ONNX's own, and classifiers whose numbers are doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from lanner.errors import MisuseError, UnsupportedOpError
from lanner.onnx import import_model, survey_file

FEATURES = 4
ML = "ai.onnx.ml"


def model_of(nodes: list[onnx.NodeProto], opsets: dict[str, int], kind: int, **constants: Any) -> onnx.ModelProto:  # noqa: ANN401
    """A model with input ``x`` of a type of floats, and outputs ``label`` and ``probabilities``."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", FEATURES])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("probabilities", kind, ["n", None]),
        ],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in opsets.items()])
    model.ir_version = 8
    return model


def test_a_file_of_trees_alone_needs_no_opset_of_onnx() -> None:
    """As XGBoost's converter writes it, without the domain of ONNX's own operators; here it asks nothing."""
    tree = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "probabilities"],
        name="trees",
        domain=ML,
        classlabels_int64s=[0, 1],
        nodes_treeids=[0],
        nodes_nodeids=[0],
        nodes_featureids=[0],
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
        class_treeids=[0],
        class_nodeids=[0],
        class_ids=[0],
        class_weights=[0.5],
    )
    model = model_of([tree], {ML: 1}, TensorProto.FLOAT)
    compiled = lanner.compile(model, np.zeros((2, FEATURES), np.float32))
    assert compiled.predict_fixed(np.ones((1, FEATURES), np.float32)).tolist() == [[0.5, 0.5]]


def test_trees_of_values_that_others_made_are_refused_for_them() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "coefficients"], ["products"], name="products"),
        helper.make_node("TreeEnsembleRegressor", ["products"], ["probabilities"], name="trees", domain=ML),
        helper.make_node("ArgMax", ["probabilities"], ["label"], axis=1, keepdims=0),
    ]
    model = model_of(nodes, {ML: 1, "": 13}, TensorProto.FLOAT, coefficients=np.ones((FEATURES, 2), np.float32))
    with pytest.raises(UnsupportedOpError, match="it is a tree ensemble") as caught:
        import_model(model)
    assert [reason.what for reason in survey_file(model).reasons] == [reason.what for reason in caught.value.nodes]


def doubles(classes: int, *, magnitudes: bool = True) -> onnx.ModelProto:
    """A logistic regression as skl2onnx writes it for doubles: sigmoids divided by their sum, and the label."""
    drawn = np.random.default_rng(1)
    summed = "magnitudes" if magnitudes else "sigmoids"
    nodes = [
        helper.make_node("MatMul", ["x", "coefficients"], ["products"]),
        helper.make_node("Add", ["products", "intercepts"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "place"], ["class"], domain=ML),
        helper.make_node("Reshape", ["class", "flat"], ["label"]),
        helper.make_node("Sigmoid", ["scores"], ["sigmoids"]),
        *([helper.make_node("Abs", ["sigmoids"], ["magnitudes"])] if magnitudes else []),
        helper.make_node("ReduceSum", [summed, "axis"], ["sum"], keepdims=1),
        helper.make_node("Div", ["sigmoids", "sum"], ["probabilities"]),
    ]
    return model_of(
        nodes,
        {"": 13, ML: 1},
        TensorProto.DOUBLE,
        coefficients=drawn.standard_normal((FEATURES, classes)),
        intercepts=drawn.standard_normal((1, classes)),
        classes=np.arange(10, 10 + classes),
        flat=np.array([-1]),
        axis=np.array([1]),
    )


def labels(model: onnx.ModelProto, x: NDArray[np.float64]) -> NDArray[np.int64]:
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    scores = x @ weights["coefficients"] + weights["intercepts"]
    return np.asarray(10 + scores.argmax(1))


@pytest.mark.parametrize("magnitudes", [True, False])
def test_the_label_and_probabilities_of_doubles_are_one_end(*, magnitudes: bool) -> None:
    model = doubles(3, magnitudes=magnitudes)
    x = np.random.default_rng(2).standard_normal((32, FEATURES))
    network = lanner.compile(model, x)
    wanted = [str(label) for label in labels(model, x[:3])]
    assert [lanner.run(network, sample).class_name for sample in x[:3]] == wanted


def test_probabilities_divided_by_something_else_are_no_end() -> None:
    model = doubles(3)
    next(node for node in model.graph.node if node.op_type == "ReduceSum").input[0] = "scores"
    x = np.random.default_rng(2).standard_normal((32, FEATURES))
    # The label is picked from the scores, whatever is shown beside it.
    network = lanner.compile(model, x)
    assert [lanner.run(network, sample).class_name for sample in x[:3]] == [str(each) for each in labels(model, x[:3])]
    with pytest.raises(MisuseError, match="no probabilities"):
        lanner.compile(model, x, output="probability")
