"""Every end of a network: float, fixed point and secure, in every mode, beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import lanner
from helpers.data import exported
from helpers.heads import FEATURES, ROWS, network, rows
from helpers.models import make_model
from lanner.agreement import agrees
from lanner.errors import MisuseError, ModelError, UnsupportedOpError
from lanner.options import INTERACTIVE_MODES


def onnx_output(model: onnx.ModelProto | Path, x: NDArray[np.float32], name: str | None = None) -> NDArray[Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    chosen = None if name is None else [name]
    return np.asarray(session.run(chosen, {session.get_inputs()[0].name: x})[0])


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
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


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
def test_values_are_rounded_to_the_digits_asked_for(mode: str) -> None:
    proto, x = network(1), rows()
    whole, rounded = (lanner.compile(proto, x, mode=mode, output="value", digits=digits) for digits in (None, 1))
    expected = onnx_output(proto, x)
    for sample, value, exact in zip(x[:3], rounded.predict_fixed(x), expected, strict=False):
        prediction = lanner.run(rounded, sample)
        assert agrees(prediction, rounded.predict_integers(sample)[0][0], rounded)
        assert prediction.reals is not None
        assert abs(prediction.reals[0] - value[0]) < 1e-9
        assert abs(prediction.reals[0] - exact[0]) < 0.05 + 0.005 * np.ptp(expected)
    distinct = [len(np.unique(model.predict_integers(x)[0])) for model in (whole, rounded)]
    assert distinct[1] < distinct[0]


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
def test_a_score_of_zero_is_class_0(mode: str) -> None:
    """As for onnxruntime's user, who compares the probability with one half: p > 0.5."""
    weights = {"w": np.zeros((1, FEATURES), np.float32)}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["s"], transB=1), helper.make_node("Sigmoid", ["s"], ["y"])]
    model = lanner.compile(make_model(nodes, ["n", FEATURES], weights), rows(), mode=mode)
    assert lanner.run(model, rows(1)).label == 0


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
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


@pytest.mark.parametrize("mode", INTERACTIVE_MODES)
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


def test_auto_rounds_exactly() -> None:
    assert lanner.compile(network(3, "Softmax"), rows()).manifest.is_exact


def test_the_named_output_is_computed() -> None:
    proto, x = network(2), rows()
    proto.graph.node.append(helper.make_node("Neg", ["y"], ["z"], name="negative"))
    proto.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["n", 2]))
    with pytest.raises(ModelError, match=r'2 outputs \(y, z\).*output_name="y"'):
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
def test_exported_trees_give_their_label(name: str) -> None:
    path = exported(name)
    x = np.random.default_rng(6).random((ROWS, 64)).astype(np.float32)
    model = lanner.compile(path, x)
    expected = onnx_output(path, x)
    if expected.ndim == 2:  # The file with its label cut off has probabilities alone.
        expected = expected.argmax(1)
    assert model.predict_fixed(x).argmax(1).tolist() == expected.tolist()
    assert lanner.run(model, x[0]).label == expected[0]


Nodes = list[onnx.NodeProto]
HELD = {
    "one": np.array(1, np.float32),
    "halves": np.array([-1, 2, 3]),
    "thirds": np.array([-1, 3]),
    "six": np.array([-1, 6]),
    "first": np.array([1]),
    "w": np.ones((6, 3), np.float32),
}


def _node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - as the operator takes
    domain = "ai.onnx.ml" if operator in ("Normalizer", "LabelEncoder") else ""
    return helper.make_node(operator, inputs.split(), [output], domain=domain, **attributes)


def _ended(scores: int, nodes: Nodes, *outputs: str) -> onnx.ModelProto:
    """A network whose scores ``y`` these nodes follow, with these outputs."""
    proto = network(scores)
    proto.graph.node.extend(nodes)
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in HELD.items())
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    _show(proto, *outputs)
    return proto


def _show(proto: onnx.ModelProto, *outputs: str) -> None:
    """Let a model have these outputs, of the types and shapes that follow."""
    del proto.graph.output[:]
    known = onnx.shape_inference.infer_shapes(proto).graph.value_info
    inferred = {entry.name: entry for entry in known if entry.type.tensor_type.HasField("shape")}
    plain = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", None]) for name in outputs]
    proto.graph.output.extend(inferred.get(entry.name, entry) for entry in plain)


