"""Requests of modes gazelle, cheetah and auto that hold several samples: each has the result that it has alone."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import lanner
from helpers.models import tiny_classifier, tiny_samples

MODES = ("gazelle", "cheetah", "auto")


@cache
def balanced() -> onnx.ModelProto:
    """The tiny classifier with biases for which its classes are about as likely."""
    proto = tiny_classifier()
    means = lanner.compile(proto, tiny_samples(), output="logits").predict_float(tiny_samples(200)).mean(0)
    bias = next(tensor for tensor in proto.graph.initializer if tensor.name == "fc_bias")
    bias.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(bias) - means).astype(np.float32), "fc_bias"))
    return proto


def results(prediction: lanner.Prediction) -> dict[str, Any]:
    """What a prediction reveals."""
    return {name: getattr(prediction, name) for name in ("label", "probability", "top", "logits")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", [{"output": "label"}, {"output": "probability"}, {"output": "top-k", "k": 2}])
def test_each_sample_has_its_own_result(mode: str, policy: dict[str, Any]) -> None:
    alone = lanner.compile(balanced(), tiny_samples(), mode=mode, **policy)
    packed = lanner.compile(balanced(), tiny_samples(), mode=mode, batch=4, **policy)
    # Two requests, of which the second has room to spare.
    x = tiny_samples(6, seed=3)
    with lanner.Server(packed) as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        told = client.predict_batch(x)
    assert [results(prediction) for prediction in told] == [results(lanner.run(alone, sample)) for sample in x]
    assert len({prediction.label for prediction in told}) > 1
    # Their costs are those of two requests, divided among six.
    rounds = lanner.run(alone, x[0]).phases["online"].rounds
    assert sum(prediction.phases["online"].rounds for prediction in told) == 2 * rounds


@pytest.mark.parametrize("mode", MODES)
def test_scores_are_those_of_the_reference(mode: str, tmp_path: Path) -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode=mode, output="logits", batch=8)
    x = tiny_samples(11, seed=4)
    expected = model.predict_integers(x)[0].tolist()
    assert [lanner.run(model, x[0]).integers] == expected[:1]
    server = lanner.Server(model, state_dir=tmp_path / "server")
    with server, lanner.Client(server.address, pin=server.fingerprint, state_dir=tmp_path / "client") as client:
        # A request with kept material, and one with what the session makes.
        client.prepare(1)
        assert [prediction.integers for prediction in client.predict_batch(x)] == expected


@pytest.mark.parametrize("mode", MODES)
def test_an_estimate_tells_the_bytes_and_rounds_of_a_request(mode: str) -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode=mode, batch=4)
    x = tiny_samples(4, seed=5)
    with (
        lanner.Server(model, insecure_plaintext=True) as server,
        lanner.Client(server.address, insecure_plaintext=True) as client,
    ):
        told = client.predict_batch(x)
    estimated = model.estimate()
    for phase in ("offline", "online"):
        made = [prediction.phases[phase] for prediction in told]
        told_before = getattr(estimated, phase)
        assert sum(part.bytes for part in made) == told_before.bytes
        assert sum(part.rounds for part in made) == told_before.rounds


def test_modes_that_take_samples_one_by_one_say_so() -> None:
    for mode in ("falcon", "tabula"):
        with pytest.raises(lanner.MisuseError, match="one by one"):
            lanner.compile(tiny_classifier(), tiny_samples(), mode=mode, batch=4)
    for mode in MODES:
        with pytest.raises(lanner.MisuseError, match="at most 64"):
            lanner.compile(tiny_classifier(), tiny_samples(), mode=mode, batch=128)


def test_a_request_is_no_larger_than_it_says() -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah", batch=2)
    with pytest.raises(lanner.InputError):
        lanner.run(model, np.concatenate([tiny_samples(3)]))
