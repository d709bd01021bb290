"""A thousand connections never speak, and a thousand send half a greeting, while clients predict."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from endurance.parties import Event, Served, failures, made, predicting, served
from endurance.processes import Usage, await_that, usage
from endurance.trial import Trial
from helpers.processes import Serving, serving

#: Connections of each kind.
CONNECTIONS = 1000

#: What each kind sends: nothing, and the beginning of a TLS greeting that says 512 bytes follow.
KINDS = {"never speak": b"", "say half a greeting": bytes.fromhex("1603010200010001fc0303")}

#: Seconds that a server gives a greeting, and within which it must have closed a connection without one.
GREETING, CLOSED = 10.0, 20.0

#: Bytes that the server may hold afterwards beyond what it held before.
HELD = 16 << 20

#: Connections that come first, beside a client, and are not measured: what threads hold for themselves they hold once.
FIRST = 100

#: Seconds after which somebody new must have been served, who asks again and again.
NEWCOMER = 30.0


def run(trial: Trial) -> None:
    """Open them all at once, twice."""
    network, count = served(trial.folder, "cheetah"), trial.scaled(CONNECTIONS, 100)
    with serving(trial.folder / "state", network.model) as server:
        _silence(Trial(trial.folder), server, network, "come first", b"", FIRST)
        for kind, greeting in KINDS.items():
            _silence(trial, server, network, kind, greeting, count)


def _silence(trial: Trial, server: Serving, network: Served, kind: str, greeting: bytes, count: int) -> None:
    before, most = usage(server.process.pid), [usage(server.process.pid)]
    client = {"pin": server.document["fingerprint"]}
    with predicting(server.address, network.samples, client, count=1 << 30) as established:
        established.until("predicted")
        silent = _connect(server, greeting, count)
        start = time.monotonic()
        new: list[float] = []
        arriving = threading.Thread(target=lambda: new.append(_newcomer(server, network)))
        arriving.start()
        open_after = _until_closed(silent, lambda: most.append(usage(server.process.pid)))
        closed = time.monotonic() - start
        arriving.join()
        established.process.terminate()
        said = established.finish()
    seconds = await_that(lambda: usage(server.process.pid).descriptors <= before.descriptors, CLOSED)
    after = usage(server.process.pid)
    trial.counts |= {f"connections that {kind}": count, f"predictions beside those that {kind}": made(said)}
    trial.counts[f"most descriptors with those that {kind}"] = max(each.descriptors for each in most)
    trial.counts[f"most threads with those that {kind}"] = max(each.threads for each in most)
    trial.equal(f"Connections that {kind} and that the server does not close", open_after, 0)
    trial.most(f"Time until all that {kind} are closed", closed, CLOSED, "s")
    trial.most(f"Time until somebody new is served beside those that {kind}", new[0], NEWCOMER, "s")
    _established(trial, kind, network, said, seconds)
    grown = max(after.resident - before.resident, 0)
    trial.most(f"Memory that the server still holds after those that {kind}", grown / 2**20, HELD / 2**20, "MiB")
    trial.most(f"Threads more than before, after those that {kind}", _more_threads(before, after), 0, "threads")


def _established(trial: Trial, kind: str, network: Served, said: list[Event], seconds: float) -> None:
    trial.check(f"A session goes on beside those that {kind}", made(said), "more than 10 predictions", made(said) > 10)
    trial.none(f"Its errors beside those that {kind}", failures(said))
    trial.none(f"Its wrong labels beside those that {kind}", network.wrong(said))
    trial.most(f"The server's descriptors are those of before, after those that {kind}", seconds, CLOSED, "s")


def _more_threads(before: Usage, after: Usage) -> int:
    return max(after.threads - before.threads, 0)


def _connect(server: Serving, greeting: bytes, count: int) -> list[socket.socket]:
    """Open connections, and send the same on each."""
    host, port = server.address.rsplit(":", 1)
    opened = []
    for _ in range(count):
        connection = socket.create_connection((host, int(port)), timeout=10)
        opened.append(connection)
        with suppress(OSError):
            connection.sendall(greeting)
    return opened


def _until_closed(connections: list[socket.socket], look: Callable[[], object]) -> int:
    """Wait until the server closed all connections; how many it did not close in time."""
    deadline = time.monotonic() + 2 * CLOSED
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for connection in connections:
            stack.enter_context(connection)
            selector.register(connection, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < deadline:
            look()
            for key, _ in selector.select(0.1):
                if _has_ended(key.fileobj):
                    selector.unregister(key.fileobj)
        return len(selector.get_map() or ())


def _has_ended(connection: object) -> bool:
    """Whether the other side closed a connection that there is something to read of."""
    assert isinstance(connection, socket.socket)
    try:
        return not connection.recv(4096)
    except OSError:
        return True


def _newcomer(server: Serving, network: Served) -> float:
    """Seconds until a client that asks again and again was served."""
    start = time.monotonic()
    client = {"pin": server.document["fingerprint"], "timeout": NEWCOMER}
    while time.monotonic() - start < 2 * NEWCOMER:
        with predicting(server.address, network.samples, client, count=1) as one:
            if made(one.finish()):
                break
    return time.monotonic() - start
