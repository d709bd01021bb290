"""How far set-ups and predictions have come, asked while they run: in Python, and of the gateway."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import lanner
from helpers.callers import OCTETS, Caller
from helpers.documents import free_address
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import Serving, gateway, serving
from lanner.datasets import load_digits
from lanner.network import read_network
from lanner.progress import PartProgress, StepProgress

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


def test_parts_of_a_set_up_are_told_while_it_runs() -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), mode="gazelle")
    watch = lanner.SetUpWatch()
    looks = [watch.parts()]
    assert [part.name for part in looks[0]] == ["connection", "model", "keys", "transfers"]
    assert not any(part.begun or part.ended or part.seconds or part.bytes for part in looks[0])
    clients: list[lanner.Client] = []
    with (
        lanner.Server(model, insecure_plaintext=True) as server,
        read_network("wan").between(server.address) as address,
    ):

        def connect() -> None:
            clients.append(lanner.Client(address, insecure_plaintext=True, watch=watch))

        thread = threading.Thread(target=connect)
        thread.start()
        while thread.is_alive():
            looks.append(watch.parts())
            time.sleep(0.005)
        looks.append(watch.parts())
        with clients[0] as client:
            setup = client.predict(tiny_samples(1)[0]).phases["setup"]
    check_parts_rise(looks)
    assert all(part.ended for part in looks[-1])
    _, _, keys, transfers = looks[-1]
    assert keys.expected_bytes is not None
    assert keys.expected_bytes <= keys.bytes < 1.01 * keys.expected_bytes
    assert keys.bytes + transfers.bytes == setup.bytes
    assert keys.seconds + transfers.seconds == pytest.approx(setup.seconds, abs=1e-6)
    assert transfers.seconds > 0.05, "transfers wait for answers from far away"


def check_parts_rise(looks: list[list[PartProgress]]) -> None:
    """No part falls behind what it had come to, one runs at a time, and each but the connection was seen to run."""
    for before, after in pairwise(looks):
        for then, now in zip(before, after, strict=True):
            assert (then.begun, then.ended) <= (now.begun, now.ended)
            assert then.bytes <= now.bytes
            assert then.ended < now.ended or then.seconds <= now.seconds
    running = [[part.name for part in look if part.begun and not part.ended] for look in looks]
    assert all(len(names) <= 1 for names in running)
    assert {"model", "transfers"} <= {name for names in running for name in names}


@pytest.fixture
def far(behind: Serving, tmp_path: Path) -> Iterator[Serving]:
    """A gateway a long way from its server."""
    with (
        read_network("wan").between(behind.address) as address,
        gateway(tmp_path, address, *behind.pin, "--model", "digits") as process,
    ):
        yield process


@pytest.mark.slow
def test_the_gateway_tells_who_has_the_ticket(far: Serving) -> None:
    call = Caller(far.document["url"])
    mine = "0123456789abcdef" * 2
    path = f"/ui/progress?model=digits&ticket={mine}"
    assert call.get(path).document == {"running": False, "set_up": [], "steps": []}
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
    assert not any(look["set_up"] for look in looks), "the session was there before"
    assert not any(others)
    assert call.get(path).document == {"running": False, "set_up": [], "steps": []}


def test_the_gateway_tells_the_set_up_of_a_session_that_a_prediction_opens(tmp_path: Path, tiny_label: Path) -> None:
    mine, x, address = "0123456789abcdef" * 2, tiny_samples(1)[0], free_address()
    row = ",".join(str(value) for value in x.ravel()).encode()
    looks: list[dict[str, Any]] = []
    with (
        read_network("wan").between(address) as far,
        serving(tmp_path / "state", tiny_label, "--listen", address) as first,
        gateway(tmp_path / "gate", far, *first.pin) as process,
    ):
        call = Caller(process.document["url"])
        first.end(signal.SIGTERM)
        with serving(tmp_path / "state", tiny_label, "--listen", address):
            answers: list[bool] = []

            def ask() -> None:
                answer = call("POST", f"/ui/predict?model=tiny_label&ticket={mine}", row, OCTETS)
                answers.append(answer.document["new_session"])

            thread = threading.Thread(target=ask)
            thread.start()
            while thread.is_alive():
                looks.append(call.get(f"/ui/progress?model=tiny_label&ticket={mine}").document)
                time.sleep(0.02)
    assert answers == [True]
    parts = [[PartProgress(**part) for part in look["set_up"]] for look in looks if look["set_up"]]
    check_parts_rise(parts)
    assert all(part.ended for part in parts[-1])
    # The layers of the session before are none of this one's.
    steps = [sum(step["ended"] for step in look["steps"]) for look in looks if look["set_up"]]
    assert steps == sorted(steps)
