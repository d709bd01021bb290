"""A program that forks with an open client, as tests run it in a process of its own, and a relay that counts its bytes.

The program stops at places that its test knows: it prints a line of JSON there and waits for one on standard input.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from lanner import Client, LannerError, MisuseError, Server

#: Seconds within which whatever a test waits for has happened.
HUNG = 60.0

MODEL = Path(__file__).parents[1] / "data" / "versions" / "0.2.0" / "tiny.lanner"
X = [np.array(values, np.float32) for values in ([0.25, 0.5, 0.75, 1.0], [1.0, 0.0, 0.5, 0.25])]


class Recorder:
    """A relay in front of a server that keeps count of every byte from clients."""

    def __init__(self, target: str) -> None:
        self._target = _pair(target)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = 0
        self.sent = 0
        self.ended = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(self._target)
                self.connections += 1
                threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()

    def _carry(self, source: socket.socket, destination: socket.socket, is_upward: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_upward:
                    self.sent += len(data)
                destination.sendall(data)
        if is_upward:
            self.ended += 1
        with suppress(OSError):
            destination.shutdown(socket.SHUT_WR)

    def settled(self) -> tuple[int, int, int]:
        """Connections, bytes and ended connections, once nothing has come for a moment."""
        while True:
            before = (self.connections, self.sent, self.ended)
            time.sleep(0.15)
            if before == (self.connections, self.sent, self.ended):
                return before

    def close(self) -> None:
        self._socket.close()


def _pair(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)


class Stepped:
    """A run of this file that goes on where its test says so."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def next(self) -> Any:  # noqa: ANN401 - JSON
        """What the program says at its next place."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the program ended before its time"
        return json.loads(line)

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def stepped(scenario: Callable[..., None], **given: object) -> Iterator[Stepped]:
    """Run a scenario of this file, with what it is given, in a process that ends well."""
    command = [sys.executable, __file__, scenario.__name__, json.dumps(given)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        killer = threading.Timer(HUNG, process.kill)
        killer.start()
        try:
            yield Stepped(process)
            assert process.wait() == 0
        finally:
            killer.cancel()
            process.kill()


def place(document: object) -> None:
    """A place where the test may look at something."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


def scores(client: Client, x: int) -> list[int]:
    """What the client is told of a sample."""
    return list(client.predict(np.resize(X[x], client.manifest.input.shape)).integers or [])


def refusal(call: Callable[[], object]) -> str:
    """Why a call is refused; empty where it is not."""
    try:
        call()
    except MisuseError as error:
        return str(error)
    except LannerError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def in_a_child(work: Callable[[], Any], *, leaves: bool = True) -> Any:  # noqa: ANN401 - JSON
    """What work gives in a forked child, which ends as programs do (`leaves`) or at once."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            document = work()
        except BaseException as error:  # noqa: BLE001 - told to the parent whole
            document = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "w") as pipe:
            json.dump(document, pipe)
        if leaves:
            sys.exit(0)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return json.loads(told)


def try_everything(client: Client) -> list[str]:
    """What a child hears from an inherited client, whose native half is dropped in the end."""
    calls: list[Callable[[], object]] = [
        lambda: client.predict(X[0]),
        lambda: list(client.predict_each(np.stack(X))),
        lambda: client.prepare(1),
        lambda: client.keep(1),
        lambda: client.stock,
        client.progress,
        lambda: client.longest_sent,
        client.close,
    ]
    heard = [refusal(call) for call in calls]
    with client:
        pass
    client._native = None
    gc.collect()
    return heard


def children_with_the_parents_client(trust: dict[str, Any], cores: int | None, kept: int) -> None:
    """Two children use their parent's client, which goes on later."""
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    client = Client(**trust)
    expected = [scores(client, x) for x in range(2)]
    client.prepare(2)
    if kept:
        client.keep(kept)
    place(expected)
    heard = [
        in_a_child(lambda: try_everything(client), leaves=True),
        in_a_child(lambda: try_everything(client), leaves=False),
    ]
    place(heard)
    told = [scores(client, x) for x in (0, 1, 1, 0)]
    stock = client.stock
    client.close()
    place([told, stock])


def children_with_clients_of_their_own(trust: dict[str, Any], method: str) -> None:
    """A pool of processes that open clients, while their parent has one that has used its threads."""
    import multiprocessing

    client = Client(**trust)
    expected = [scores(client, x) for x in range(2)]
    with multiprocessing.get_context(method).Pool(2, _open, (trust,)) as pool:
        told = pool.map_async(_ask, [0, 1, 0, 1]).get(HUNG)
    own = in_a_child(lambda: _open_and_ask(trust))
    again = [scores(client, x) for x in range(2)]
    client.close()
    place([expected, told, own, again])


_client: Client | None = None


def _open(trust: dict[str, Any]) -> None:
    global _client
    _client = Client(**trust)


def _ask(x: int) -> list[int]:
    assert _client is not None
    return scores(_client, x)


def _open_and_ask(trust: dict[str, Any]) -> list[list[int]]:
    with Client(**trust) as client:
        return [scores(client, x) for x in range(2)]


def children_with_kept_material(trust: dict[str, Any], others: dict[str, Any]) -> None:
    """Material that a parent keeps, with its client open and closed."""
    with Client(**trust) as client:
        expected = [scores(client, x) for x in range(2)]
        client.keep(3)
        # The same directory, another one, and none.
        held = in_a_child(lambda: refusal(lambda: Client(**trust)))
        other = in_a_child(lambda: _open_and_ask(others))
        without = in_a_child(lambda: _open_and_ask({key: trust[key] for key in trust if key != "state_dir"}))
        left = [client.stock]
    in_child = in_a_child(lambda: _use_one(trust))
    with Client(**trust) as client:
        left.append(client.stock)
        told = [scores(client, x) for x in (0, 1)]
        left.append(client.stock)
    place(
        {"expected": expected, "held": held, "own": [other, without], "in_child": in_child, "told": told, "left": left}
    )


def _use_one(trust: dict[str, Any]) -> list[Any]:
    with Client(**trust) as client:
        return [client.stock, scores(client, 0), client.stock]


def child_of_a_server(state_dir: str) -> None:
    """A child of a process with a server and a gateway's model, which go on."""
    from lanner.gateway.sessions import ServedModel

    with Server(MODEL, state_dir=state_dir) as server:
        trust: dict[str, Any] = {"address": server.address, "pin": server.fingerprint, "timeout": 15}

        def connect(**_: object) -> Client:
            return Client(**trust)

        model = ServedModel(None, connect)

        def child() -> list[Any]:
            calls: list[Callable[[], object]] = [
                server.start,
                server.stop,
                server.stats,
                server.kept,
                server.journal,
                server.computed,
                lambda: model.predict(lambda: np.stack(X)),
                model.check_ready,
            ]
            heard = [refusal(call) for call in calls]
            with server_left(server):
                model.close()
            return [heard, server.address, _open_and_ask(trust)]

        heard, address, own = in_a_child(child)
        answered = model.predict(lambda: np.stack(X)).result(HUNG).predictions
        model.close()
        told = [list(prediction.integers or []) for prediction in answered]
        is_same = address == server.address
        running = server.stats()["failures"]
    place({"heard": heard, "own": own, "told": told, "same": is_same, "failures": running})


@contextmanager
def server_left(server: Server) -> Iterator[None]:
    """The end of a server's block, without its beginning."""
    yield
    server.__exit__(None, None, None)


if __name__ == "__main__":
    _, name, given = sys.argv
    globals()[name](**json.loads(given))