SOFTMAX = _node("Softmax", "y", "p")
BOTH = [_node("Sigmoid", "y", "p"), _node("Sub", "one p", "q"), _node("Concat", "q p", "both", axis=1)]
NO_ENDS: dict[str, tuple[int, Nodes, str, str]] = {
    "a maximum behind": (6, [SOFTMAX, _node("Normalizer", "p", "z", norm="MAX")], "z", "Normalizer"),
    "a maximum before": (
        6,
        [_node("Normalizer", "y", "n", norm="MAX"), _node("ArgMax", "n", "z", axis=1)],
        "z",
        "Normalizer",
    ),
    "classes in halves": (
        6,
        [SOFTMAX, _node("Reshape", "p halves", "h"), _node("ArgMax", "h", "z", axis=1)],
        "z",
        "the shape of Reshape",
    ),
    "more rows": (
        6,
        [SOFTMAX, _node("Reshape", "p thirds", "h"), _node("ArgMax", "h", "z", axis=1)],
        "z",
        "the shape of Reshape",
    ),
    "an axis more": (
        6,
        [SOFTMAX, _node("Unsqueeze", "p first", "u"), _node("Softmax", "u", "z", axis=1)],
        "z",
        "Softmax",
    ),
    "an axis before the label": (
        6,
        [SOFTMAX, _node("Unsqueeze", "p first", "u"), _node("ArgMax", "u", "z", axis=1)],
        "z",
        "the shape of Unsqueeze",
    ),
    "both of three": (3, BOTH, "both", "input 0 of Concat is 1 - p of 3 scores"),
    "label of both of three": (3, [*BOTH, _node("ArgMax", "both", "z", axis=1)], "z", "input 0 of Concat"),
    "two labels": (6, [_node("ArgMax", "y", "i", axis=1), _node("ArgMax", "i", "z", axis=1)], "z", "ArgMax"),
    "label of one": (1, [_node("ArgMax", "y", "z", axis=1)], "z", "one score, of which the index is always 0"),
    "whole softmax": (6, [SOFTMAX, _node("Cast", "p", "z", to=6)], "z", "to of Cast makes whole numbers"),
    "whole sigmoid": (1, [_node("Sigmoid", "y", "p"), _node("Cast", "p", "z", to=6)], "z", "to of Cast makes whole"),
    "label of a whole softmax": (
        6,
        [SOFTMAX, _node("Cast", "p", "c", to=6), _node("ArgMax", "c", "z", axis=1)],
        "z",
        "to of Cast makes whole",
    ),
    "encoded scores": (
        6,
        [_node("LabelEncoder", "y", "z", keys_floats=[0.0], values_floats=[1.0])],
        "z",
        "LabelEncoder",
    ),
}


NORMS: dict[str, Nodes] = {
    "before a softmax": [_node("Normalizer", "y", "n", norm="L2"), _node("Softmax", "n", "z")],
    "of scores": [_node("Normalizer", "y", "z", norm="L1")],
}


@pytest.mark.parametrize("case", NORMS)
def test_a_norm_that_is_no_end_is_computed(case: str) -> None:
    model = _ended(6, NORMS[case], "z")
    compiled = lanner.compile(model, rows(), output="value", mode="cheetah")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.asarray(session.run(None, {session.get_inputs()[0].name: rows()})[0])
    assert np.abs(compiled.predict_fixed(rows()) - expected).max() < 0.01 * np.ptp(expected)


@pytest.mark.parametrize("case", NO_ENDS)
def test_what_is_no_end_is_refused_by_name(case: str) -> None:
    scores, nodes, output, reason = NO_ENDS[case]
    with pytest.raises(ModelError, match=reason):
        lanner.compile(_ended(scores, nodes, output), rows())


