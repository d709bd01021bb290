"""What is told of a server: counts and log of the same connections, health, and nothing that is secret."""

from __future__ import annotations

import base64
import json
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from helpers.callers import Caller
from helpers.models import tiny_samples
from helpers.processes import HUNG, Serving, lanner, serving
from helpers.scraping import Scraped
from lanner.heap import live_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

WATCHED = ("--metrics", "127.0.0.1:0", "--log-format", "json")


def logged(server: Serving, event: str, count: int) -> list[dict[str, Any]]:
    """The first so many entries of the log for an event, once they are there."""
    deadline = time.monotonic() + HUNG
    while True:
        entries = [json.loads(line) for line in server.log().splitlines(keepends=True) if line.endswith("\n")]
        found = [entry for entry in entries if entry["event"] == event]
        if len(found) >= count:
            return found[:count]
        assert time.monotonic() < deadline, entries
        time.sleep(0.1)


def test_log_and_counts_tell_of_the_same_connections(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "state", tiny_label, *WATCHED) as server:
        assert lanner("predict", server.address, samples_file, *server.pin).code == 0
        assert lanner("predict", server.address, samples_file, "--insecure-plaintext").code == 5
        assert lanner("predict", server.address, samples_file, *server.pin, "--model", "first").code == 4
        entries = logged(server, "session_ended", 4)
        scraped = Scraped.of_server(server.document["metrics"])
    # In the order of their begins: who is refused asks for the models' names over a connection of its own.
    assert sorted(entry["session"] for entry in entries) == [1, 2, 3, 4]
    assert [entry["ending"] for entry in entries] == ["done", "no_connection", "refused", "listed"]
    assert [entry["level"] for entry in entries] == ["info", "warning", "warning", "info"]
    done, *others = entries
    assert (done["model"], done["mode"], done["predictions"]) == ("tiny_label", "auto", 3)
    assert "reason" not in done
    assert others[1]["reason"] == 'there is no model "first"'
    assert [entry.get("cause") for entry in entries] == [None, "tls", "model", None]
    for entry in entries:
        counted = scraped.total("lanner_connections_total", ending=entry["ending"], model=entry.get("model", ""))
        assert counted == 1, entry
    labels = {"model": "tiny_label", "mode": "auto"}
    assert scraped.total("lanner_sent_bytes_total", **labels) == done["sent_bytes"] > 0
    assert scraped.total("lanner_received_bytes_total", **labels) == done["received_bytes"] > 0
    assert scraped.total("lanner_session_seconds_sum", **labels) == pytest.approx(done["seconds"])
    assert scraped.total("lanner_session_seconds_count") == 1
    assert scraped.total("lanner_predictions_total", **labels) == 3
    assert scraped.total("lanner_connections_total", ending="refused", cause="model") == 1
    assert scraped.total("lanner_step_runs_total", phase="setup", step="setup", **labels) == 1
    assert scraped.total("lanner_connections_omitted_total") == 0
    assert scraped.total("lanner_build_info") == 1
    if live_bytes() is not None:
        assert scraped.total("lanner_allocated_bytes") > 1 << 20
    for phase in ("offline", "online"):
        assert scraped.total("lanner_step_seconds_total", phase=phase, **labels) > 0
        assert scraped.total("lanner_step_runs_total", phase=phase, **labels) >= 3
        assert scraped.total("lanner_step_received_bytes_total", phase=phase, **labels) > 0


def test_nothing_that_is_told_is_secret(tmp_path: Path, tiny_label: Path) -> None:
    sample = tiny_samples(1, seed=23)
    np.save(tmp_path / "x.npy", sample)
    with serving(tmp_path / "state", tiny_label, *WATCHED) as server:
        result = lanner("predict", server.address, tmp_path / "x.npy", *server.pin)
        assert result.code == 0
        logged(server, "session_ended", 1)
        metrics = Caller(f"http://{server.document['metrics']}").get("/metrics").body.decode()
        keys = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
        assert server.end(signal.SIGTERM) == 0
        log = server.log()
    secrets = [f"{value:.6f}"[2:] for value in sample.ravel()]
    secrets += [result.document["predictions"][0]["class_name"], "ant", "bee", "cat", "dog"]
    secrets += [line for key in keys for line in key.decode("latin-1").splitlines() if len(line) > 8]
    secrets += [base64.b64encode(key).decode()[:40] for key in keys]
    assert keys
    for told in (log, metrics):
        words = set(told.replace('"', " ").replace("=", " ").split())
        assert [secret for secret in secrets if secret in words or (len(secret) > 3 and secret in told)] == []
    # Who the clients are is for the log alone.
    assert "peer" in json.loads(log.splitlines()[1])
    for entry in map(json.loads, log.splitlines()):
        assert entry.get("peer", "nobody") not in metrics
        assert not set(entry) - {
            *("time", "level", "event", "address", "models", "message"),
            *("session", "peer", "model", "mode", "predictions", "seconds", "sent_bytes", "received_bytes", "ending"),
        }


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; fail if it never does."""
    deadline = time.monotonic() + HUNG
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def status(address: str, path: str) -> int:
    """The HTTP status of a path."""
    return Caller(f"http://{address}").get(path).status


def test_server_that_stops_is_alive_and_not_ready(tmp_path: Path, tiny_label: Path) -> None:
    with serving(tmp_path / "state", tiny_label, *WATCHED, "--insecure-plaintext") as server:
        metrics = server.document["metrics"]
        assert (status(metrics, "/healthz"), status(metrics, "/readyz"), status(metrics, "/")) == (200, 200, 404)
        host, port = server.address.rsplit(":", 1)
        # A client in the middle of what it says has a moment to finish.
        with socket.create_connection((host, int(port))):
            wait_until(lambda: Scraped.of_server(metrics).total("lanner_sessions_under_way") == 1)
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: status(metrics, "/readyz") == 503)
            assert status(metrics, "/healthz") == 200
            assert server.process.wait(HUNG) == 0
        assert logged(server, "stopping", 1)
        assert logged(server, "stopped", 1)
        assert logged(server, "session_ended", 1)[0]["ending"] == "stopped"


def test_metrics_in_both_formats(tmp_path: Path, tiny_label: Path) -> None:
    with serving(tmp_path / "state", tiny_label, *WATCHED) as server:
        for accepted, kind, end in (
            ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", "# EOF\n"),
            ("text/plain", "text/plain", "\n"),
        ):
            answer = Caller(f"http://{server.document['metrics']}").get("/metrics", Accept=accepted)
            assert answer.headers["content-type"].startswith(kind)
            assert answer.body.decode().endswith(end)


def test_address_that_is_taken_is_told_before_clients_are_let_in(tmp_path: Path, tiny_label: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ("--listen", "127.0.0.1:0", "--state-dir", tmp_path / "state", "--metrics", address)
        result = lanner("serve", tiny_label, *options)
    assert (result.code, result.document["error"]["where"]) == (5, address)
    assert "choose another --metrics address" in result.errors
