"""Every end of a network: float, fixed point and secure, in every mode, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import lanner
from helpers.data import exported
from helpers.heads import FEATURES, ROWS, network, rows
from helpers.models import make_model
from lanner.agreement import agrees
from lanner.errors import MisuseError, ModelError, UnsupportedOpError
from lanner.options import MODES


def onnx_output(model: onnx.ModelProto | Path, x: NDArray[np.float32], name: str | None = None) -> NDArray[Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    chosen = None if name is None else [name]
    return np.asarray(session.run(chosen, {session.get_inputs()[0].name: x})[0])


@pytest.mark.parametrize("mode", MODES)
def test_one_score_behind_a_sigmoid_is_a_binary_classifier(mode: str) -> None:
    proto, x = network(1, "Sigmoid"), rows()
    probabilities = onnx_output(proto, x)[:, 0]
    likely = lanner.compile(proto, x, mode=mode, output="probability", digits=3, classes=["no", "yes"])
    label = lanner.compile(proto, x, mode=mode, classes=["no", "yes"])
    assert (label.manifest.output, label.notes, likely.notes) == ("label", (), ())
    assert np.allclose(1 / (1 + np.exp(-np.diff(label.predict_float(x))[:, 0])), probabilities, atol=1e-6)
    fixed = label.predict_integers(x)[0]
    assert (fixed[:, 0] == 0).all()
    for sample, scores, expected in zip(x[:4], fixed, probabilities, strict=False):
        prediction = lanner.run(label, sample)
        assert (prediction.label, prediction.class_name) == (int(scores[1] > 0), ["no", "yes"][int(scores[1] > 0)])
        assert (prediction.probability, prediction.logits, prediction.values, prediction.labels) == (None,) * 4
        prediction = lanner.run(likely, sample)
        assert agrees(prediction, likely.predict_integers(sample)[0][0], likely)
        assert prediction.probability is not None
        told = prediction.probability if prediction.label == 1 else 1 - prediction.probability
        assert abs(told - expected) < 0.02


@pytest.mark.parametrize("mode", MODES)
def test_a_score_of_zero_is_class_0(mode: str) -> None:
    """As for onnxruntime's user, who compares the probability with one half: p > 0.5."""
    weights = {"w": np.zeros((1, FEATURES), np.float32)}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["s"], transB=1), helper.make_node("Sigmoid", ["s"], ["y"])]
    model = lanner.compile(make_model(nodes, ["n", FEATURES], weights), rows(), mode=mode)
    assert lanner.run(model, rows(1)).label == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_quantities_are_values(mode: str, outputs: int) -> None:
    proto, x = network(outputs), rows()
    model = lanner.compile(proto, x, mode=mode, output="value")
    expected = onnx_output(proto, x)
    assert np.allclose(model.predict_fixed(x), expected, atol=0.05 * np.abs(expected).max())
    for sample, values, integers in zip(x[:3], model.predict_fixed(x), model.predict_integers(x)[0], strict=False):
        prediction = lanner.run(model, sample)
        assert prediction.integers == integers.tolist()
        assert prediction.values == pytest.approx(values.tolist())
        assert (prediction.label, prediction.logits, prediction.class_name) == (None,) * 3


def test_one_score_without_a_sigmoid_is_a_value_unless_its_owner_says_otherwise() -> None:
    proto, x = network(1), rows()
    model = lanner.compile(proto, x)
    assert model.manifest.output == "value"
    assert "no sigmoid" in model.notes[0]
    label, logits = lanner.compile(proto, x, output="label"), lanner.compile(proto, x, output="logits")
    assert "above 0" in label.notes[0]
    score = model.predict_integers(x[:1])[0][0, 0]
    assert lanner.run(label, x[0]).label == int(score > 0)
    prediction = lanner.run(logits, x[0])
    # Of one logit the sign says the label: the largest of one is no result.
    assert (prediction.label, prediction.integers) == (int(score > 0), [score])
    expected = 1 / (1 + np.exp(-np.abs(logits.predict_fixed(x)[:, 0])))
    assert np.allclose(logits.predict_probability(x), expected)
    with pytest.raises(MisuseError, match="no probability"):
        model.predict_probability(x)


@pytest.mark.parametrize("mode", MODES)
def test_several_labels_are_those_above_zero(mode: str) -> None:
    proto, x = network(5, "Sigmoid"), rows()
    names = ["a", "b", "c", "d", "e"]
    model = lanner.compile(proto, x, mode=mode, classes=names)
    assert (model.manifest.output, len(model.notes)) == ("labels", 1)
    probabilities = onnx_output(proto, x)
    integers = model.predict_integers(x)[0]
    assert ((integers > 0) == (probabilities > 0.5)).mean() > 0.98
    for sample, scores in zip(x[:3], integers, strict=False):
        prediction = lanner.run(model, sample)
        assert prediction.labels == np.flatnonzero(scores > 0).tolist()
        assert prediction.class_names == [names[label] for label in prediction.labels]
        assert (prediction.label, prediction.logits, prediction.values, prediction.top) == (None,) * 4


