"""A gateway whose server is gone, silent, full, changed, or another than was meant; and how a gateway ends."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.authority import make_authority
from helpers.callers import Caller, request_of
from helpers.models import tiny_classifier, tiny_samples
from helpers.peers import peer, stall
from helpers.processes import HUNG, gateway, lanner, serving
from lanner import load

X = tiny_samples(3, seed=5)


def asked(call: Caller, model: str = "tiny_label") -> int:
    """The label of the first sample."""
    answer = call.infer(model, request_of(X[:1], "x"))
    assert answer.status == 200, answer.body
    return int(answer.document["outputs"][0]["data"][0])


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def wait_for(call: Caller, path: str, status: int) -> None:
    """Wait until a path answers with a status: what a gateway knows of a server is seconds old."""
    deadline = time.monotonic() + HUNG
    while call.get(path).status != status:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_gateway_outlives_its_server(tmp_path: Path, tiny_label: Path) -> None:
    expected = int(load(tiny_label).predict_fixed(X[0]).argmax())
    address = free_address()
    with serving(tmp_path / "state", tiny_label, "--listen", address) as server:
        pin = server.pin
        with gateway(tmp_path / "gate", address, *pin) as process:
            call = Caller(process.document["url"])
            assert asked(call) == expected
            server.end(signal.SIGKILL)
            wait_for(call, "/v2/health/ready", 503)
            for path in ("/v2/health/ready", "/v2/models/tiny_label/ready"):
                assert "the server behind does not answer" in call.get(path).error
            assert call.get("/v2/health/live").status == 200
            answer = call.infer("tiny_label", request_of(X[:1], "x"))
            assert (answer.status, "cannot connect" in answer.error) == (502, True)
            with serving(tmp_path / "state", tiny_label, "--listen", address):
                answer = call.infer("tiny_label", request_of(X[:1], "x"))
                assert answer.document["outputs"][0]["data"] == [expected]
                assert answer.document["parameters"]["new_session"]
                wait_for(call, "/v2/health/ready", 200)


def test_session_that_ended_is_opened_again(tmp_path: Path, tiny_label: Path) -> None:
    address = free_address()
    with serving(tmp_path / "state", tiny_label, "--listen", address) as server:
        pin = server.pin
        with gateway(tmp_path / "gate", address, *pin) as process:
            call = Caller(process.document["url"])
            first = asked(call)
            assert server.end(signal.SIGTERM) == 0
            with serving(tmp_path / "state", tiny_label, "--listen", address):
                answers = [call.infer("tiny_label", request_of(X[:1], "x")).document for _ in range(2)]
    assert [answer["outputs"][0]["data"] for answer in answers] == [[first]] * 2
    assert [answer["parameters"]["new_session"] for answer in answers] == [True, False]


def test_model_that_changed_is_refused(tmp_path: Path, tiny_label: Path) -> None:
    other = tmp_path / "other.lanner"
    library.compile(tiny_classifier(), tiny_samples(), name="tiny_label", output="logits").save(other)
    address = free_address()
    with (
        serving(tmp_path / "state", tiny_label, "--listen", address) as server,
        gateway(tmp_path / "gate", address, *server.pin) as process,
    ):
        call = Caller(process.document["url"])
        asked(call)
        server.end(signal.SIGKILL)
        with serving(tmp_path / "state", other, "--listen", address):
            answer = call.infer("tiny_label", request_of(X[:1], "x"))
            assert (answer.status, "commitment" in answer.error) == (502, True)


def test_full_server_makes_callers_try_later(tmp_path: Path, tiny_label: Path) -> None:
    address = free_address()
    options = (tiny_label, "--max-sessions", 1, "--listen", address)
    with (
        serving(tmp_path / "state", *options) as server,
        gateway(tmp_path / "gate", address, *server.pin) as process,
    ):
        call = Caller(process.document["url"])
        asked(call)
        # The session that is kept has the only place, and is answered.
        assert call.get("/v2/health/ready").status == 200
        server.end(signal.SIGTERM)
        with serving(tmp_path / "state", *options), library.Client(address, pin=server.pin[1]) as taking:
            taking.predict(X[0])
            answer = call.infer("tiny_label", request_of(X[:1], "x"))
            assert (answer.status, "busy" in answer.error, answer.headers["retry-after"]) == (503, True, "2")
            wait_for(call, "/v2/health/ready", 503)


def test_callers_at_once_are_answered_in_turn(tmp_path: Path, tiny_label: Path) -> None:
    expected = load(tiny_label).predict_fixed(X).argmax(1).tolist()
    found: dict[int, int] = {}
    with (
        serving(tmp_path / "state", tiny_label, "--max-sessions", 1) as server,
        gateway(tmp_path / "gate", server.address, *server.pin) as process,
    ):
        call = Caller(process.document["url"])

        def ask(index: int) -> None:
            answer = call.infer("tiny_label", request_of(X[index % 3], "x"))
            found[index] = answer.document["outputs"][0]["data"][0]

        threads = [threading.Thread(target=ask, args=(index,)) for index in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HUNG)
    assert [found[index] for index in range(9)] == expected * 3


@pytest.mark.slow
def test_trust_options(tmp_path: Path, tiny_label: Path) -> None:
    model, wrong = load(tiny_label), "sha256:" + "0" * 64
    with serving(tmp_path / "state", tiny_label) as server:
        with gateway(tmp_path / "gate", server.address, *server.pin, "--pin-model", model.commitment) as process:
            asked(Caller(process.document["url"]))
        here = ("gateway", server.address, "--listen", "127.0.0.1:0")
        assert lanner(*here).code == 2
        assert lanner(*here, "--pin", wrong).code == 5
        assert lanner(*here, *server.pin, "--pin-model", "0" * 64).code == 4
        assert lanner(*here, *server.pin, "--model", "other").code == 4
        assert lanner(*here, *server.pin, "--model", "a", "--model", "a").code == 2
        assert lanner(*here, *server.pin, "--model", "a", "--model", "b", "--pin-model", "0" * 64).code == 2
        assert lanner(*here, *server.pin, "--max-waiting", -1).code == 2
        taken = lanner("gateway", server.address, *server.pin, "--listen", server.address)
        assert (taken.code, "cannot listen" in taken.errors) == (5, True)
    with (
        serving(tmp_path / "state", tiny_label, "--insecure-plaintext") as server,
        gateway(tmp_path / "gate", server.address, "--insecure-plaintext") as process,
    ):
        asked(Caller(process.document["url"]))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_authorities_and_certificates(tmp_path: Path, tiny_label: Path) -> None:
    authority = make_authority(tmp_path / "ca")
    certificate, key = authority.issue("server", "serverAuth")
    own, own_key = authority.issue("client", "clientAuth")
    options = ("--tls-cert", certificate, "--tls-key", key, "--client-ca", authority.certificate)
    with serving(tmp_path / "state", tiny_label, *options) as server:
        trust = ("--ca", authority.certificate)
        with gateway(tmp_path / "gate", server.address, *trust, "--cert", own, "--key", own_key) as process:
            call = Caller(process.document["url"])
            asked(call)
            assert call.get("/v2/health/ready").status == 200
        assert lanner("gateway", server.address, *trust, "--listen", "127.0.0.1:0").code == 5


def test_server_that_is_silent_or_absent_ends_the_start() -> None:
    with peer(stall) as address:
        here = ("--insecure-plaintext", "--listen", "127.0.0.1:0", "--timeout", 1)
        assert lanner("gateway", address, *here).code == 5
    assert lanner("gateway", free_address(), "--insecure-plaintext", "--listen", "127.0.0.1:0").code == 5


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_in_good_order(tmp_path: Path, tiny_label: Path, how: signal.Signals) -> None:
    with (
        serving(tmp_path / "state", tiny_label) as server,
        gateway(tmp_path / "gate", server.address, *server.pin) as process,
    ):
        asked(Caller(process.document["url"]))
        assert process.end(how) == 0
        deadline = time.monotonic() + HUNG
        while "1 prediction" not in (log := server.log()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert "; done" in log


def test_request_under_way_is_finished_before_the_end(tmp_path: Path, tiny_label: Path) -> None:
    with (
        serving(tmp_path / "state", tiny_label) as server,
        gateway(tmp_path / "gate", server.address, *server.pin) as process,
    ):
        body = json.dumps(request_of(X[:1], "x")).encode()
        connection = Caller(process.document["url"]).connect()
        connection.putrequest("POST", "/v2/models/tiny_label/infer")
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.endheaders(body[:20])
        time.sleep(0.5)
        process.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.send(body[20:])
        answer = json.load(connection.getresponse())
        assert np.isin(answer["outputs"][0]["data"], range(4)).all()
        assert process.process.wait(HUNG) == 0


def test_second_signal_ends_it_while_the_server_hangs(tmp_path: Path, tiny_label: Path) -> None:
    with (
        serving(tmp_path / "state", tiny_label) as server,
        gateway(tmp_path / "gate", server.address, *server.pin) as process,
    ):
        call = Caller(process.document["url"])
        asked(call)
        server.process.send_signal(signal.SIGSTOP)
        connection = call.connect()
        body, headers = json.dumps(request_of(X[:1], "x")), {"Content-Type": "application/json"}
        connection.request("POST", "/v2/models/tiny_label/infer", body, headers)
        time.sleep(0.5)
        started = time.monotonic()
        process.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.process.poll() is None
        assert process.end(signal.SIGTERM) == 0
        # Much sooner than the server's silence counts as its end.
        assert time.monotonic() - started < 20
        assert "Traceback" not in process.log()


def test_silent_server_is_not_ready(tmp_path: Path, tiny_label: Path) -> None:
    with (
        serving(tmp_path / "state", tiny_label) as server,
        gateway(tmp_path / "gate", server.address, *server.pin, "--timeout", 1) as process,
    ):
        call = Caller(process.document["url"])
        assert call.get("/v2/health/ready").status == 200
        server.process.send_signal(signal.SIGSTOP)
        wait_for(call, "/v2/health/ready", 503)
        answer = call.infer("tiny_label", request_of(X[:1], "x"))
        assert answer.status == 502
        server.process.send_signal(signal.SIGCONT)
        wait_for(call, "/v2/health/ready", 200)
        asked(call)
