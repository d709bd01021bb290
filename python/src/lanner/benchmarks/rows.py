"""What one benchmark took, phase by phase."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanner.benchmarks.cases import Case
from lanner.benchmarks.published import paper, public_code
from lanner.benchmarks.work import counted_work
from lanner.model import Model
from lanner.network import Network
from lanner.prediction import PHASES, Layer, Prediction
from lanner.waterfall import Computed


@dataclass(frozen=True, slots=True)
class Run:
    """One prediction with its material made in it, or those of several samples that were given together.

    Attributes:
        predictions: What each sample's returned, and what the client counted.
        seconds: All that the caller waited, divided among the samples.
        computed: What the server computed, divided likewise.
        memory: The most resident bytes that both processes had together, at most; None where the system does not tell.
    """

    predictions: Sequence[Prediction]
    seconds: float
    computed: Computed
    memory: int | None = None

    @property
    def prediction(self) -> Prediction:
        """The first sample's."""
        return self.predictions[0]


@dataclass(frozen=True, slots=True)
class Row:
    """The cost of one benchmark in one phase.

    Attributes:
        suite: layers, activations or networks.
        name: The benchmark.
        network: The network between the parties.
        shaping: How that came about: ``none`` or ``in-process relay``.
        mode: The mode.
        rounding: How mode cheetah rounds; None in other modes.
        precision: What the model was compiled for: a percentage, or bits.
        logit_error: How far its scores are from the float network's on the calibration samples, relative to their
            range.
        phase: setup, offline, online, or total: the last two together.
        seconds: What the client waited, the median of `repeat` runs.
        fastest: The same of the fastest run.
        server_seconds: What the server computed, the median; None in the set-up.
        bytes: Bytes in both directions: on TCP, the median; of single steps, those of their messages.
        rounds: Sends of the client followed by a wait.
        repeat: How many runs.
        memory: The most resident bytes of both processes together, the client's with the model that it compiled; of
            totals of whole networks.
        work: What layers and activations had of a whole network's total: see `counted_work`.
        weights: ``trained`` or ``random``.
        paper: What the mode's paper gives.
        public_code: What that paper's public code gives.
    """

    suite: str
    name: str
    network: str
    shaping: str
    mode: str
    rounding: str | None
    precision: str | None
    logit_error: float | None
    phase: str
    seconds: float
    fastest: float
    server_seconds: float | None
    bytes: int
    rounds: int
    repeat: int
    memory: int | None
    work: dict[str, dict[str, float]] | None
    weights: str
    paper: dict[str, Any] | None
    public_code: dict[str, Any] | None

    def document(self) -> dict[str, Any]:
        """The row as an element of ``rows``."""
        return asdict(self)


def rows_of(case: Case, network: Network, runs: Sequence[Run], messages: Sequence[Layer], model: Model) -> list[Row]:
    """The rows of runs in one session, whose set-up counts once and only for whole predictions.

    Args:
        case: The benchmark.
        network: The network between the parties.
        runs: The runs.
        messages: The layers of a prediction without a transport, whose bytes and rounds stand for a case's steps: a
            read from a socket may take in bytes of the next step.
        model: The model, for how its mode rounds and how precise it is.
    """
    phases = [*(phase for phase in PHASES if phase != "setup" or not case.steps), "total"]
    return [_row(case, network, runs[:1] if phase == "setup" else runs, messages, model, phase) for phase in phases]


def _row(case: Case, network: Network, runs: Sequence[Run], messages: Sequence[Layer], model: Model, phase: str) -> Row:
    costs = [_cost(case, run, messages, phase) for run in runs]
    seconds = [cost[0] for cost in costs]
    # How many records of TLS the same messages take depends on when they are written.
    transferred = statistics.median_low([cost[1] for cost in costs])
    rounds = statistics.median_low([cost[2] for cost in costs])
    mode = runs[-1].prediction.mode
    given, code = paper(mode, case.name, network.name), public_code(mode, case.name)
    is_whole = phase == "total" and not case.steps
    peaks = [run.memory for run in runs if run.memory is not None]
    return Row(
        suite=case.suite,
        name=case.name,
        network=network.name,
        shaping=network.shaping,
        mode=mode,
        rounding=model.manifest.rounding,
        precision=None if model.precision is None else model.precision.asked,
        logit_error=None if model.precision is None else model.precision.logit_error,
        phase=phase,
        seconds=statistics.median(seconds),
        fastest=min(seconds),
        server_seconds=None if phase == "setup" else statistics.median(_server(case, run, phase) for run in runs),
        bytes=transferred,
        rounds=rounds,
        repeat=len(runs),
        memory=max(peaks) if is_whole and peaks else None,
        work=counted_work(model, [run.prediction.layers for run in runs]) if is_whole else None,
        weights=case.weights,
        paper=None if given is None else given.document(phase),
        public_code=None if code is None else code.document(phase),
    )


def _cost(case: Case, run: Run, messages: Sequence[Layer], phase: str) -> tuple[float, int, int]:
    """Seconds, bytes and rounds of what counts."""
    if phase == "total":
        parts = [_cost(case, run, messages, part) for part in ("offline", "online")]
        summed = (sum(part[0] for part in parts), sum(part[1] for part in parts), sum(part[2] for part in parts))
        return summed if case.steps else (run.seconds, summed[1], summed[2])
    if not case.steps:
        wholes = [prediction.phases[phase] for prediction in run.predictions]
        count = len(wholes)
        transferred = sum(whole.bytes for whole in wholes) // count
        return sum(whole.seconds for whole in wholes) / count, transferred, wholes[0].rounds
    seconds = sum(layer.seconds for layer in _counted(case, run.prediction.layers, phase))
    counted = _counted(case, messages, phase)
    return seconds, sum(layer.bytes for layer in counted), sum(layer.rounds for layer in counted)


def _counted(case: Case, layers: Sequence[Layer], phase: str) -> list[Layer]:
    return [layer for layer in layers if layer.phase == phase and layer.name.startswith(case.steps)]


def _server(case: Case, run: Run, phase: str) -> float:
    parts = ("offline", "online") if phase == "total" else (phase,)
    return sum(
        seconds
        for (part, step, _), seconds in run.computed.items()
        if part in parts and step.startswith(case.steps or ("",))
    )
