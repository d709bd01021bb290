"""A server in a process of its own, for the commands that are both parties on one machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, Self

from lanner.cli.arguments import NO_LIMITS_GIVEN, LimitKeywords, limit_arguments
from lanner.client import DEFAULT_TIMEOUT, Client, ClientKeywords
from lanner.errors import LannerError, TransportError
from lanner.network import LOOPBACK, Network
from lanner.server import DEFAULT_SESSIONS

#: Seconds that a server may take to load its models and listen, and to end when asked to.
START_SECONDS = 600
STOP_SECONDS = 10


class ServerProcess:
    """Runs ``lanner serve`` on a free port, of loopback unless it is told, over TLS, and ends it with the block.

    Args:
        models: Paths of ``.lanner`` files, or NAME=PATH.
        metrics: Whether the server tells its counters; see `metrics`.
        limits: What predictions may take, for the server and its clients.
        timeout: Seconds that either party waits for the other in the middle of a protocol.
        sessions: Sessions at once.
        host: Which of this machine's addresses it listens on.
        web: Whether it answers browsers, too, at a port of its own.
    """

    def __init__(
        self,
        models: Sequence[str],
        *,
        metrics: bool = False,
        limits: LimitKeywords = NO_LIMITS_GIVEN,
        timeout: float = DEFAULT_TIMEOUT,
        sessions: int = DEFAULT_SESSIONS,
        host: str = "127.0.0.1",
        web: bool = False,
    ) -> None:
        self._host = host
        self._web = ["--web", f"{host}:0"] if web else []
        self._models = list(models)
        self._limits = limits
        self._timeout = timeout
        self._sessions = sessions
        self._metrics = ["--metrics", "127.0.0.1:0"] if metrics else []
        self._document: dict[str, Any] = {}

    @contextmanager
    def connect(
        self,
        model: str | None = None,
        network: Network = LOOPBACK,
        *,
        state_dir: Path | None = None,
        keys: Path | None = None,
    ) -> Iterator[Client]:
        """A client of this process to the server over a network, pinned to its certificate.

        Args:
            model: As for `Client`, and so are the last two.
            network: What is between the two.
            state_dir: Where it keeps material; if left out, for as long as the server runs.
            keys: The file of its keys.
        """
        trusted = self.trusted(model, keys)
        state_dir = state_dir or Path(self._state.name) / "client"
        with network.between(self.address) as address, Client(address, state_dir=state_dir, **trusted) as client:
            yield client

    @property
    def address(self) -> str:
        """Where it listens, ``HOST:PORT``."""
        return str(self._document["address"])

    @property
    def web_address(self) -> str:
        """Where it answers browsers, ``HOST:PORT``."""
        return str(self._document["web"])

    def trusted(self, model: str | None = None, keys: Path | None = None) -> ClientKeywords:
        """Keywords of a client: the model, its keys, what makes it trust the server, and what a prediction may take."""
        return ClientKeywords(
            model=model,
            keys=keys,
            pin=self._document["fingerprint"],
            timeout=self._timeout,
            max_memory=self._limits["max_memory"],
            max_seconds=self._limits["max_seconds"],
        )

    @property
    def pid(self) -> int:
        """The number of the server's process."""
        return self._process.pid

    def metrics(self) -> str:
        """The server's counters, as ``GET /metrics`` answers them."""
        connection = HTTPConnection(self._document["metrics"], timeout=STOP_SECONDS)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        except OSError as error:
            raise TransportError(f"the server does not report its counters ({error})") from None
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self._state = tempfile.TemporaryDirectory(prefix="lanner-")
        self._log = (Path(self._state.name) / "serve.log").open("w+b")
        state = str(Path(self._state.name) / "state")
        command = [sys.executable, "-m", "lanner", "serve", *self._models]
        command += [
            "--listen",
            f"{self._host}:0",
            "--state-dir",
            state,
            "--json",
            "--until-stdin-closes",
            *self._metrics,
            *self._web,
        ]
        command += [*limit_arguments(self._limits), "--timeout", str(self._timeout)]
        command += ["--max-sessions", str(self._sessions)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        try:
            self._document = self._ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _ready(self) -> dict[str, Any]:
        """The document that the server prints when it is ready."""
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - it was opened as a pipe
        first: Queue[bytes] = Queue()
        # Windows has no wait for a pipe that ends after some time, so a thread reads.
        threading.Thread(target=lambda: first.put(stdout.readline()), daemon=True).start()
        try:
            document: dict[str, Any] = json.loads(first.get(timeout=START_SECONDS))
        except (Empty, ValueError):
            raise TransportError(
                f"the server process did not start ({self._last_words()})", fix="run `lanner serve` to see why"
            ) from None
        if "error" in document:
            raise _error_of(document["error"])
        return document

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"no output within {START_SECONDS} s"

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._log.close()
        self._state.cleanup()


def _error_of(document: dict[str, str]) -> LannerError:
    """The error that another process of lanner reported."""
    kinds = {kind.kind: kind for kind in _subclasses(LannerError)}
    kind = kinds.get(document["kind"], LannerError)
    return kind(document["what"], where=document["where"], fix=document["fix"])


def _subclasses(kind: type[LannerError]) -> list[type[LannerError]]:
    direct = kind.__subclasses__()
    return direct + [lower for subclass in direct for lower in _subclasses(subclass)]
