"""Every reason why a model is refused comes in one report, with how much of the network runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from helpers.models import make_model, random_weights
from lanner.errors import ModelError, UnsupportedOpError
from lanner.onnx import import_model, survey_file
from lanner.onnx.steps import Outcome

IMAGE = ("n", 3, 8, 8)


def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def three_reasons() -> onnx.ModelProto:
    """A convolution, a sine, a cast to integers and back, a cosine and a layer."""
    nodes = [
        node("Conv", ["x", "w"], "conv"),
        node("Tan", ["conv"], "wave"),
        node("Cast", ["wave"], "whole", to=onnx.TensorProto.INT32),
        node("Cast", ["whole"], "back", to=onnx.TensorProto.FLOAT),
        node("Atan", ["back"], "cosine"),
        node("Flatten", ["cosine"], "flat"),
        node("MatMul", ["flat", "m"], "y"),
    ]
    return make_model(nodes, IMAGE, random_weights(0, w=(2, 3, 3, 3), m=(72, 4)))


def test_the_error_names_the_first_reason_and_lists_all() -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(three_reasons())
    error = caught.value
    assert error.where == "node wave"
    assert "operator Tan is not supported: it is a smooth function" in error.what
    assert error.what.endswith("(and 2 more reasons)")
    assert [(reason.operator, reason.node, reason.attribute) for reason in error.nodes] == [
        ("Tan", "wave", ""),
        ("Cast", "whole", "to"),
        ("Atan", "cosine", ""),
    ]
    document = error.document()
    assert document["kind"] == "unsupported"
    assert [set(entry) for entry in document["nodes"]] == [{"operator", "node", "attribute", "reason", "fix"}] * 3
    assert all(entry["reason"] and entry["fix"] for entry in document["nodes"])


def test_a_survey_tells_what_share_runs() -> None:
    survey = survey_file(three_reasons())
    assert survey.model is None
    share = survey.share
    assert (share.nodes, share.refused, share.all_nodes) == (4, 3, 7)
    # Two channels of 6x6 places, each of 27 taps, and a matrix of 72 x 4.
    assert share.products == share.all_products == 2 * 36 * 27 + 72 * 4
    assert str(share) == "4 of 7 nodes run, 3 are refused; 100 % of 2232 multiply-accumulates run"


def test_what_is_not_known_is_not_counted() -> None:
    nodes = [
        node("Relu", ["x"], "odd"),
        node("Conv", ["odd", "w"], "conv"),
        node("Shape", ["conv"], "shape"),
        node("Reshape", ["conv", "shape"], "same"),
        node("Tan", ["same"], "y"),
    ]
    model = make_model(nodes, IMAGE, random_weights(0, w=(2, 3, 3, 3)))
    model.graph.node[0].CopyFrom(helper.make_node("Odd", ["x"], ["odd"], name="odd", domain="nobody.knows"))
    model.opset_import.append(helper.make_opsetid("nobody.knows", 1))
    survey = survey_file(model)
    assert [reason.node for reason in survey.reasons] == ["odd", "y"]
    assert [step.outcome for step in survey.steps] == [
        Outcome.REFUSED,
        Outcome.UNCHECKED,
        Outcome.UNCHECKED,
        Outcome.REFUSED,
    ]
    assert survey.share.uncounted == 2
    assert str(survey.share) == (
        "0 of 4 nodes run, 2 are refused, 2 could not be looked at behind them; "
        "how many 2 further nodes take is not known"
    )


def test_structure_and_nodes_are_told_together() -> None:
    model = three_reasons()
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    model.graph.input.append(helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, ["n", "many"]))
    whats = [reason.what for reason in survey_file(model).reasons]
    assert "is of type STRING" in whats[0]
    assert len(whats) == 4


def test_an_embedding_of_what_is_no_input_is_refused_as_one() -> None:
    nodes = [node("Gemm", ["x", "m"], "i"), node("Gather", ["w", "i"], "y")]
    (embedding,) = survey_file(make_model(nodes, ("n", 4), random_weights(0, w=(10, 3), m=(4, 4)))).reasons
    assert "looks up an embedding" in embedding.what


def test_a_model_of_wrong_weights_alone_is_a_model_error() -> None:
    value = np.array([1, np.nan, 2], dtype=np.float32).reshape(3, 1, 1)
    nodes = [node("Mul", ["x", "w"], "a"), node("Add", ["a", "w"], "y")]
    with pytest.raises(ModelError, match=r"node a: .*NaN.*\(and 1 more reason\)") as caught:
        import_model(make_model(nodes, IMAGE, {"w": value}))
    assert not isinstance(caught.value, UnsupportedOpError)


@pytest.mark.parametrize(("output", "taken"), [(8, True), (1, False), (4, False)])
def test_a_fixed_batch_is_taken_where_the_output_has_it_too(output: int, taken: bool) -> None:
    nodes = [node("Flatten", ["x"], "flat"), node("MatMul", ["flat", "m"], "y")]
    model = make_model(nodes, (8, 3, 2, 2), random_weights(0, m=(12, 4)))
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = output
    survey = survey_file(model)
    assert (survey.model is not None) == taken
    if not taken:
        assert [reason.what for reason in survey.reasons] == ["the input has shape (8, 3, 2, 2)"]


def test_a_node_that_needs_the_fixed_batch_is_refused() -> None:
    nodes = [node("Reshape", ["x", "shape"], "flat"), node("MatMul", ["flat", "m"], "y")]
    weights = {**random_weights(0, m=(12, 4)), "shape": np.array([8, 12], np.int64)}
    with pytest.raises(UnsupportedOpError, match="node flat: shape of Reshape"):
        import_model(make_model(nodes, (8, 3, 2, 2), weights))
