"""The tensors of every output policy, and what a request's predictions took together."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.heads import network, rows
from lanner import Model, Phase, Prediction
from lanner.gateway.errors import Refused
from lanner.gateway.outputs import check_outputs, costs, outputs_of, response
from lanner.gateway.requests import InferenceRequest, WantedOutput
from lanner.gateway.sessions import Answer
from lanner.prediction import PHASES, SentMessage

X = rows(2, seed=9)

NOTHING = SentMessage(0, b"")


def compiled(outputs: int, ending: str, **options: object) -> Model:
    return lanner.compile(network(outputs, ending), rows(), name="net", **options)  # type: ignore[arg-type]


def answered(model: Model, *wanted: WantedOutput) -> dict[str, Any]:
    """The outputs of an answer by name, and those that the metadata names."""
    answer = Answer([lanner.run(model, x) for x in X], opened=True, seconds=1.0, longest_sent=NOTHING)
    request = InferenceRequest(None, {"x": X}, wanted or None, binary=False)
    body, length = response(request, "net", "1", model.manifest, answer)
    assert length is None
    found = {output["name"]: output for output in json.loads(body)["outputs"]}
    if not wanted:
        shapes = {each.name: [2, *each.shape] for each in outputs_of(model.manifest)}
        assert {name: output["shape"] for name, output in found.items()} == shapes
    return found


def test_labels_that_hold_are_a_row_of_truths() -> None:
    model = compiled(4, "Sigmoid")
    found = answered(model)["labels"]
    integers, _ = model.predict_integers(X)
    assert (found["datatype"], found["shape"]) == ("BOOL", [2, 4])
    assert found["data"] == (integers > 0).ravel().tolist()
    with pytest.raises(Refused, match="does not rank classes"):
        check_outputs([WantedOutput("labels", 1, binary=False)], model.manifest)


@pytest.mark.parametrize(("output", "k"), [("logits", 1), ("top-k", 2)])
def test_names_go_with_what_is_listed(output: str, k: int) -> None:
    names = ["ant", "bee", "cat"]
    found = answered(compiled(3, "Softmax", output=output, k=k, classes=names))
    assert found["class_names"]["datatype"] == "BYTES"
    expected = names * len(X) if output == "logits" else [names[index] for index in found["top"]["data"]]
    assert found["class_names"]["data"] == expected
    assert "class_names" not in answered(compiled(3, "Softmax", output=output, k=k))


def test_names_of_labels_are_there_where_they_hold() -> None:
    names = ["ant", "bee", "cat", "dog"]
    found = answered(compiled(4, "Sigmoid", classes=names))
    holds = zip(found["labels"]["data"], names * len(X), strict=True)
    assert found["class_names"]["data"] == [name if held else "" for held, name in holds]


@pytest.mark.parametrize("outputs", [1, 2])
def test_values_of_a_regression(outputs: int) -> None:
    model = compiled(outputs, "", output="value")
    assert np.allclose(answered(model)["values"]["data"], model.predict_fixed(X).ravel())


def test_one_score_ranks_two_classes() -> None:
    model = compiled(1, "Sigmoid", output="logits", classes=["no", "yes"])
    assert "class_names" not in answered(model)
    texts = answered(model, WantedOutput("logits", 2, binary=False))["logits"]["data"]
    for score, best, other in zip(model.predict_fixed(X).ravel(), texts[::2], texts[1::2], strict=True):
        expected = [f"{score:f}:1:yes", f"{0:f}:0:no"]
        assert [best, other] == (expected if score > 0 else expected[::-1])


def prediction(setup: int) -> Prediction:
    """A prediction that took so many bytes of set-up, and 1 of each other phase."""
    phases = {name: Phase(1.0, setup if name == "setup" else 1, 0, 1) for name in PHASES}
    return Prediction(0, None, None, phases, [], "gazelle", "net")


def test_set_up_counts_once() -> None:
    manifest = compiled(3, "Softmax").manifest
    assert manifest.batch == 1
    told = costs(
        Answer([prediction(0), prediction(7), prediction(7)], opened=False, seconds=1.0, longest_sent=NOTHING), manifest
    )
    assert {name: cost.bytes_sent for name, cost in told.items()} == {"setup": 7, "offline": 3, "online": 3}
