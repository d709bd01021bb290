"""Servers of two wire versions beside each other: each has its clients, and the older one leaves without a trace.

A build speaks one version. The older one is this build behind relays that change the number in the first message, at
the server and at its clients, so that the numbers between them are those of two versions and all else is real.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.balancing import client_before, server_before
from helpers.models import tiny_samples
from helpers.processes import HUNG, Serving, lanner, serving
from helpers.scraping import Scraped
from lanner.cli.build import build_facts

X = tiny_samples(4, seed=5)
OURS = build_facts()["wire_version"]


def refused(address: str) -> str:
    """What a client is told that is of another version than the server."""
    with pytest.raises(library.PeerError) as caught:
        library.Client(address, insecure_plaintext=True)
    assert caught.value.fix == "use the same release on both sides"
    assert "\n" not in str(caught.value)
    return caught.value.what


def await_refusal(server: Serving) -> None:
    """Wait until a server counts that it refused a client for its version."""
    deadline = time.monotonic() + HUNG
    refusals = {"ending": "refused", "cause": "version"}
    while Scraped.of_server(server.document["metrics"]).total("lanner_connections_total", **refusals) != 1:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_each_version_serves_its_clients_and_one_leaves(tmp_path: Path, tiny_label: Path) -> None:
    expected = [int(label) for label in library.load(tiny_label).predict_fixed(X).argmax(1)]
    plain = ("--insecure-plaintext", "--metrics", "127.0.0.1:0")
    with (
        serving(tmp_path / "newer", tiny_label, *plain) as newer,
        serving(tmp_path / "older", tiny_label, *plain) as behind,
        server_before(behind.address) as older,
        client_before(older) as from_before,
        client_before(newer.address) as strayed,
        library.Client(newer.address, insecure_plaintext=True) as client,
        library.Client(from_before, insecure_plaintext=True) as client_of_before,
    ):
        for each in (client, client_of_before):
            assert [prediction.label for prediction in each.predict_batch(X)] == expected
        # A client of this version at the older release, and one of the version before at the newer one.
        assert re.findall(r"\d+", refused(older)) == [str(OURS), str(OURS - 1)]
        # The relay adds one to what such a client hears, as it takes one from what it says.
        assert re.findall(r"\d+", refused(strayed)) == [str(OURS), str(OURS + 1)]
        await_refusal(newer)
        assert behind.end(signal.SIGTERM) == 0
        assert [prediction.label for prediction in client.predict_batch(X)] == expected
        assert client.sessions == 1
        with pytest.raises(library.TransportError) as left:
            client_of_before.predict(X[0])
        assert "\n" not in str(left.value)


def test_command_of_the_other_version_says_one_sentence(tmp_path: Path, tiny_label: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with (
        serving(tmp_path / "state", tiny_label, "--insecure-plaintext") as server,
        server_before(server.address) as older,
        client_before(older) as from_before,
    ):
        assert lanner("predict", from_before, tmp_path / "x.npy", "--insecure-plaintext").code == 0
        result = lanner("predict", older, tmp_path / "x.npy", "--insecure-plaintext")
    assert result.code == 4
    assert f"wire version {OURS}" in result.document["error"]["what"]
    assert str(OURS - 1) in result.document["error"]["what"]
    assert len(result.errors.strip().splitlines()) == 1
