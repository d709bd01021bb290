"""Material that is made ahead: kept over restarts of both sides, used once, listed, revoked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner as library
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import HUNG, Finished, Serving, lanner, serving
from helpers.scraping import Scraped


@pytest.fixture(params=["cheetah", "gazelle", "tabula"])
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model in a mode."""
    path = tmp_path / "model.lanner"
    library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode=request.param).save(path)
    return path


def prepare(server: Serving, count: int, *options: object) -> Finished:
    return lanner("prepare", server.address, "--count", count, *server.pin, *options)


def predict(server: Serving, samples: Path, *options: object) -> list[dict[str, Any]]:
    result = lanner("predict", server.address, samples, *server.pin, *options)
    assert result.code == 0, result.errors
    predictions: list[dict[str, Any]] = result.document["predictions"]
    return predictions


def bytes_of(prediction: dict[str, Any], phase: str) -> int:
    cost = prediction["phases"][phase]
    return int(cost["bytes_sent"] + cost["bytes_received"])


def of_stock(predictions: list[dict[str, Any]]) -> list[bool]:
    """Of each prediction, whether it took what was kept."""
    return [bytes_of(prediction, "offline") == 0 for prediction in predictions]


def test_what_is_prepared_serves_once_over_restarts(compiled: Path, tmp_path: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", compiled) as server:
        made = prepare(server, 2)
        assert made.code == 0, made.errors
        assert (made.document["prepared"], made.document["stock"]) == (2, 2)
        assert made.document["phases"]["offline"]["bytes_sent"] > 0
        server.end(signal.SIGKILL)
    labels = np.load(samples_file)["y"].tolist()
    with serving(tmp_path / "server", compiled) as server:
        predictions = predict(server, samples_file)
        assert [prediction["label"] for prediction in predictions] == labels
        assert of_stock(predictions) == [True, True, False]
        assert bytes_of(predictions[0], "setup") == 0
        again = predict(server, samples_file, "--refill", 1)
        assert of_stock(again) == [False] * 3
        assert of_stock(predict(server, samples_file)) == [True, False, False]


def test_pairings_are_listed_and_revoked_on_either_side(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    sides = {"client": [], "server": ["--state-dir", tmp_path / "server"]}
    with serving(tmp_path / "server", tiny_label) as server:
        for revoking in sides.values():
            prepare(server, 2)
            for party, where in sides.items():
                entry = lanner("pairings", *where).document["pairings"][0]
                assert (entry["party"], entry["model"], entry["predictions"]) == (party, "tiny_label", 2)
            revoked = lanner("pairings", "revoke", entry["id"][:8], *revoking)
            assert revoked.document == {"revoked": entry["id"]}
            assert lanner("pairings", "revoke", entry["id"], *revoking).code == 2
            assert of_stock(predict(server, samples_file)) == [False] * 3
    assert lanner("pairings", "revoke").code == 2


def test_a_server_without_room_says_so_and_serves(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", tiny_label, "--max-stock", 0) as server:
        refused = prepare(server, 1)
        assert refused.code == 4
        assert (refused.document["error"]["kind"], refused.document["predictions"]) == ("peer", [])
        assert "--max-stock" not in refused.document["error"]["fix"], "the disk may be full as well"
        assert of_stock(predict(server, samples_file)) == [False] * 3
        # The log names the cause, and does not blame the client for leaving. It is written every half second.
        deadline = time.monotonic() + 10
        while "the store is full" not in (log := server.log()):
            assert time.monotonic() < deadline, log
            time.sleep(0.05)
        assert prepare(server, 0).code == 2
    assert lanner("serve", tiny_label, "--max-stock", -1).code == 2


def test_a_server_that_dies_while_preparing_loses_that_one(
    tmp_path: Path, tiny_label: Path, samples_file: Path
) -> None:
    with serving(tmp_path / "server", tiny_label) as server:
        prepare(server, 1)
        command = [sys.executable, "-m", "lanner", "prepare", server.address, "--count", "100000", *server.pin]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client:
            while lanner("pairings").document["pairings"][0]["predictions"] < 5:
                assert client.poll() is None
            server.end(signal.SIGKILL)
            assert client.wait(HUNG) == 5
    kept = lanner("pairings").document["pairings"][0]["predictions"]
    with serving(tmp_path / "server", tiny_label) as server:
        assert all(of_stock(predict(server, samples_file)))
        assert lanner("pairings").document["pairings"][0]["predictions"] == kept - 3


def test_a_damaged_file_costs_one_prediction(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", tiny_label) as server:
        prepare(server, 3)
        for state, party in [(tmp_path / "server", "server"), (tmp_path / "lanner-state", "client")]:
            damaged = next((state / "material").glob(f"{party}-material-*"))
            damaged.write_bytes(damaged.read_bytes()[:-1])
        kept = of_stock(predict(server, samples_file))
        # Both may have had the same one damaged.
        assert 1 <= sum(kept) <= 2


def test_two_clients_of_one_directory_share_the_stock(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", tiny_label) as server:
        prepare(server, 4)
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: predict(server, samples_file), range(2)))
        assert sum(map(sum, map(of_stock, both))) == 4


def test_the_stock_is_told(tmp_path: Path, tiny_label: Path) -> None:
    with serving(tmp_path / "server", tiny_label, "--metrics", "127.0.0.1:0") as server:
        prepare(server, 2)
        scraped = Scraped.of_server(server.document["metrics"])
        assert (scraped.total("lanner_stock_predictions"), scraped.total("lanner_stock_pairings")) == (2, 1)
        assert scraped.total("lanner_stock_bytes") > 0
    assert lanner("doctor").document["stock"]["predictions_as_client"] == 2
    inspected = lanner("inspect", tiny_label, "--state-dir", tmp_path / "server").document["stock"]
    assert [(entry["party"], entry["predictions"]) for entry in inspected] == [("server", 2)]


def test_a_library_client_finds_what_the_command_prepared(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    x = tiny_samples(1)
    with serving(tmp_path / "server", tiny_label) as server:
        prepared = lanner("prepare", server.address, *server.pin, "--count", 2)
        assert prepared.code == 0, prepared.errors
        trust = {"pin": server.document["fingerprint"]}
        with library.Client(server.address, **trust) as client:
            assert client.stock == 2
            phases = client.predict(x).phases
            assert (phases["setup"].bytes, phases["offline"].bytes) == (0, 0)
            client.keep(1)
        # Each piece is used once, by whichever comes.
        assert of_stock(predict(server, samples_file)) == [True, True, False]
        with library.Client(server.address, **trust) as client:
            assert client.stock == 0
            assert client.predict(x).phases["offline"].bytes > 0
        with library.Client(server.address, **trust, state_dir=tmp_path / "other") as client:
            assert client.stock == 0


def test_a_library_client_keeps_where_it_is_told(tmp_path: Path, tiny_label: Path) -> None:
    model, x = library.load(tiny_label), tiny_samples(1)
    with library.Server(model, state_dir=tmp_path / "server") as server:
        with library.Client(server.address, pin=server.fingerprint) as client:
            client.predict(x)
            assert client.stock == 0
        assert not (tmp_path / "lanner-state").exists()
        with library.Client(server.address, pin=server.fingerprint, state_dir=tmp_path / "client") as client:
            assert client.keep(2)["offline"].bytes_sent > 0
            assert client.stock == 2
            assert client.predict(x).phases["offline"].bytes == 0
        assert server.kept()["predictions"] == 1


def test_the_state_directory_is_not_made_to_predict(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "server", tiny_label) as server:
        predict(server, samples_file)
    assert not (tmp_path / "lanner-state").exists()
    assert json.dumps(lanner("pairings").document) == '{"pairings": []}'
