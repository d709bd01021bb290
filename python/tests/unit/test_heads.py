"""What the end of a network says of its scores, and the policy that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from helpers.heads import network, rows
from lanner import compile as compile_model
from lanner.errors import MisuseError, ModelError, UnsupportedOpError
from lanner.heads import Ending, Form, Head, choose_policy
from lanner.onnx.ending import find_end
from lanner.onnx.outputs import choose_output, find_scores

NONE, SOFTMAX, SIGMOID, REST = Ending.NONE, Ending.SOFTMAX, Ending.SIGMOID, Ending.ONE_AGAINST_REST
REGRESSION = Ending.REGRESSION


@pytest.mark.parametrize(
    ("ending", "scores", "wanted", "output", "two_classes", "notes"),
    [
        (SOFTMAX, 3, None, "label", False, 0),
        (SOFTMAX, 3, "probability", "probability", False, 0),
        (NONE, 3, None, "label", False, 0),
        (NONE, 3, "probability", "probability", False, 1),
        (NONE, 3, "value", "value", False, 0),
        (REST, 3, "top-k", "top-k", False, 0),
        (SIGMOID, 1, None, "label", True, 0),
        (SIGMOID, 1, "probability", "probability", True, 0),
        (SIGMOID, 1, "top-k", "top-k", True, 0),
        (SIGMOID, 1, "logits", "logits", False, 0),
        (NONE, 1, None, "value", False, 1),
        (NONE, 1, "logits", "logits", False, 0),
        (NONE, 1, "label", "label", True, 1),
        (NONE, 1, "probability", "probability", True, 1),
        (REGRESSION, 3, None, "value", False, 1),
        (REGRESSION, 1, None, "value", False, 1),
        (REGRESSION, 3, "label", "label", False, 0),
        (REGRESSION, 1, "label", "label", True, 1),
        (SIGMOID, 4, None, "labels", False, 1),
        (SIGMOID, 4, "label", "labels", False, 1),
        (SIGMOID, 4, "top-k", "top-k", False, 0),
        (SIGMOID, 4, "logits", "logits", False, 0),
    ],
)
def test_the_policy_follows_from_the_end(
    ending: Ending, scores: int, wanted: str | None, output: str, two_classes: bool, notes: int
) -> None:
    policy = choose_policy(Head(ending), scores, wanted)
    assert (policy.output, policy.two_classes, len(policy.notes)) == (output, two_classes, notes)


@pytest.mark.parametrize(
    ("ending", "scores", "wanted", "reason"),
    [
        (SIGMOID, 4, "probability", "do not exclude each other"),
        (REST, 3, "probability", "divided by their sum"),
        (SOFTMAX, 1, None, "softmax of one score"),
    ],
)
def test_a_policy_that_does_not_go_with_the_end_is_misuse(
    ending: Ending, scores: int, wanted: str | None, reason: str
) -> None:
    with pytest.raises(MisuseError, match=reason):
        choose_policy(Head(ending), scores, wanted)


@pytest.mark.parametrize(
    ("shape", "given", "form"),
    [
        ((3, 4, 5), (1, 4, 5), Form.MAP),
        ((1, 4, 5), (1, 8, 10), Form.MAP),
        ((7, 12), (7, 3), Form.MAP),
        ((12, 1, 1), (3, 8, 8), Form.SCORES),
        ((1, 1, 12), (3, 8, 8), Form.SCORES),
        ((12,), (12,), Form.LIKE_INPUT),
        ((12,), (3, 2, 2), Form.LIKE_INPUT),
        ((1,), (1,), Form.SCORES),
    ],
)
def test_a_map_has_several_places(shape: tuple[int, ...], given: tuple[int, ...], form: Form) -> None:
    assert Form.of(shape, given) is form


@pytest.mark.parametrize(
    ("ending", "form", "classes", "wanted", "output"),
    [
        (NONE, Form.MAP, None, None, "value"),
        (SOFTMAX, Form.MAP, ("a", "b"), None, "value"),
        (SIGMOID, Form.MAP, None, None, "value"),
        (SIGMOID, Form.MAP, None, "label", "labels"),
        (NONE, Form.MAP, None, "logits", "logits"),
        (NONE, Form.MAP, None, "label", "label-map"),
        (SOFTMAX, Form.MAP, ("a", "b"), "label", "label-map"),
        (NONE, Form.LIKE_INPUT, None, None, "value"),
        (SIGMOID, Form.LIKE_INPUT, None, None, "value"),
        (SOFTMAX, Form.LIKE_INPUT, None, None, "label"),
        (NONE, Form.LIKE_INPUT, ("a", "b"), None, "label"),
        (NONE, Form.LIKE_INPUT, None, "label", "label"),
    ],
)
def test_of_a_map_the_client_learns_the_values(
    ending: Ending, form: Form, classes: tuple[str, ...] | None, wanted: str | None, output: str
) -> None:
    policy = choose_policy(Head(ending, classes), 12, wanted, form)
    assert policy.output == output
    assert bool(policy.notes) == (output in ("value", "labels"))


def test_a_file_that_picks_at_each_place_has_labels_of_places() -> None:
    assert choose_policy(Head(SOFTMAX, picks=True), 12, None, Form.MAP).output == "label-map"


@pytest.mark.parametrize("wanted", ["probability", "top-k"])
def test_no_single_label_is_told_of_a_map(wanted: str) -> None:
    with pytest.raises(MisuseError, match="is a map") as caught:
        choose_policy(Head(SOFTMAX), 12, wanted, Form.MAP)
    assert "choose label" in str(caught.value.fix)


INTEGER, FLOAT = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
KEPT: dict[str, NDArray[np.generic]] = {"names": np.array(["no", "yes"]), "one": np.array(1, np.float32)}


def graph_of(nodes: Sequence[onnx.NodeProto], **outputs: int) -> onnx.GraphProto:
    """A graph whose first node makes ``s`` of ``x``, with outputs of these types."""
    first = helper.make_node("Relu", ["x"], ["s"], name="scores")
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 2])]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in KEPT.items()]
    return helper.make_graph([first, *nodes], "net", inputs, made, tensors)


def node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - as the operator takes
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def ml(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - as the operator takes
    return helper.make_node(operator, inputs.split(" "), outputs.split(" "), domain="ai.onnx.ml", **attributes)


SIGMOIDS = [
    node("Sigmoid", "s", "p"),
    node("Sub", "one p", "q"),
    node("Concat", "q p", "both", axis=1),
]
LABEL = [
    node("ArgMax", "both", "i", axis=1),
    ml("ArrayFeatureExtractor", "names i", "name"),
    node("Identity", "name", "y"),
]
ENCODED = ml("LabelEncoder", "i", "y", keys_int64s=[0, 1], values_strings=["cat", "dog"])

ENDS: dict[str, tuple[list[onnx.NodeProto], str, Ending, tuple[str, ...] | None]] = {
    "nothing": ([node("Identity", "s", "y")], "y", NONE, None),
    "softmax": ([node("Softmax", "s", "p"), node("Identity", "p", "y")], "s", SOFTMAX, None),
    "arg-max": ([node("ArgMax", "s", "i", axis=1), node("Cast", "i", "y", to=1)], "s", NONE, None),
    "sigmoid": ([node("Sigmoid", "s", "p"), node("Reshape", "p shape", "y")], "s", SIGMOID, None),
    "sigmoid before a softmax": ([node("Sigmoid", "s", "p"), node("Softmax", "p", "y")], "p", SOFTMAX, None),
    "largest of sigmoids": ([node("Sigmoid", "s", "p"), node("ArgMax", "p", "y", axis=1)], "s", REST, None),
    "normalised sigmoids": ([node("Sigmoid", "s", "p"), ml("Normalizer", "p", "y", norm="L1")], "s", REST, None),
    "both probabilities": ([*SIGMOIDS, node("Identity", "both", "y")], "s", SIGMOID, None),
    "label of both": ([*SIGMOIDS, *LABEL], "s", SIGMOID, ("no", "yes")),
    "zip of a softmax": (
        [node("Softmax", "s", "p"), ml("ZipMap", "p", "y", classlabels_int64s=[3, 7])],
        "s",
        SOFTMAX,
        ("3", "7"),
    ),
    "encoded label": ([node("ArgMax", "s", "i", axis=1), ENCODED], "s", NONE, ("cat", "dog")),
    "softmax that adds up": ([node("Softmax", "s", "p"), ml("Normalizer", "p", "y", norm="L1")], "s", SOFTMAX, None),
    "softmax of a softmax": ([node("Softmax", "s", "p"), node("Softmax", "p", "y")], "p", SOFTMAX, None),
    "arg-max of an arg-max": ([node("ArgMax", "s", "p"), node("ArgMax", "p", "y")], "p", NONE, None),
    "normalised scores": ([ml("Normalizer", "s", "y", norm="L1")], "y", NONE, None),
    "softmax of normalised scores": (
        [ml("Normalizer", "s", "p", norm="L2"), node("Softmax", "p", "y")],
        "p",
        SOFTMAX,
        None,
    ),
    "sigmoids of one classifier": (
        [ml("LinearClassifier", "s", " r", classlabels_ints=[0, 1, 2]), node("Sigmoid", "r", "y")],
        "r",
        REST,
        ("0", "1", "2"),
    ),
    "softmax over its maximum": ([node("Softmax", "s", "p"), ml("Normalizer", "p", "y", norm="MAX")], "y", NONE, None),
    "encoded scores": ([ml("LabelEncoder", "s", "y", keys_floats=[0.0], values_floats=[1.0])], "y", NONE, None),
    "regression": ([ml("LinearRegressor", "s", "r", targets=2), node("Identity", "r", "y")], "y", REGRESSION, None),
    "label of a regression": (
        [ml("LinearRegressor", "s", "r", targets=2), node("ArgMax", "r", "y", axis=1)],
        "r",
        NONE,
        None,
    ),
    "relu of a softmax": ([node("Softmax", "s", "p"), node("Relu", "p", "y")], "y", NONE, None),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_is_behind_the_scores_is_taken_off(case: str) -> None:
    nodes, scores, ending, classes = ENDS[case]
    end = find_end(graph_of(nodes, y=FLOAT), "y", KEPT)
    assert (end.scores, end.head) == (scores, Head(ending, classes, picks=end.head.picks))
    taken = [each.op_type for each in end.operators]
    assert end.head.picks == ("ArgMax" in taken)


def test_names_are_found_wherever_the_label_is_made() -> None:
    graph = graph_of([*SIGMOIDS, *LABEL, ml("ZipMap", "both", "z", classlabels_int64s=[0, 1])], both=FLOAT)
    # Words tell more than numbers.
    assert find_end(graph, "both", KEPT).head.classes == ("no", "yes")


def test_a_classifiers_scores_are_chosen_among_its_outputs() -> None:
    graph = graph_of([*SIGMOIDS, *LABEL], y=INTEGER, both=FLOAT)
    assert choose_output(graph, KEPT) == "both"
    assert choose_output(graph, KEPT, "y") == "y"
    with pytest.raises(MisuseError, match="no output z; give one of y, both"):
        choose_output(graph, KEPT, "z")


def test_of_several_outputs_one_must_be_named() -> None:
    other = [node("Relu", "s", "a"), node("Neg", "s", "b"), node("ArgMax", "b", "c", axis=1)]
    graph = graph_of(other, a=FLOAT, b=FLOAT)
    with pytest.raises(ModelError, match=r"2 outputs \(a, b\)"):
        choose_output(graph, KEPT)
    assert choose_output(graph, KEPT, "b") == "b"
    # The label of other scores is no reason to choose.
    with pytest.raises(ModelError, match=r"2 outputs \(a, c\)"):
        choose_output(graph_of(other, a=FLOAT, c=INTEGER), KEPT)


def test_the_scores_of_a_classifier_are_its_second_output() -> None:
    classifier = ml("LinearClassifier", "s", "label raw", classlabels_strings=["no", "yes"])
    graph = graph_of([classifier, node("Identity", "raw", "y")], label=onnx.TensorProto.STRING, y=FLOAT)
    assert choose_output(graph, KEPT) == "y"
    for output in ("label", "raw"):
        end = find_end(graph, output, KEPT)
        assert (end.scores, end.head.classes, end.operators) == ("raw", ("no", "yes"), [])


@pytest.mark.parametrize(("outputs", "wanted"), [(3, "probability"), (1, "probability"), (1, "label")])
def test_probabilities_are_not_taken_for_logits(outputs: int, wanted: str) -> None:
    proto = network(outputs)
    compile_model(proto, rows(), output=wanted, mode="cheetah")
    (scores,) = proto.graph.output
    clip = helper.make_node("Clip", [scores.name, "least", "most"], ["between"], name="clip")
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.array(value, np.float32), name) for name, value in (("least", 0), ("most", 1))
    )
    proto.graph.node.append(clip)
    scores.name = "between"
    # Nothing at the end says what they are; the samples do.
    with pytest.raises(MisuseError, match="between 0 and 1 for every calibration sample"):
        compile_model(proto, rows(), output=wanted, mode="cheetah")
    compile_model(proto, rows(), output="logits", mode="cheetah")


def test_a_value_is_what_the_network_gives() -> None:
    plain = graph_of([node("Identity", "s", "y")], y=FLOAT)
    assert find_scores(plain, KEPT, "value", None).scores == "y"
    # A softmax is computed where its values are asked for.
    for last in ("Softmax", "LogSoftmax", "Sigmoid"):
        assert find_scores(graph_of([node(last, "s", "y")], y=FLOAT), KEPT, "value", None).scores == "y"
    both = graph_of([node("ArgMax", "s", "y")], y=FLOAT, s=FLOAT)
    # So is the place of the largest.
    assert find_scores(both, KEPT, "value", "y").scores == "y"


def test_the_values_of_a_map_are_those_that_it_names() -> None:
    probabilities = node("Softmax", "s", "p", axis=1)
    named = ml("ZipMap", "p", "y", classlabels_strings=["no", "yes"])
    label = [node("ArgMax", "p", "index", axis=1), ml("ArrayFeatureExtractor", "names index", "label")]
    graph = graph_of([probabilities, named, *label], label=onnx.TensorProto.STRING, y=FLOAT)
    assert find_scores(graph, KEPT, "value", "y").scores == "p"
    with pytest.raises(UnsupportedOpError) as caught:
        find_scores(graph, KEPT, "value", "label")
    assert 'output_name="y"' in str(caught.value.fix)
    assert find_scores(graph_of([ml("ZipMap", "s", "y")], y=FLOAT), KEPT, "value", None).scores == "s"
    both = [node("Sigmoid", "s", "p"), node("Sub", "one p", "q"), node("Concat", "q p", "both", axis=1)]
    assert find_scores(graph_of([*both, ml("ZipMap", "both", "y")], y=FLOAT), KEPT, "value", None).scores == "both"
    classifier = ml("LinearClassifier", "s", "label raw", classlabels_strings=["no", "yes"])
    graph = graph_of([classifier], label=onnx.TensorProto.STRING, raw=FLOAT)
    with pytest.raises(UnsupportedOpError, match="final label is not computed"):
        find_scores(graph, KEPT, "value", "label")
