"""Runs a benchmark: two processes over TLS, every result checked outside the clock."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanner import local
from lanner.agreement import agrees
from lanner.benchmarks.cases import Case
from lanner.benchmarks.machine import forget_peaks, peak_memory
from lanner.benchmarks.rows import Row, Run, rows_of
from lanner.cli.arguments import LimitKeywords
from lanner.cli.counters import await_counters, read_counters
from lanner.cli.process import ServerProcess
from lanner.client import Client
from lanner.errors import LannerError
from lanner.model import Model
from lanner.network import Network
from lanner.options import Protocols
from lanner.prediction import Prediction
from lanner.server import DEFAULT_SESSIONS

#: Predictions timed: the most, unless one takes more than so many seconds.
REPEATS = ((0.0, 9), (5.0, 5), (20.0, 3))

#: Seconds beyond which the first prediction of a session counts: what warming up saves is lost in them.
SLOW = 20.0

#: Seconds that a party waits for the other: on a busy machine large networks have messages that are long in the making.
PATIENCE = 600.0


def measure(case: Case, protocols: Protocols, networks: Sequence[Network], repeat: int | None) -> list[Row]:
    """Run a benchmark over each network, with one session for each.

    Args:
        case: The benchmark.
        protocols: What the model is compiled for.
        networks: The networks between the parties.
        repeat: How many predictions to time; None for what `REPEATS` says.

    Raises:
        LannerError: If a result is not what the fixed-point reference and the rounding allow, or the protocol fails.
    """
    model, sample = case.build(protocols)
    reference = model.predict_integers(sample)[0]
    messages = local.run(model, sample).layers if case.steps else []
    rows = []
    with served(case, model, metrics=True) as server:
        for network in networks:
            with server.connect(network=network) as client:
                runs = _runs(server, client, sample, repeat)
            for run in runs:
                for scores, prediction in zip(reference, run.predictions, strict=True):
                    check_results(case, model, scores, [prediction])
            rows += rows_of(case, network, runs, messages, model)
    return rows


@contextmanager
def served(
    case: Case,
    model: Model,
    *,
    metrics: bool = False,
    sessions: int = DEFAULT_SESSIONS,
    host: str = "127.0.0.1",
    web: bool = False,
) -> Iterator[ServerProcess]:
    """A server of a benchmark's model, in a process of its own, for so many sessions at once.

    It listens on one of this machine's addresses, and answers browsers if they are wanted.
    """
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / "bench.lanner"
        model.save(path)
        limits = LimitKeywords(max_memory=case.max_memory, max_seconds=None)
        process = ServerProcess(
            [str(path)], metrics=metrics, limits=limits, timeout=PATIENCE, sessions=sessions, host=host, web=web
        )
        with process as server:
            yield server


def check_results(case: Case, model: Model, reference: NDArray[np.int64], predictions: Sequence[Prediction]) -> None:
    """Check predictions of one sample against the fixed-point reference's scores of it.

    Raises:
        LannerError: If one is not what the reference and the rounding allow.
    """
    if not all(agrees(prediction, reference, model) for prediction in predictions):
        raise LannerError(
            "the secure result is not what the fixed-point reference and the rounding allow", where=case.name
        )


def _runs(server: ServerProcess, client: Client, sample: NDArray[np.float32], repeat: int | None) -> list[Run]:
    """Predict; the first prediction warms caches up and tells how long one takes, and does not count unless slow."""
    first = _run(server, client, sample)
    whole = first.seconds * len(first.predictions)
    count = repeat or next(number for least, number in reversed(REPEATS) if whole >= least)
    counted = [first] if whole >= SLOW else []
    return counted + [_run(server, client, sample) for _ in range(count - len(counted))]


def _run(server: ServerProcess, client: Client, sample: NDArray[np.float32]) -> Run:
    before = read_counters(server)
    forget_peaks(server.pid)
    started = time.perf_counter()
    predictions = client.predict_batch(sample)
    seconds = (time.perf_counter() - started) / len(predictions)
    after = await_counters(server, before.requests + len(predictions) // client.manifest.batch)
    computed = {
        key: (total - before.computed.get(key, 0.0)) / len(predictions) for key, total in after.computed.items()
    }
    return Run(predictions, seconds, computed, peak_memory(server.pid))
