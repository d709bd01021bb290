"""What is told of a gateway: its metrics, and traces of its predictions from the caller's context on."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lanner as library
from helpers.callers import Caller, request_of
from helpers.collector import collecting
from helpers.models import tiny_samples
from helpers.processes import Serving, gateway, serving
from helpers.scraping import Scraped

X = tiny_samples(2, seed=5)
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=of-the-caller"}


@pytest.fixture(scope="module")
def server(tiny_label: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("server"), tiny_label) as process:
        yield process


def test_predictions_are_counted_by_phase(server: Serving, tmp_path: Path) -> None:
    with gateway(tmp_path / "gate", server.address, *server.pin) as process:
        call = Caller(process.document["url"])
        answer = call.infer("tiny_label", request_of(X, "x"))
        assert answer.status == 200
        assert call.infer("tiny_label", {"inputs": []}).status == 400
        assert call.infer("tiny_label-of-somebody", {}).status == 404
        scraped = Scraped.of_text(call.get("/metrics").body.decode())
    labels, told = {"model": "tiny_label", "mode": "auto"}, answer.document["parameters"]
    assert scraped.total("lanner_gateway_predictions_total", **labels) == 2
    for phase in ("offline", "online"):
        for direction in ("sent", "received"):
            counted = scraped.total(f"lanner_gateway_{direction}_bytes_total", phase=phase, **labels)
            assert counted == told[f"{phase}_bytes_{direction}"] > 0
        seconds = scraped.total("lanner_gateway_phase_seconds_sum", phase=phase, **labels)
        assert seconds == pytest.approx(told[f"{phase}_seconds"])
    # The session was there before the request.
    assert scraped.total("lanner_gateway_phase_seconds_count", phase="setup") == 0
    route = "/v2/models/{name}/infer"
    requests = "lanner_gateway_request_seconds_count"
    assert scraped.total(requests, route=route, model="tiny_label", code="200") == 1
    assert scraped.total(requests, route=route, model="", code="400") == 1
    assert scraped.total(requests, route=route, model="", code="404") == 1
    assert scraped.total("lanner_gateway_requests_under_way") == 0
    assert not any("somebody" in value for sample in scraped.samples for value in sample.labels.values())


def test_metrics_are_guarded_as_every_route(server: Serving, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with gateway(tmp_path / "gate", server.address, *server.pin, "--token-file", token, "--name", "gate") as process:
        call = Caller(process.document["url"])
        bearer = {"Authorization": f"Bearer {token.read_text().strip()}"}
        assert call.get("/metrics").status == 401
        assert call.get("/metrics", Host="pages.example", **bearer).status == 421
        assert call.get("/metrics", Origin="http://pages.example", **bearer).status == 403
        answer = call.get("/metrics", Host="gate:8080", **bearer)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert Scraped.of_text(answer.body.decode()).total("lanner_gateway_request_seconds_count", code="401") == 1


def test_log_is_of_objects_without_secrets(server: Serving, tmp_path: Path) -> None:
    token = tmp_path / "token"
    options = ("--token-file", token, "--log-format", "json")
    with gateway(tmp_path / "gate", server.address, *server.pin, *options) as process:
        call = Caller(process.document["url"])
        bearer = {"Authorization": f"Bearer {token.read_text().strip()}"}
        answer = call.infer("tiny_label", request_of(X[:1], "x"), **bearer)
        assert call.infer("tiny_label", request_of(X[:1], "x")).status == 401
        assert process.end(signal.SIGTERM) == 0
        log = process.log()
    first, done, refused, *_ = map(json.loads, log.splitlines())
    assert (first["event"], first["url"]) == ("listening", process.document["url"])
    assert (done["event"], done["request"], done["status"], done["predictions"]) == ("request_answered", 1, 200, 1)
    told = answer.document["parameters"]
    assert done["sent_bytes"] == told["offline_bytes_sent"] + told["online_bytes_sent"]
    assert (refused["level"], refused["status"]) == ("warning", 401)
    assert [json.loads(line)["event"] for line in log.splitlines()][-1] == "stopped"
    assert token.read_text().strip() not in log
    assert answer.document["outputs"][1]["data"][0] not in log.replace("tiny_label", "")
    assert not any(f"{value:.12f}"[2:10] in log for value in X[0].ravel())


def test_prediction_is_traced_from_the_callers_context_on(
    tiny_label: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with (
            serving(tmp_path / "state", tiny_label) as server,
            gateway(tmp_path / "gate", server.address, *server.pin) as process,
        ):
            call = Caller(process.document["url"])
            assert call.infer("tiny_label", request_of(X, "x"), **CONTEXT).status == 200
            top = collector.await_span("lanner-gateway", "POST /v2/models/{name}/infer")
            online = collector.await_span("lanner-gateway", "online")
            layer = collector.await_span("lanner-gateway", "conv1")
            assert process.end(signal.SIGTERM) == 0
            session = collector.await_span("lanner-server", "session")
    assert (top.trace_id.hex(), top.parent_span_id.hex()) == (TRACE, PARENT)
    assert (online.parent_span_id, online.trace_id) == (top.span_id, top.trace_id)
    assert layer.trace_id == top.trace_id
    assert top.start_time_unix_nano <= online.start_time_unix_nano < online.end_time_unix_nano
    # What the caller's side traces is nothing that the model's owner hears of.
    assert (session.trace_id == top.trace_id, session.parent_span_id) == (False, b"")
    assert not any(b"127.0.0.1:" in body for body in collector.bodies)
    assert not any(name in body for body in collector.bodies for name in (b"label=", b"class_name", b"traceparent"))


@contextmanager
def overheard(address: str) -> Iterator[tuple[str, bytearray]]:
    """A way to a server, and what was said to the server on it."""
    heard = bytearray()
    host, port = address.rsplit(":", 1)
    listener = socket.create_server(("127.0.0.1", 0))

    def carry(source: socket.socket, target: socket.socket, *, kept: bool) -> None:
        while data := source.recv(1 << 16):
            if kept:
                heard.extend(data)
            target.sendall(data)
        target.close()

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((host, int(port)))
            for pair, kept in (((near, far), True), ((far, near), False)):
                threading.Thread(target=carry, args=pair, kwargs={"kept": kept}, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", heard
    finally:
        listener.close()


def test_callers_context_is_not_told_to_the_models_server(
    tiny_label: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = library.load(tiny_label)
    with (
        collecting() as collector,
        library.Server(model, insecure_plaintext=True) as server,
        overheard(server.address) as (address, heard),
    ):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with gateway(tmp_path / "gate", address, "--insecure-plaintext") as process:
            call = Caller(process.document["url"])
            assert call.infer("tiny_label", request_of(X, "x"), **CONTEXT).status == 200
            assert process.end(signal.SIGTERM) == 0
    assert collector.await_span("lanner-gateway", "online").trace_id.hex() == TRACE
    assert len(heard) > 1000
    for said in (TRACE, PARENT):
        assert said.encode() not in heard
        assert bytes.fromhex(said) not in heard
    assert b"of-the-caller" not in heard


def test_collector_that_is_gone_stops_nothing(server: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OTEL_TRACES_EXPORTER" not in os.environ
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with gateway(tmp_path / "gate", server.address, *server.pin, "--log-format", "json") as process:
        call = Caller(process.document["url"])
        assert call.infer("tiny_label", request_of(X, "x")).status == 200
        assert process.end(signal.SIGTERM) == 0
        entries = [json.loads(line) for line in process.log().splitlines()]
    assert entries[-1]["event"] == "stopped"
    assert any(entry["event"] == "note" and entry["message"].startswith("traces: ") for entry in entries)
