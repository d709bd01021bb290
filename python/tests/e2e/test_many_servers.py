"""Several servers behind one address: clients keep to theirs, and one that stops takes nothing from anybody."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.authority import make_authority
from helpers.balancing import coming_from, haproxy, listening, relay
from helpers.callers import Caller, request_of
from helpers.documents import free_address
from helpers.models import tiny_samples
from helpers.processes import HUNG, Serving, gateway, lanner, serving
from helpers.scraping import Scraped
from lanner.pairings import pairings

X = tiny_samples(6, seed=5)


def under_way(server: Serving) -> float:
    return Scraped.of_server(server.document["metrics"]).total("lanner_sessions_under_way")


def predictions(server: Serving) -> float:
    return Scraped.of_server(server.document["metrics"]).total("lanner_predictions_total")


@dataclass
class Replicas:
    """Servers of one model with one certificate, each with a state of its own."""

    servers: list[Serving]
    pin: str

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]


@contextmanager
def replicas(folder: Path, model: Path, count: int) -> Iterator[Replicas]:
    certificate, key = make_authority(folder / "ca").issue("server", "serverAuth")
    shown = ("--tls-cert", certificate, "--tls-key", key)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(folder / f"state{number}", model, *shown, "--metrics", free_address()))
            for number in range(count)
        ]
        (pin,) = {str(server.document["fingerprint"]) for server in servers}
        yield Replicas(servers, pin)


@dataclass
class Predicting:
    """A client on a thread, with an address of its own, which keeps material and predicts until it is told to end."""

    address: str
    pin: str
    state: Path
    pause: float
    ended: threading.Event = field(default_factory=threading.Event)
    labels: list[int | None] = field(default_factory=list)
    of_stock: list[bool] = field(default_factory=list)
    sessions: int = 0
    error: BaseException | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with library.Client(self.address, pin=self.pin, state_dir=self.state) as client:
                client.keep(2)
                while not self.ended.wait(self.pause):
                    made = client.predict(X[len(self.labels) % len(X)])
                    self.labels.append(made.label)
                    self.of_stock.append(made.phases["offline"].bytes == 0)
                    self.sessions = client.sessions
        except BaseException as error:  # noqa: BLE001 - the test tells it
            self.error = error

    def end(self) -> None:
        self.ended.set()
        self.thread.join(HUNG)


def await_that(condition: object, what: str) -> None:
    deadline = time.monotonic() + HUNG
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def check_that_nobody_notices(balancer: str, several: Replicas, model: Path, folder: Path, clients: int) -> None:
    """Clients predict through the balancer while one server stops: nobody has an error, and all end at the other."""
    expected = [int(label) for label in library.load(model).predict_fixed(X).argmax(1)]
    with ExitStack() as stack:
        asking = []
        for number in range(clients):
            own = stack.enter_context(listening(coming_from(f"127.0.0.{10 + number}", balancer)))
            asking.append(Predicting(own, several.pin, folder / f"client{number}", 0.05 * (number % 3)))
        for client in asking:
            client.start()
        await_that(lambda: all(client.error or len(client.labels) >= 3 for client in asking), "clients do not predict")
        assert [client.error for client in asking] == [None] * clients
        before = [under_way(server) for server in several.servers]
        assert sum(before) == clients
        assert all(before), "every server has clients"
        kept = [len(pairings(client.state)) for client in asking]
        assert kept == [1] * clients, "a client keeps to its server"
        stopped, other = several.servers
        assert stopped.end(signal.SIGTERM) == 0
        counts = [len(client.labels) for client in asking]
        await_that(
            lambda: all(
                client.error or len(client.labels) >= count + 3 for client, count in zip(asking, counts, strict=True)
            ),
            "clients do not go on",
        )
        assert [client.error for client in asking] == [None] * clients
        assert under_way(other) == clients
        moved = [client for client in asking if client.sessions == 2]
        assert len(moved) == before[0], "those of the server that stopped, and nobody else"
        for client in asking:
            client.end()
        assert [client.error for client in asking] == [None] * clients
        for client in asking:
            assert client.labels == [expected[index % len(X)] for index in range(len(client.labels))]
            # What was kept is used once, and no more.
            assert sum(client.of_stock) <= 2
        # Their pairings are of no use at the other server; new ones are made there.
        for client in moved:
            with library.Client(client.address, pin=several.pin, state_dir=client.state) as again:
                assert again.stock == 0
                again.keep(1)
                assert again.stock == 1
            assert len(pairings(client.state)) == 2


def test_server_that_stops_takes_nothing_from_anybody(tmp_path: Path, tiny_label: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    with replicas(tmp_path, tiny_label, 2) as several, relay(several.addresses) as balancer:
        check_that_nobody_notices(balancer, several, tiny_label, tmp_path, 4)


@pytest.mark.slow
def test_server_that_stops_behind_haproxy_takes_nothing_from_anybody(tmp_path: Path, tiny_label: Path) -> None:
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("there is no haproxy: only the relay of the tests was tried; apt-get install haproxy")
    with replicas(tmp_path, tiny_label, 2) as several:
        metrics = [str(server.document["metrics"]) for server in several.servers]
        with haproxy(program, tmp_path, several.addresses, metrics) as balancer:
            check_that_nobody_notices(balancer, several, tiny_label, tmp_path, 12)


def test_gateway_goes_on_with_another_server(tmp_path: Path, tiny_label: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    with (
        replicas(tmp_path, tiny_label, 2) as several,
        relay(several.addresses) as balancer,
        gateway(tmp_path / "gate", balancer, "--pin", several.pin) as gate,
    ):
        call = Caller(gate.document["url"])
        answers = []
        for _ in range(2):
            answers.append(call.infer("tiny_label", request_of(X[:1], "x")).document)
            serving_it = [server for server in several.servers if server.process.poll() is None and under_way(server)]
            assert len(serving_it) == 1
            if len(answers) == 1:
                assert serving_it[0].end(signal.SIGTERM) == 0
    assert [answer["parameters"]["new_session"] for answer in answers] == [False, True]
    assert answers[0]["outputs"] == answers[1]["outputs"]


@pytest.mark.slow
def test_command_goes_on_with_another_server(tmp_path: Path, tiny_label: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    np.save(tmp_path / "many.npy", tiny_samples(300))
    with replicas(tmp_path, tiny_label, 2) as several, relay(several.addresses) as balancer:
        done: list[object] = []
        asking = threading.Thread(
            target=lambda: done.append(lanner("predict", balancer, tmp_path / "many.npy", "--pin", several.pin))
        )
        asking.start()
        await_that(lambda: any(predictions(server) >= 20 for server in several.servers), "nobody predicts")
        first = next(server for server in several.servers if predictions(server) >= 20)
        assert first.end(signal.SIGTERM) == 0
        asking.join(HUNG)
    (result,) = done
    assert result.code == 0, result.errors  # type: ignore[attr-defined]
    assert len(result.document["predictions"]) == 300  # type: ignore[attr-defined]


def test_state_below_a_volume_that_its_group_may_use(tmp_path: Path, tiny_label: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o2775)
    # As Kubernetes mounts it; a folder in it is made for the owner alone.
    with serving(volume / "state", tiny_label) as server:
        assert lanner("pairings", "--state-dir", volume / "state").code == 0
        assert server.end(signal.SIGTERM) == 0
    assert (volume / "state").stat().st_mode & 0o777 == 0o700