def test_of_two_softmaxes_the_first_is_computed() -> None:
    proto, x = _ended(6, [SOFTMAX, _node("Softmax", "p", "z")], "z"), rows()
    model = lanner.compile(proto, x, output="logits")
    assert np.allclose(model.native.float(x).sum(1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    "view", [_node("Reshape", "p six", "v"), _node("Flatten", "p", "v"), _node("Identity", "p", "v")]
)
def test_a_view_that_keeps_the_classes_may_stand_before_the_label(view: onnx.NodeProto) -> None:
    proto, x = _ended(6, [SOFTMAX, view, _node("ArgMax", "v", "z", axis=1, keepdims=0)], "z"), rows()
    model = lanner.compile(proto, x)
    assert model.manifest.output == "label"
    assert (model.predict_float(x).argmax(1) == onnx_output(proto, x)).all()


def test_a_label_may_be_cast() -> None:
    proto, x = _ended(6, [_node("ArgMax", "y", "i", axis=1, keepdims=0), _node("Cast", "i", "z", to=6)], "z"), rows()
    assert (lanner.compile(proto, x).predict_float(x).argmax(1) == onnx_output(proto, x)).all()


@pytest.mark.parametrize("outputs", [("y", "p"), ("p", "y")])
@pytest.mark.parametrize(("scores", "policy"), [(3, "labels"), (1, "label")])
def test_an_ending_says_more_than_the_bare_scores_beside_it(outputs: tuple[str, ...], scores: int, policy: str) -> None:
    model = lanner.compile(_ended(scores, [_node("Sigmoid", "y", "p")], *outputs), rows())
    assert model.manifest.output == policy


BESIDE: dict[str, tuple[Nodes, tuple[str, str]]] = {
    "sigmoid of what is hidden": ([SOFTMAX, _node("Sigmoid", "b", "z")], ("p", "z")),
    "softmax of what is hidden": ([_node("Softmax", "b", "z")], ("y", "z")),
    "label of what is hidden": ([_node("ArgMax", "b", "z", axis=1)], ("y", "z")),
    "more layers": ([SOFTMAX, _node("MatMul", "y w", "z")], ("p", "z")),
    "softmax and sigmoid": ([SOFTMAX, _node("Sigmoid", "y", "z")], ("p", "z")),
}


@pytest.mark.parametrize("case", BESIDE)
def test_outputs_of_different_scores_are_refused(case: str) -> None:
    nodes, (one, other) = BESIDE[case]
    for first, second in ((one, other), (other, one)):
        # Labels follow from scores, so that the scores are named.
        named = one if case.startswith("label") else first
        with pytest.raises(ModelError, match=rf'2 outputs \({first}, {second}\).*output_name="{named}", or several'):
            lanner.compile(_ended(6, nodes, first, second), rows())
    # There are as many scores as features, of which a softmax alone says that they are classes.
    chosen = lanner.compile(_ended(6, nodes, one, other), rows(), output_name=one)
    assert chosen.manifest.output == ("label" if one == "p" else "value")


def test_a_label_beside_the_scores_is_along_the_classes() -> None:
    with pytest.raises(UnsupportedOpError, match="axis of ArgMax"):
        lanner.compile(_ended(6, [_node("ArgMax", "y", "z", axis=0)], "y", "z"), rows())


def test_logistic_classes_with_a_label_exclude_each_other() -> None:
    generator = np.random.default_rng(2)
    weights = {"coefficients": generator.standard_normal(18).tolist(), "intercepts": [0.1, -0.2, 0.3]}
    classifier = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        classlabels_ints=[0, 1, 2],
        post_transform="LOGISTIC",
        **weights,
    )
    proto, x = network(3), rows()
    del proto.graph.node[:], proto.graph.output[:], proto.graph.initializer[:]
    proto.graph.node.append(classifier)
    proto.graph.output.append(helper.make_tensor_value_info("label", onnx.TensorProto.INT64, ["n"]))
    proto.graph.output.append(helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, ["n", 3]))
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    model = lanner.compile(proto, x)
    assert model.manifest.output == "label"
    assert (model.predict_float(x).argmax(1) == onnx_output(proto, x, "label")).all()
    with pytest.raises(MisuseError, match="divided by their sum"):
        lanner.compile(proto, x, output="probability")


@pytest.mark.parametrize("name", ["LinearSVC", "RidgeClassifier"])
def test_binary_linear_classifiers_of_scikit_learn_give_their_label(name: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn import datasets, linear_model, svm

    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    classifier = {"LinearSVC": svm.LinearSVC(random_state=0), "RidgeClassifier": linear_model.RidgeClassifier()}[name]
    classifier.fit(x, y)
    proto = skl2onnx.to_onnx(classifier, x[:1])
    model = lanner.compile(proto, x[:ROWS])
    assert (model.manifest.output, model.manifest.classes) == ("label", ("0", "1"))
    assert (model.predict_float(x).argmax(1) == classifier.predict(x)).all()
    assert lanner.run(model, x[0]).label == classifier.predict(x[:1])[0]
    score = lanner.compile(proto, x[:ROWS], output_name="probabilities")
    assert score.manifest.output == "value"
    assert np.allclose(score.predict_float(x)[:, 0], classifier.decision_function(x), atol=1e-4)


def test_a_linear_regressor_of_several_targets_gives_their_values() -> None:
    regressor = helper.make_node(
        "LinearRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        targets=2,
        coefficients=np.linspace(-1, 1, 12).tolist(),
        intercepts=[0.5, -0.5],
    )
    proto, x = network(2), rows()
    del proto.graph.node[:], proto.graph.initializer[:]
    proto.graph.node.append(regressor)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    model = lanner.compile(proto, x)
    assert (model.manifest.output, len(model.notes)) == ("value", 1)
    assert np.allclose(model.predict_float(x), onnx_output(proto, x), atol=1e-5)


def test_classes_one_against_the_rest_have_labels_and_values_and_no_softmax() -> None:
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.datasets import load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_wine(return_X_y=True)
    x = x.astype(np.float32)
    estimator = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())).fit(x[::2], y[::2])
    proto = to_onnx(estimator, x[:1])
    label = lanner.compile(proto, x[::2], output_name="output_label")
    assert label.predict_fixed(x[1::2]).argmax(1).tolist() == estimator.predict(x[1::2]).tolist()
    value = lanner.compile(proto, x[::2], output_name="output_probability", output="value")
    assert np.abs(value.predict_fixed(x[1::2]) - estimator.predict_proba(x[1::2])).max() < 0.02
    for name in ("output_label", "output_probability"):
        with pytest.raises(MisuseError, match="between 0 and 1 for every calibration sample"):
            lanner.compile(proto, x[::2], output_name=name, output="probability")
