"""Processes that fork with an open client or server: a copy sends nothing, the original goes on, a new client works."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.documents import blocks
from helpers.forking import (
    HUNG,
    MODEL,
    Recorder,
    X,
    child_of_a_server,
    children_with_clients_of_their_own,
    children_with_kept_material,
    children_with_the_parents_client,
    stepped,
)
from helpers.models import tiny_classifier, tiny_samples
from lanner import Client, MisuseError, Server


@contextmanager
def served(folder: Path, *, tls: bool, model: Path = MODEL) -> Iterator[tuple[Recorder, dict[str, Any], Server]]:
    """A server behind a relay that counts, and what a client needs to trust it."""
    with Server(model, state_dir=folder / "server", insecure_plaintext=not tls) as server:
        recorder = Recorder(server.address)
        trust = {"pin": server.fingerprint} if tls else {"insecure_plaintext": True}
        yield recorder, {"address": recorder.address, "timeout": 15, **trust}, server
        recorder.close()


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "plaintext"])
@pytest.mark.parametrize(("cores", "kept"), [(1, 0), (None, 0), (None, 2)], ids=["one core", "pool", "state"])
def test_children_send_nothing_with_their_parents_client(
    tmp_path: Path, tls: bool, cores: int | None, kept: int
) -> None:
    with served(tmp_path, tls=tls) as (recorder, trust, server):
        if kept:
            trust["state_dir"] = str(tmp_path / "client")
        with stepped(children_with_the_parents_client, trust=trust, cores=cores, kept=kept) as program:
            expected = program.next()
            before = recorder.settled()
            program.go_on()
            for heard in program.next():
                assert len(heard) == 8
                for sentence in heard:
                    assert "a copy that fork made; make a new client in each process" in sentence
                    assert "belongs to process" in sentence
            assert recorder.settled() == before, "nothing on the wire, and no end"
            assert server.stats()["under_way"] == 1
            program.go_on()
            told, stock = program.next()
            assert told == [expected[x] for x in (0, 1, 1, 0)]
            # Two were prepared in the session, and two that were kept come after them.
            assert stock == 0
            program.go_on()
        assert recorder.settled()[2] == 1
        assert server.stats()["failures"] == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_new_client_works_in_a_process_of_a_parent_that_has_one(tmp_path: Path, method: str) -> None:
    # A mode whose long loops wait for the pool of threads, which no fork has of its parent.
    model = tmp_path / "cheetah.lanner"
    lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah", output="logits").save(model)
    with (
        served(tmp_path, tls=True, model=model) as (recorder, trust, server),
        stepped(children_with_clients_of_their_own, trust=trust, method=method) as program,
    ):
        expected, told, own, again = program.next()
        assert told == expected * 2
        assert own == again == expected
        program.go_on()
        assert recorder.connections >= 4
        assert server.stats()["sessions"] >= 4


def test_kept_material_is_used_once_by_parent_and_children(tmp_path: Path) -> None:
    with served(tmp_path, tls=True) as (_, trust, server):
        others = {**trust, "state_dir": str(tmp_path / "other")}
        trust["state_dir"] = str(tmp_path / "client")
        with stepped(children_with_kept_material, trust=trust, others=others) as program:
            found = program.next()
            assert "was in use by the parent of this process when fork copied it" in found["held"]
            assert "docs/how-to/use-several-processes.md" in found["held"]
            assert found["own"] == [found["expected"]] * 2
            assert found["in_child"] == [3, found["expected"][0], 2]
            assert found["told"] == found["expected"]
            assert found["left"] == [3, 2, 0]
            program.go_on()
        assert server.kept()["predictions"] == 0


def test_a_child_of_a_server_serves_nobody_and_stops_nothing(tmp_path: Path) -> None:
    with stepped(child_of_a_server, state_dir=str(tmp_path / "state")) as program:
        found = program.next()
        assert len(found["heard"]) == 8
        for sentence in found["heard"][:6]:
            assert "this server belongs to process" in sentence
        for sentence in found["heard"][6:]:
            assert "this gateway belongs to process" in sentence
        assert found["own"] == found["told"]
        assert found["same"]
        assert found["failures"] == 0
        program.go_on()


def test_clients_and_servers_are_not_copied(tmp_path: Path) -> None:
    with served(tmp_path, tls=False) as (_, trust, server), Client(**trust) as client:
        for one in (client, server):
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(MisuseError, match="can neither be copied nor sent to another process; make a new"):
                    attempt(one)


def test_the_program_of_the_page_predicts_in_a_pool(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "use-several-processes.md"
    (program,) = [block.text for block in blocks(page) if block.title == "pool.py"]
    (tmp_path / "pool.py").write_text(program, encoding="utf-8")
    np.save(tmp_path / "x.npy", np.stack(X))
    with (
        Server(MODEL, state_dir=tmp_path / "server") as server,
        Client(server.address, pin=server.fingerprint) as client,
    ):
        command = [sys.executable, "pool.py", server.address, str(server.fingerprint), "x.npy"]
        printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=HUNG).stdout
        assert printed.strip() == str([client.predict(x).label for x in X])
