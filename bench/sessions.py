"""What sessions cost a server: idle ones, set-ups, predictions, and what is kept on disk for clients.

All clients are in this process, so that what Linux tells of the server's is the server's alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.cases import Case
from lanner.benchmarks.machine import Usage, usage
from lanner.benchmarks.measure import check_results, served
from lanner.cli.counters import read_metric
from lanner.cli.memory import give_back_large_buffers
from lanner.cli.open_files import allow_open_files
from lanner.cli.process import ServerProcess
from lanner.cli.serve import LOG_SECONDS, QUIET_LOOKS
from lanner.errors import LannerError, MisuseError
from lanner.keys import keygen
from lanner.model import Model
from lanner.options import Protocols
from lanner.pairings import pairings
from lanner.prediction import Prediction

#: Idle sessions, where no other number is asked for.
SESSIONS = 50

#: Of these, those that predict, how often each, and pieces of material that one client keeps.
BUSY, PREDICTIONS, PIECES = 8, 4, 8

#: What is None where a protocol's material serves one session alone.
KEPT = ("pairing", "piece", "client_pairing", "client_piece", "resumed", "resumed_seconds")

#: Seconds that a server may take to end sessions, and after which it has given their memory back.
END_SECONDS, GIVEN_BACK_SECONDS = 30.0, (QUIET_LOOKS + 2) * LOG_SECONDS


@dataclass(frozen=True, slots=True)
class Costs:
    """What sessions cost a server. Bytes are of memory, seconds those of a core, unless something else is said.

    Attributes:
        name: The benchmark.
        mode: The model's mode.
        sessions: Idle sessions at once.
        loaded: Bytes with the model, after one client came and went.
        idle: Bytes that a session takes after its set-up.
        idle_descriptors: Open files that it takes.
        idle_threads: Threads that it takes.
        setup_seconds: Seconds for a session's begin, set-up included.
        setup_received: Bytes received for a set-up, on the wire.
        setup_sent: Bytes sent for it.
        prepared: Bytes for each prediction that is prepared in a session, beside the idle session.
        offline_seconds: Seconds for the offline phase of a prediction.
        online_seconds: Seconds for the online phase.
        offline_received: Bytes received for the offline phase of a prediction, on the wire.
        offline_sent: Bytes sent for it.
        online_received: Bytes received for the online phase.
        online_sent: Bytes sent for it.
        pairing: Bytes on the server's disk for a client with which something is kept; this and the five below are None
            where nothing can be kept.
        piece: Bytes there for each prediction that material is kept for.
        client_pairing: Bytes on the client's disk for the pairing.
        client_piece: Bytes there for each prediction.
        resumed: Bytes of an idle session of a pairing, which needs no set-up.
        resumed_seconds: Seconds for such a session with a prediction of kept material.
        uploaded: Bytes on the server's disk for a client's keys; None where sessions have none.
        uploaded_seconds: Seconds for a session's begin whose keys are there; None likewise.
    """

    name: str
    mode: str
    sessions: int
    loaded: int
    idle: float
    idle_descriptors: float
    idle_threads: float
    setup_seconds: float
    setup_received: int
    setup_sent: int
    prepared: float
    offline_seconds: float
    online_seconds: float
    offline_received: int
    offline_sent: int
    online_received: int
    online_sent: int
    pairing: float | None
    piece: float | None
    client_pairing: float | None
    client_piece: float | None
    resumed: float | None
    resumed_seconds: float | None
    uploaded: int | None
    uploaded_seconds: float | None

    def document(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return asdict(self)


def sessions(case: Case, protocols: Protocols, count: int) -> Costs:
    """Measure a network with so many idle sessions, `BUSY` or more; every result is checked outside the clock.

    Raises:
        LannerError: If a result is not what the fixed-point reference and the rounding allow, or the protocol fails.
        OSError: If the system does not tell what a process has.
    """
    give_back_large_buffers()
    allow_open_files(count)
    model, sample = case.build(protocols)
    with (
        tempfile.TemporaryDirectory(prefix="lanner-") as folder,
        served(case, model, metrics=True, sessions=count + 1) as server,
    ):
        asked = _Asked(case, model, sample, server, Path(folder))
        return Costs(
            name=case.name,
            mode=model.manifest.mode,
            sessions=count,
            **asked.first(),
            **asked.in_sessions(count),
            **asked.kept(),
            **asked.uploaded(),
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A server of which one quantity after the other is measured.

    Attributes:
        case: The benchmark.
        model: Its model.
        sample: A sample for it.
        server: The server.
        folder: Where clients keep what they keep.
    """

    case: Case
    model: Model
    sample: NDArray[np.float32]
    server: ServerProcess
    folder: Path

    def first(self) -> dict[str, Any]:
        """A client that comes and goes: what is on the wire, and what the server holds afterwards."""
        with self.server.connect() as client:
            phases = self._checked([client.predict(self.sample)])[0].phases
        transferred = {
            f"{name}_{direction}": count
            for name in ("setup", "offline", "online")
            for direction, count in (
                ("received", phases[name].bytes_sent),
                ("sent", phases[name].bytes_received),
            )
        }
        return {"loaded": self._alone().resident, **transferred}

    def in_sessions(self, count: int) -> dict[str, Any]:
        """Sessions that are opened one after the other and stay, of which some predict."""
        before = self._alone()
        with ExitStack() as stack:
            clients = [stack.enter_context(self.server.connect()) for _ in range(count)]
            idle = usage(self.server.pid)
            busy, made = clients[:BUSY], BUSY * PREDICTIONS
            for client in busy:
                client.prepare(PREDICTIONS)
            prepared = usage(self.server.pid)
            predictions: list[Prediction] = []
            batch = np.broadcast_to(self.sample, (PREDICTIONS, *self.sample.shape))
            for client in busy:
                predictions += client.predict_batch(batch)
            predicted = usage(self.server.pid)
        self._checked(predictions)
        return {
            "idle": (idle.resident - before.resident) / count,
            "idle_descriptors": (idle.descriptors - before.descriptors) / count,
            "idle_threads": (idle.threads - before.threads) / count,
            "setup_seconds": (idle.computed - before.computed) / count,
            "prepared": max(prepared.resident - idle.resident, 0) / made,
            "offline_seconds": (prepared.computed - idle.computed) / made,
            "online_seconds": (predicted.computed - prepared.computed) / made,
        }

    def kept(self) -> dict[str, Any]:
        """A client that keeps material, and predicts with it in later sessions."""
        state = self.folder / "state"
        try:
            found = self._stock(state)
        except MisuseError:
            return dict.fromkeys(KEPT)
        server_piece, client_piece = ((all_ - one) / (PIECES - 1) for one, all_ in zip(*found, strict=True))
        server_one, client_one = found[0]
        before = self._alone()
        with ExitStack() as stack:
            clients = [stack.enter_context(self.server.connect(state_dir=state)) for _ in range(PIECES)]
            idle = usage(self.server.pid)
            predictions = [client.predict(self.sample) for client in clients]
            predicted = usage(self.server.pid)
        self._checked(predictions)
        if any(prediction.phases["offline"].bytes for prediction in predictions):
            raise LannerError("a prediction was made without the material that was kept for it", where=self.case.name)
        figures = (
            server_one - server_piece,
            server_piece,
            client_one - client_piece,
            client_piece,
            max(idle.resident - before.resident, 0) / PIECES,
            (predicted.computed - before.computed) / PIECES,
        )
        return dict(zip(KEPT, figures, strict=True))

    def _stock(self, state: Path) -> list[tuple[float, float]]:
        """Bytes on the server's and on the client's disk, with one piece of material and with all."""
        found: list[tuple[float, float]] = []
        with self.server.connect(state_dir=state) as client:
            for more in (1, PIECES - 1):
                client.keep(more)
                (own,) = pairings(state)
                found.append((read_metric(self.server, "lanner_stock_bytes"), own["bytes"]))
        return found

    def uploaded(self) -> dict[str, Any]:
        """Sessions with keys that were uploaded before."""
        keys = self.folder / "own.keys"
        try:
            keygen(self.model, keys)
        except MisuseError:
            return {"uploaded": None, "uploaded_seconds": None}
        with self.server.connect(keys=keys):
            size = read_metric(self.server, "lanner_uploaded_keys_bytes")
        before = self._alone()
        with ExitStack() as stack:
            for _ in range(BUSY):
                stack.enter_context(self.server.connect(keys=keys))
            after = usage(self.server.pid)
        return {"uploaded": int(size), "uploaded_seconds": (after.computed - before.computed) / BUSY}

    def _alone(self) -> Usage:
        """What the server has once all sessions have ended, and what they held is given back."""
        deadline = time.monotonic() + END_SECONDS
        while read_metric(self.server, "lanner_sessions_under_way"):
            if time.monotonic() > deadline:
                raise LannerError("the server does not end sessions whose clients left", where=self.case.name)
            time.sleep(0.05)
        time.sleep(GIVEN_BACK_SECONDS)
        return usage(self.server.pid)

    def _checked(self, predictions: Sequence[Prediction]) -> Sequence[Prediction]:
        check_results(self.case, self.model, self.model.predict_integers(self.sample)[0][0], predictions)
        return predictions
