"""What operations take on this machine: fitted to benchmarks of layers, activations and small networks.

Each protocol's steps tell what they count (`lanner inspect` shows it). The seconds of a step are taken as a sum of
what it counts, each times a rate that is not negative. Rates are those that come closest, by relative error, to the
time of each phase of each benchmark and, weighing less, to those of its steps: parties wait for each other, and which
step a wait falls in says little. Both parties are processes on this machine, over TLS.

Whose time it is, is measured by each party's own clock; and how much of that all cores share, by predictions for which
each party has one core.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.cases import Case, cases
from lanner.benchmarks.machine import cores, one_core_each
from lanner.cli.counters import await_counters
from lanner.cli.process import ServerProcess
from lanner.client import Client
from lanner.errors import ModelError
from lanner.estimate import estimate
from lanner.kernel_times import SHIPPED
from lanner.options import INTERACTIVE_MODES, MODES, Protocols
from lanner.prediction import Prediction
from lanner.waterfall import Computed

#: Networks that are measured beside layers and activations: steps of many sizes, one behind the other.
NETWORKS = ("mnist_a", "mnist_b", "mnist_c", "mnist_d", "mnist_cryptonets", "lenet", "resnet20")

#: What is measured of mode hardened: layers of many sizes, and chains of them. It takes fewer bits than others have.
CHECKED = (
    "fc_2048x1",
    "fc_1024x128",
    "conv_28x28x1_5x5x5",
    "conv_32x32x32_3x3x32",
    "conv_16x16x128_1x1x128",
    "mnist_c",
    "mnist_d",
    "lenet",
)
CHECKED_PRECISION = "20%"

#: Bits that lookups of mode tabula keep in some of the benchmarks.
FEW_BITS = 10

#: Predictions timed of each; one before them warms up.
REPEATS = 5

#: Seconds below which an error counts as if there were so many.
FLOOR = 3e-4

#: What the error of a step weighs beside that of a phase.
STEP_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """What a step took.

    Attributes:
        protocol: Its protocol.
        phase: ``setup``, ``offline`` or ``online``.
        counts: What it counts.
        seconds: The median over predictions.
        client: The part of it in which the client computed.
        server: That of the server.
        alone: What it took when each party had one core; None where that was not measured.
    """

    protocol: str
    phase: str
    counts: Mapping[str, float]
    seconds: float
    client: float = 0.0
    server: float = 0.0
    alone: float | None = None


def measure(machine: str, advance: Callable[[str], None]) -> dict[str, Any]:
    """The table of kernel times of this machine.

    Args:
        machine: What it is called there.
        advance: Hears the name of each benchmark as it begins.
    """
    runs = []
    for protocols, case in calibration_cases():
        advance(f"{protocols.mode} {case.name}")
        try:
            runs.append(_measure(case, protocols))
        except ModelError:
            # What a mode does not take, another one measures.
            continue
    return fitted(machine, cores(), runs)


def fitted(machine: str, cores: int, runs: Sequence[Sequence[Measured]]) -> dict[str, Any]:
    """The table that comes closest to runs of benchmarks on a machine with so many cores."""
    measured = {step.protocol for run in runs for step in run if step.phase != "setup"}
    # One whose steps take no time to speak of has no rates.
    protocols: dict[str, dict[str, dict[str, Any]]] = {
        name: {"offline": {}, "online": {}, "shares": {}} for name in measured
    }
    for phase in ("offline", "online"):
        for (protocol, name), rate in fit(runs, phase).items():
            protocols[protocol][phase][name] = rate
        for protocol, rates in protocols.items():
            steps = [step for run in runs for step in run if (step.protocol, step.phase) == (protocol, phase)]
            rates["shares"][phase] = shares(steps, cores)
    setup = {name: rate for (_, name), rate in fit(runs, "setup").items()}
    return {"machine": machine, "cores": cores, "setup": setup, "protocols": protocols}


def shares(steps: Sequence[Measured], cores: int) -> dict[str, float]:
    """Whose the time of some steps is, and which part of what either computes all cores share, each from 0 to 1."""
    seconds = sum(step.seconds for step in steps)
    if seconds <= 0:
        return {"client": 0.0, "server": 0.0, "parallel": 0.0}
    client = min(sum(step.client for step in steps) / seconds, 1.0)
    # What both compute at once counts for the client alone.
    server = min(sum(step.server for step in steps) / seconds, 1.0 - client)
    both = [(step.alone, step.seconds) for step in steps if step.alone is not None]
    longer = sum(alone for alone, _ in both) / max(sum(taken for _, taken in both), FLOOR) - 1.0 if both else 0.0
    divided = (client + server) * (cores - 1)
    parallel = min(max(longer / divided, 0.0), 1.0) if divided > 0 else 0.0
    return {"client": client, "server": server, "parallel": parallel}


def calibration_cases() -> list[tuple[Protocols, Case]]:
    """What is measured: protocols and a benchmark each."""
    chosen = [
        (Protocols(mode), case)
        for mode in MODES
        if mode != "auto"
        for case in cases("all", mode)
        if case.suite != "networks" or case.name in NETWORKS
    ]
    # Few bits are kept by other protocols.
    few = [
        (Protocols("tabula", kept_bits=FEW_BITS), case)
        for case in cases("all", "tabula")
        if case.name in NETWORKS or case.name.startswith("maxpool")
    ]
    protocols = Protocols("hardened", precision=CHECKED_PRECISION)
    checked = [(protocols, case) for case in cases("all", "falcon") if case.name in CHECKED]
    return chosen + few + checked + _functions()


def _functions() -> list[tuple[Protocols, Case]]:
    """What papers have no tables for: smooth functions, products of values, the best few labels."""
    from lanner.benchmarks.graphs import function, matrix_product, product, top_k

    made = [
        *(
            Case("functions", f"{name.lower()}_{count}", partial(function, name, count))
            for name in ("Sigmoid", "Tanh", "Exp", "Erf")
            for count in (1000, 10_000)
        ),
        *(Case("functions", f"product_{count}", partial(product, count)) for count in (1000, 10_000)),
        *(Case("functions", f"matrices_{side}", partial(matrix_product, side)) for side in (16, 48)),
        *(Case("functions", f"top_3_of_{classes}", partial(top_k, classes, 3)) for classes in (10, 100)),
    ]
    chosen = (
        *(Protocols(mode) for mode in INTERACTIVE_MODES if mode != "auto"),
        Protocols("tabula", kept_bits=FEW_BITS),
    )
    return [(protocols, case) for protocols in chosen for case in made]


def _measure(case: Case, protocols: Protocols) -> list[Measured]:
    model, sample = case.build(protocols)
    # Its counts alone are used, which are the same by every table.
    document = estimate(model.manifest, kernel_times=SHIPPED).document
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / "kernels.lanner"
        model.save(path)
        with ServerProcess([str(path)], metrics=True) as server, server.connect() as client:
            client.predict(sample)
            before = await_counters(server, 1).computed
            predictions = [client.predict(sample) for _ in range(REPEATS)]
            after = await_counters(server, 1 + REPEATS).computed
            computed = {key: (total - before.get(key, 0.0)) / REPEATS for key, total in after.items()}
            alone = _alone(server, client, sample)
    setup = Measured("setup", "setup", document["setup_operations"], predictions[0].phases["setup"].seconds)
    return [setup, *_steps(document["layers"], predictions, computed, alone)]


def _alone(server: ServerProcess, client: Client, sample: NDArray[np.float32]) -> list[Prediction]:
    """Predictions for which each party has one core; none where there is one only, or processes choose none."""
    if cores() == 1 or not hasattr(os, "sched_setaffinity"):
        return []
    with one_core_each(server.pid):
        return [client.predict(sample) for _ in range(REPEATS)]


def _steps(
    layers: Sequence[Mapping[str, Any]],
    predictions: Sequence[Prediction],
    computed: Computed,
    alone: Sequence[Prediction],
) -> Iterator[Measured]:
    for phase in ("offline", "online"):
        told, slow = (
            [[step for step in prediction.layers if step.phase == phase] for prediction in some]
            for some in (predictions, alone)
        )
        for number, layer in enumerate(layers):
            steps, slower = [of[number] for of in told], [of[number] for of in slow]
            yield Measured(
                layer["protocol"],
                phase,
                {name: layer["visits"] * count for name, count in layer["operations"].items()},
                median(step.seconds for step in steps),
                median(step.computing for step in steps),
                computed.get((phase, layer["name"], layer["protocol"]), 0.0),
                median(step.seconds for step in slower) if slower else None,
            )


def fit(runs: Sequence[Sequence[Measured]], phase: str) -> dict[tuple[str, str], float]:
    """The rates by protocol and operation, none negative, that come closest to what a phase and its steps took."""
    from scipy.optimize import nnls

    of_phase = [[step for step in run if step.phase == phase] for run in runs]
    keys = sorted({(step.protocol, name) for run in of_phase for step in run for name in step.counts})
    if not keys:
        return {}
    column = {key: number for number, key in enumerate(keys)}

    def equation(steps: Sequence[Measured], weight: float) -> tuple[NDArray[np.float64], float]:
        row, seconds = np.zeros(len(keys)), sum(step.seconds for step in steps)
        for step in steps:
            for name, count in step.counts.items():
                row[column[step.protocol, name]] += count
        return row * weight / max(seconds, FLOOR), seconds * weight / max(seconds, FLOOR)

    equations = [equation(run, 1.0) for run in of_phase if run]
    equations += [equation([step], STEP_WEIGHT) for run in of_phase for step in run]
    counts, seconds = np.array([row for row, _ in equations]), np.array([taken for _, taken in equations])
    largest = np.maximum(counts.max(axis=0), 1e-300)
    rates, _ = nnls(counts / largest, seconds, maxiter=100 * len(keys))
    return {key: float(rate) for key, rate in zip(keys, rates / largest, strict=True) if rate > 0}


def table(kernels: Mapping[str, Any]) -> str:
    """The file's text."""
    return json.dumps(kernels, indent=1, sort_keys=True) + "\n"
