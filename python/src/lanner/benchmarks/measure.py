"""Runs a benchmark: two processes over TLS on loopback, every result checked outside the clock."""

from __future__ import annotations

import platform
import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.cases import Case
from lanner.cli.evaluate import agrees
from lanner.cli.process import ServerProcess
from lanner.errors import LannerError
from lanner.model import Model
from lanner.prediction import PHASES, Prediction


@dataclass(frozen=True, slots=True)
class Row:
    """The cost of one benchmark in one phase: the median time of `repeat` runs, and the bytes and rounds of each."""

    suite: str
    name: str
    network: str
    mode: str
    phase: str
    seconds: float
    bytes: int
    rounds: int
    repeat: int
    weights: str
    paper: dict[str, Any] | None

    def document(self) -> dict[str, Any]:
        """The row as an element of ``rows``."""
        return asdict(self)


def measure(case: Case, mode: str, repeat: int) -> list[Row]:
    """Run a benchmark.

    Raises:
        LannerError: If a result differs from the fixed-point reference, or the protocol fails.
    """
    model, sample = case.build(mode)
    predictions = _predict(model, sample, repeat)
    reference = model.predict_integers(sample)[0][0]
    if not all(agrees(prediction, reference, model) for prediction in predictions):
        raise LannerError("the secure result differs from the fixed-point reference", where=f"bench {case.name}")
    rows = []
    for phase in PHASES:
        costs = [_cost(case, prediction, phase) for prediction in predictions]
        if phase == "setup" and case.protocols:
            continue
        seconds = statistics.median(cost[0] for cost in costs)
        _, transferred, rounds = costs[-1]
        paper = _paper(case, phase)
        row = Row(
            case.suite,
            case.name,
            "loopback",
            predictions[0].mode,
            phase,
            seconds,
            transferred,
            rounds,
            repeat,
            case.weights,
            paper,
        )
        rows.append(row)
    return rows


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": _cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _predict(model: Model, sample: NDArray[np.float32], repeat: int) -> list[Prediction]:
    """Predict with the server in another process; the first prediction warms caches up and does not count."""
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / "bench.lanner"
        model.save(path)
        with ServerProcess([str(path)]) as server, server.connect() as client:
            return [client.predict(sample) for _ in range(repeat + 1)][1:]


def _cost(case: Case, prediction: Prediction, phase: str) -> tuple[float, int, int]:
    """Seconds, bytes and rounds of what counts."""
    if not case.protocols:
        whole = prediction.phases[phase]
        return whole.seconds, whole.bytes, whole.rounds
    counted = [
        layer for layer in prediction.layers if layer.phase == phase and layer.protocol.startswith(case.protocols)
    ]
    return (
        sum(layer.seconds for layer in counted),
        sum(layer.bytes for layer in counted),
        sum(layer.rounds for layer in counted),
    )


def _paper(case: Case, phase: str) -> dict[str, Any] | None:
    if phase not in case.paper:
        return None
    seconds, transferred = case.paper[phase]
    return {"source": "GAZELLE", "seconds": seconds, "bytes": transferred}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
