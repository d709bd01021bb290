"""Triton's own client against a gateway."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest

from helpers.digits import NAMES, DigitModels
from helpers.processes import Serving
from lanner.datasets import load_digits

triton = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")

X = load_digits("test")[0]

#: What the client, which has no types, makes.
Untyped: TypeAlias = Any


@pytest.fixture
def client(gate: Serving) -> Untyped:
    """The official client, connected to the gateway."""
    return triton.InferenceServerClient(gate.document["url"].removeprefix("http://"))


def image(count: int, *, binary: bool) -> Untyped:
    """The first digits as an input."""
    entry = triton.InferInput("image", [count, 1, 28, 28], "FP32")
    entry.set_data_from_numpy(X[:count], binary_data=binary)
    return entry


def test_metadata_and_health(client: Untyped) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("digits")
    assert client.is_model_ready("digits", "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["name"] == "lanner"
    assert client.get_model_metadata("scores")["outputs"][0]["shape"] == [-1, 10]


@pytest.mark.parametrize("binary_input", [True, False])
@pytest.mark.parametrize("binary_output", [True, False])
def test_predictions(client: Untyped, digit_models: DigitModels, binary_input: bool, binary_output: bool) -> None:
    names = ("probability", "label", "class_name")
    wanted = [triton.InferRequestedOutput(name, binary_data=binary_output) for name in names]
    result = client.infer("digits", [image(2, binary=binary_input)], outputs=wanted, request_id="mine")
    expected = digit_models.models["digits"].predict_fixed(X[:2]).argmax(1)
    assert result.as_numpy("label").tolist() == expected.tolist()
    texts = [text.decode() if isinstance(text, bytes) else text for text in result.as_numpy("class_name")]
    assert texts == [NAMES[label] for label in expected]
    assert ((result.as_numpy("probability") >= 0) & (result.as_numpy("probability") <= 1)).all()
    assert result.get_response()["id"] == "mine"
    assert result.get_response()["parameters"]["online_rounds"] > 0


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_all_outputs_by_default(client: Untyped, digit_models: DigitModels, compression: str | None) -> None:
    result = client.infer("scores", [image(3, binary=True)], request_compression_algorithm=compression)
    model = digit_models.models["scores"]
    integers, _ = model.predict_integers(X[:3])
    assert np.rint(result.as_numpy("logits") * model.logits_scale).tolist() == integers.tolist()


def test_classification(client: Untyped, digit_models: DigitModels) -> None:
    wanted = [triton.InferRequestedOutput("logits", class_count=3)]
    result = client.infer("scores", [image(1, binary=True)], outputs=wanted)
    best = [text.decode().split(":") for text in result.as_numpy("logits")[0]]
    model = digit_models.models["scores"]
    order = np.argsort(-model.predict_integers(X[:1])[0][0], kind="stable")
    assert [int(index) for _, index in best] == order[:3].tolist()


def test_errors_are_the_gateways_sentences(client: Untyped) -> None:
    entry = triton.InferInput("image", [2], "FP32")
    entry.set_data_from_numpy(np.zeros(2, np.float32))
    with pytest.raises(triton.InferenceServerException, match="the model expects"):
        client.infer("digits", [entry])
