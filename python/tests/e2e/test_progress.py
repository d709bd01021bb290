"""How far predictions have come, asked while they run: in Python, and of the gateway."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lanner
from helpers.callers import OCTETS, Caller
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import Serving, gateway
from lanner.datasets import load_digits
from lanner.network import read_network
from lanner.progress import StepProgress

X = load_digits("test")[0]


def test_every_layer_is_told_of_as_often_as_it_is_computed() -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah")
    with lanner.Server(model) as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        before = client.progress()
        assert {(step.begun, step.ended, step.bytes) for step in before} == {(0, 0, 0)}
        assert [step.phase for step in before] == ["offline"] * (len(before) // 2) + ["online"] * (len(before) // 2)
        predictions = [client.predict(x) for x in tiny_samples(3, seed=5)]
        after = client.progress()
    assert all(step.begun == step.ended == 3 * step.visits for step in after)
    layers = [layer for prediction in predictions for layer in prediction.layers]
    for step in after:
        same = (step.name, step.protocol, step.phase)
        own = [layer for layer in layers if (layer.name, layer.protocol, layer.phase) == same]
        assert step.bytes == sum(layer.bytes for layer in own)
        assert step.seconds == pytest.approx(sum(layer.seconds for layer in own), abs=1e-6)
    with pytest.raises(lanner.MisuseError, match="closed"):
        client.progress()


def test_progress_is_told_while_a_prediction_runs() -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah")
    looks: list[list[StepProgress]] = []
    with (
        lanner.Server(model, insecure_plaintext=True) as server,
        read_network("wan").between(server.address) as address,
        lanner.Client(address, insecure_plaintext=True) as client,
    ):
        thread = threading.Thread(target=client.predict, args=(tiny_samples(1)[0],))
        thread.start()
        while thread.is_alive():
            looks.append(client.progress())
            time.sleep(0.01)
    ended = [sum(step.ended for step in look) for look in looks]
    assert ended == sorted(ended)
    assert len(set(ended)) > 3
    assert any(step.begun > step.ended for look in looks for step in look)


@pytest.fixture
def far(behind: Serving, tmp_path: Path) -> Iterator[Serving]:
    """A gateway a long way from its server."""
    with (
        read_network("wan").between(behind.address) as address,
        gateway(tmp_path, address, *behind.pin, "--model", "digits") as process,
    ):
        yield process


def test_the_gateway_tells_who_has_the_ticket(far: Serving) -> None:
    call = Caller(far.document["url"])
    mine = "0123456789abcdef" * 2
    path = f"/ui/progress?model=digits&ticket={mine}"
    assert call.get(path).document == {"running": False, "steps": []}
    row = ",".join(str(value) for value in X[0].ravel()).encode()
    answers: list[int] = []

    def ask() -> None:
        answers.append(call("POST", f"/ui/predict?model=digits&ticket={mine}", row, OCTETS).status)

    thread = threading.Thread(target=ask)
    thread.start()
    looks, others = [], []
    while thread.is_alive():
        looks.append(call.get(path).document)
        others.append(call.get(path[:-1] + "0").document["running"])
        others.append(call.get("/ui/progress?model=digits").document["running"])
        time.sleep(0.02)
    assert answers == [200]
    ended = [sum(step["ended"] for step in look["steps"]) for look in looks if look["running"]]
    assert ended == sorted(ended)
    assert len(set(ended)) > 3
    assert not any(others)
    assert call.get(path).document == {"running": False, "steps": []}