def test_faithful_rounding_tells_no_list_of_labels() -> None:
    with pytest.raises(MisuseError, match="label alone"):
        lanner.compile(network(3, "Sigmoid"), rows(), mode="cheetah", rounding="faithful")


def test_auto_is_cheetah_with_exact_rounding() -> None:
    manifest = lanner.compile(network(3, "Softmax"), rows()).manifest
    assert (manifest.mode, manifest.rounding) == ("cheetah", "exact")


def test_the_named_output_is_computed() -> None:
    proto, x = network(2), rows()
    proto.graph.node.append(helper.make_node("Neg", ["y"], ["z"], name="negative"))
    proto.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["n", 2]))
    with pytest.raises(ModelError, match=r"2 outputs \(y, z\).*--output-name y"):
        lanner.compile(proto, x)
    scores = {name: lanner.compile(proto, x, output_name=name).predict_float(x) for name in ("y", "z")}
    assert np.allclose(scores["y"], -scores["z"])
    with pytest.raises(MisuseError, match="no output w"):
        lanner.compile(proto, x, output_name="w")


def _scikit_learn(names: NDArray[np.generic]) -> onnx.ModelProto:
    """A network of one score as skl2onnx writes a binary one: label, and both probabilities."""
    proto = network(1, "Sigmoid")
    nodes = [
        helper.make_node("Sub", ["one", "y"], ["q"]),
        helper.make_node("Concat", ["q", "y"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["probabilities"], ["index"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["names", "index"], ["name"], domain="ai.onnx.ml"),
        helper.make_node("Reshape", ["name", "shape"], ["label"]),
    ]
    proto.graph.node.extend(nodes)
    kept = {"one": np.array(1, np.float32), "names": names, "shape": np.array([-1])}
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in kept.items())
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info("label", onnx.TensorProto.STRING, ["n"]))
    proto.graph.output.append(helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, ["n", 2]))
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return proto


def test_a_binary_classifier_of_scikit_learn_is_one_score() -> None:
    proto, x = _scikit_learn(np.array(["benign", "malignant"], dtype=object)), rows()
    model = lanner.compile(proto, x, output="probability")
    assert model.manifest.classes == ("benign", "malignant")
    labels, probabilities = onnx_output(proto, x, "label"), onnx_output(proto, x, "probabilities")
    for sample, label, expected in zip(x[:4], labels, probabilities, strict=False):
        prediction = lanner.run(model, sample)
        assert prediction.class_name == label
        assert prediction.probability == pytest.approx(expected.max(), abs=0.02)


@pytest.mark.parametrize("name", ["sk_mlp", "sk_mlp_nozip", "sk_mlp_nozip_cut", "sk_mlp_proba"])
def test_exported_classifiers_give_their_label(name: str) -> None:
    path = exported(name)
    x = np.random.default_rng(6).random((ROWS, 64)).astype(np.float32)
    model = lanner.compile(path, x, output="probability")
    assert model.manifest.classes == tuple(map(str, range(10)))
    outputs = [output.name for output in onnx.load(path).graph.output]
    if "label" in outputs:
        expected = onnx_output(path, x, "label")
        assert (model.predict_float(x).argmax(1) == expected).all()
    assert lanner.run(model, x[0]).label == model.predict_integers(x[:1])[0][0].argmax()


@pytest.mark.parametrize("name", ["k_binary", "reg_sigmoid_ts17"])
def test_exported_binary_classifiers_give_their_label(name: str) -> None:
    path = exported(name)
    sides = [side.dim_value for side in onnx.load(path).graph.input[0].type.tensor_type.shape.dim[1:]]
    x = np.random.default_rng(6).random((ROWS, *sides)).astype(np.float32)
    model = lanner.compile(path, x)
    expected = onnx_output(path, x)[:, 0]
    assert np.allclose(1 / (1 + np.exp(-np.diff(model.predict_float(x))[:, 0])), expected, atol=1e-5)
    assert lanner.run(model, x[0]).label == int(model.predict_integers(x[:1])[0][0, 1] > 0)


@pytest.mark.parametrize("name", ["bin_logit_ts17", "reg_lin_ts17", "sk_reg"])
def test_exported_regressions_give_their_value(name: str) -> None:
    path = exported(name)
    sides = [side.dim_value for side in onnx.load(path).graph.input[0].type.tensor_type.shape.dim[1:]]
    x = np.random.default_rng(6).standard_normal((ROWS, *sides)).astype(np.float32)
    model = lanner.compile(path, x)
    expected = onnx_output(path, x)
    assert model.manifest.output == "value"
    assert np.allclose(model.predict_fixed(x), expected, atol=0.02 * np.abs(expected).max())
    (value,) = lanner.run(model, x[0]).values or [np.nan]
    assert value == pytest.approx(model.predict_fixed(x[0])[0, 0])


@pytest.mark.parametrize("name", ["sk_rf", "lgbm", "lgbm_cut"])
def test_exported_trees_are_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedOpError, match="TreeEnsembleClassifier"):
        lanner.compile(exported(name), np.random.default_rng(6).random((ROWS, 64)).astype(np.float32))
