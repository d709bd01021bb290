"""Workers and nodes of a cluster that are lost: every input is answered once, and no material is used twice."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endurance.private_keys import _forms, _secrets
from endurance.records import History
from endurance.relay import relay
from endurance.wire import names_used
from numpy.typing import NDArray

import lanner as library
import lanner.ray
from helpers.clusters import holders, nodes
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import HUNG, Serving, serving
from lanner.tracing import Trace, Traces

pytestmark = pytest.mark.slow

X = tiny_samples(160, seed=9)

#: Rows of a piece: what a loss costs.
SIZE = 8


@dataclass
class Run:
    """A run of workers over a slow dataset, which leaves them time to keep material."""

    server: Serving
    address: str
    base: Path
    labels: list[int]
    made: list[library.Prediction] = field(default_factory=list)

    def predict(self, heard: Callable[[int], None], **options: object) -> None:
        """Predict all, and tell after each how many there are."""
        import ray.data

        def slowly(batch: dict[str, Any]) -> dict[str, Any]:
            time.sleep(0.3)
            return batch

        dataset = ray.data.from_numpy(np.array_split(X, 20)).map_batches(slowly, num_cpus=0.1)
        given: dict[str, Any] = {
            "column": "data",
            "batch_size": SIZE,
            "state_dir": str(self.base),
            "insecure_plaintext": True,
        }
        for prediction in lanner.ray.predict_each(dataset, self.address, **{**given, **options}):
            self.made.append(prediction)
            heard(len(self.made))

    def check(self) -> None:
        """Every input has its answer once, which is the reference's, in the order of the inputs."""
        assert [prediction.index for prediction in self.made] == list(range(len(X)))
        assert [prediction.label for prediction in self.made] == self.labels


@contextmanager
def run(folder: Path, *options: object) -> Iterator[tuple[Run, list[bytearray]]]:
    """A server without TLS, behind a relay that remembers what clients ask for."""
    model = library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode="cheetah")
    model.save(folder / "tiny.lanner")
    labels = [int(label) for label in model.predict_fixed(X).argmax(1)]
    with (
        serving(folder / "server", folder / "tiny.lanner", "--insecure-plaintext", *options) as server,
        relay(server.address) as link,
    ):
        yield Run(server, link.address, folder / "workers", labels), link.streams


def check_used_once(folder: Path, streams: list[bytearray], least: int) -> None:
    """Kept material was used, none of it twice, and whoever used it knows."""
    used = names_used(streams)
    assert len(used) >= least
    assert len(set(used)) == len(used)
    known = set[str]()
    for base in (folder / "workers").glob("worker-*"):
        history = History(base, "client")
        history.look()
        known |= history.used()
    assert set(used) <= known


def test_a_node_that_dies_costs_what_it_had_not_answered(tmp_path: Path) -> None:
    with nodes(3) as cluster, run(tmp_path) as (running, streams):

        def heard(count: int) -> None:
            if count >= 40 and len(cluster.others) == 3:
                cluster.kill()

        running.predict(heard, workers=3, cpus=0.9)
        assert len(cluster.others) == 2
        running.check()
        check_used_once(tmp_path, streams, 1)


def test_a_node_that_dies_while_bits_are_searched_for_changes_nothing() -> None:
    here = library.compile(tiny_classifier(), X, mode="cheetah", output="logits", name="tiny")
    with nodes(3) as cluster:

        class Killing(library.ray.Tracer):
            """Loses a node while the traces of a network are made, the second's."""

            def over(self, samples: NDArray[np.float32]) -> Traces:
                traces, asked = super().over(samples), iter(range(1000))

                def killing(manifest: str, weights: bytes, numbers: list[int]) -> list[Trace]:
                    if next(asked) == 1:
                        threading.Timer(0.005, cluster.kill).start()
                    return traces(manifest, weights, numbers)

                return killing

        there = library.compile(tiny_classifier(), X, mode="cheetah", output="logits", name="tiny", tracer=Killing())
        assert len(cluster.others) == 2
    assert there.report() == here.report()


def test_a_worker_that_is_killed_is_replaced_and_its_material_found_again(tmp_path: Path) -> None:
    with nodes(1, cpus=2) as cluster, run(tmp_path) as (running, streams):
        killed: list[int] = []

        def heard(count: int) -> None:
            # Who came in a lost one's place holds its directory a moment later.
            there = [pid for pid in holders(running.base).values() if pid not in killed]
            if count >= 40 * (len(killed) + 1) and len(killed) < 2 and there:
                killed.append(there[0])
                os.kill(killed[-1], signal.SIGKILL)

        running.predict(heard, workers=2)
        assert len(set(killed)) == 2
        running.check()
        check_used_once(tmp_path, streams, 1)
        assert len(list(running.base.glob("worker-*"))) == 2
        secrets = [secret for place in running.base.glob("worker-*") for secret in _secrets(place)]
        assert secrets
        forms = [form.encode() for secret in secrets for form in _forms(secret)] + [
            secret[len(secret) // 4 :][:16] for secret in secrets
        ]
        told = [path for path in cluster.folder.rglob("*") if path.is_file()]
        assert told
        assert not [path for path in told if any(form in path.read_bytes() for form in forms)]


def test_workers_wait_for_a_server_that_has_no_room_for_all(tmp_path: Path) -> None:
    with nodes(1, cpus=2), run(tmp_path, "--max-sessions", 1) as (running, _):
        running.predict(lambda _: None, workers=3)
        running.check()
        with (
            library.Client(running.address, insecure_plaintext=True),
            pytest.raises(library.BusyError),
        ):
            # Long enough for a worker to begin, on a machine that is busy, too.
            running.predict(lambda _: None, workers=1, patience=60.0)


def test_workers_come_back_to_a_server_that_starts_again(tmp_path: Path) -> None:
    with nodes(1, cpus=2), run(tmp_path) as (running, _):
        listen = ("--listen", running.server.address, "--insecure-plaintext")
        again: list[threading.Thread] = []
        ended = threading.Event()

        def restart() -> None:
            with serving(tmp_path / "server", tmp_path / "tiny.lanner", *listen):
                ended.wait(HUNG)

        def heard(count: int) -> None:
            if count >= 40 and not again:
                running.server.end(signal.SIGKILL)
                again.append(threading.Thread(target=restart))
                again[0].start()

        try:
            running.predict(heard, workers=2)
        finally:
            ended.set()
        running.check()
        assert again
