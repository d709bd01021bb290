"""What operations take on this machine, measured in about a second.

A small network runs in five ways, with both parties in this process, over TLS. What its phases took beside what the
package's table says of them gives two factors for each protocol, by which the table's rates are multiplied: one for
what a step takes however small it is, which is mostly waiting, and one for what it computes. Whose time it is, and what
all cores share, stays. Protocols that none of these runs has take the factors of their family.
``lanner doctor --calibrate`` fits every rate instead.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.client import Client
from lanner.errors import native_errors
from lanner.kernel_times import KernelTimes
from lanner.model import Model
from lanner.options import CompileOptions
from lanner.prediction import Prediction
from lanner.server import Server

#: Seconds for the predictions of all ways together.
SECONDS = 0.6

#: Predictions timed in each way, after one that warms up: the fewest, and the most.
REPEATS = (1, 6)

#: Seconds below which what a step takes is mostly what a scheduler decides.
FLOOR = 3e-4

#: What a step weighs beside a phase: parties wait for each other, and in which step a wait falls changes.
STEP_WEIGHT = 0.3

#: What it weighs that a rate changes as all others do: as much as a fiftieth of a phase that says otherwise.
COMMON_WEIGHT = 0.02

#: Rounds of fitting.
ROUNDS = 50

#: What is computed as another family is, by how names begin: circuits, and ciphertexts that are multiplied and rotated.
OF_OTHERS = {"falcon.softmax": "yao", "hardened": "falcon", "spectral": "gazelle"}

#: Counts each step once: what it takes however small it is.
STEPS = "steps"

#: A part of a step's time: its protocol, and whether it is what each step takes; of set-ups, the operation.
Part = tuple[str, bool | str]


@dataclass(frozen=True, slots=True)
class Timed:
    """A step, or a set-up, as it was measured.

    Attributes:
        protocol: Its protocol; ``setup`` of a set-up.
        phase: ``setup``, ``offline`` or ``online``.
        counts: What it counts, of all its visits.
        seconds: What it took.
    """

    protocol: str
    phase: str
    counts: Mapping[str, float]
    seconds: float


def quick_table(origin: Mapping[str, Any], machine: str, cores: int) -> dict[str, Any]:
    """Measure this machine.

    Args:
        origin: How the table says that it was made.
        machine: What it calls this machine.
        cores: The cores that this process may use.

    Raises:
        LannerError: If parties cannot be run in this process.
        OSError: If no folder can be made for the server's key.
    """
    with native_errors():
        shipped = json.loads(_native.shipped_kernel_times())
    return {**scaled(shipped, measure()), "origin": dict(origin), "machine": machine, "cores": cores}


def measure() -> list[list[Timed]]:
    """What the network took in each way: its set-up, and the steps of a prediction."""
    models = dict(_models())
    with (
        tempfile.TemporaryDirectory(prefix="lanner-") as folder,
        Server(models, state_dir=folder, max_stock=0, max_keys=0) as server,
    ):
        return [list(_run(server, name, model, SECONDS / len(models))) for name, model in models.items()]


def scaled(shipped: Mapping[str, Any], runs: Sequence[Sequence[Timed]]) -> dict[str, Any]:
    """The package's table with each protocol's rates multiplied by what runs took; of set-ups each rate by its own."""
    protocols = {name: {"shares": rates.get("shares")} for name, rates in shipped["protocols"].items()}
    for phase in ("offline", "online"):
        every = {name: rates[phase] for name, rates in shipped["protocols"].items()}
        found = fitted([[_parts(step, every) for step in run if step.phase == phase] for run in runs])
        for name, rates in every.items():
            protocols[name][phase] = {
                operation: rate * _factor((name, operation == STEPS), found) for operation, rate in rates.items()
            }
    found = fitted([[_of_set_up(step, shipped["setup"]) for step in run if step.phase == "setup"] for run in runs])
    common = found[_COMMON]
    setup = {name: rate * found.get(("setup", name), common) for name, rate in shipped["setup"].items()}
    return {"setup": setup, "protocols": protocols}


def _parts(step: Timed, rates: Mapping[str, Mapping[str, float]]) -> Equation:
    """What a step takes by a table, in its two parts, and what it took."""
    own = rates[step.protocol]
    seconds = {operation: count * own.get(operation, 0.0) for operation, count in step.counts.items()}
    each = seconds.pop(STEPS, 0.0)
    return {(step.protocol, True): each, (step.protocol, False): sum(seconds.values())}, step.seconds


def _of_set_up(step: Timed, rates: Mapping[str, float]) -> Equation:
    """What a set-up takes by a table, by operation, and what it took."""
    return {("setup", name): count * rates.get(name, 0.0) for name, count in step.counts.items()}, step.seconds


#: Estimated seconds by what they are a part of, and those that were measured.
Equation = tuple[Mapping[Part, float], float]

#: The factor of all parts together.
_COMMON: Part = ("", "")


def fitted(runs: Sequence[Sequence[Equation]]) -> dict[Part, float]:
    """The factors by which estimated parts come closest to what was measured.

    Each round multiplies a factor by how much longer than estimated everything took that it is part of, by geometric
    means that are weighed by its part. So none becomes negative.

    Args:
        runs: The steps of a phase, by run.

    Returns:
        A factor for each part, and one of all together; 1 where nothing was measured.
    """
    equations = [(1.0, *_sum(run)) for run in runs]
    # What takes next to nothing says nothing.
    equations += [
        (STEP_WEIGHT * min(1.0, max(sum(parts.values()), seconds) / FLOOR), parts, seconds)
        for run in runs
        for parts, seconds in run
    ]
    usable = [(weight, parts, seconds) for weight, parts, seconds in equations if seconds > 0 < sum(parts.values())]
    of_phases = [(parts, seconds) for weight, parts, seconds in usable if weight == 1.0]
    if not of_phases:
        return {_COMMON: 1.0}
    common = exp(sum(log(seconds / sum(parts.values())) for parts, seconds in of_phases) / len(of_phases))
    factors = {name: common for _, parts, _ in usable for name, part in parts.items() if part > 0}
    for _ in range(ROUNDS):
        # What all have in common holds where nothing says otherwise.
        pulls = {name: [(COMMON_WEIGHT, log(common / factor))] for name, factor in factors.items()}
        for weight, parts, seconds in usable:
            estimated = {name: part * factors[name] for name, part in parts.items() if part > 0}
            total = sum(estimated.values())
            for name, part in estimated.items():
                pulls[name].append((weight * part / total, log(seconds / total)))
        for name, terms in pulls.items():
            factors[name] *= exp(sum(weight * pull for weight, pull in terms) / sum(weight for weight, _ in terms))
    return {**factors, _COMMON: common}


def _sum(run: Sequence[Equation]) -> Equation:
    """The phase that steps are."""
    parts: dict[Part, float] = {}
    for step, _ in run:
        for name, part in step.items():
            parts[name] = parts.get(name, 0.0) + part
    return parts, sum(seconds for _, seconds in run)


def _factor(part: Part, found: Mapping[Part, float]) -> float:
    """A part's factor: its own, else the middle one of its family, of its kind if it has one, else that of all."""
    if part in found:
        return found[part]
    family = [(other[1], factor) for other, factor in found.items() if _family(other[0]) == _family(part[0])]
    alike = [factor for kind, factor in family if kind == part[1]] or [factor for _, factor in family]
    return median(alike) if alike else found[_COMMON]


def _family(protocol: str) -> str:
    family = protocol.partition(".")[0]
    return OF_OTHERS.get(protocol, OF_OTHERS.get(family, family))


def _run(server: Server, name: str, model: Model, seconds: float) -> Iterator[Timed]:
    """What a network's set-up and steps took; of each phase, in the prediction in which it was fastest.

    What else the machine does meanwhile so counts as little as it can.
    """
    with native_errors():
        document = json.loads(_native.estimate(json.dumps(model.manifest.document)))
    sample = _samples()[0]
    with Client(server.address, model=name, pin=server.fingerprint) as client:
        # The first one warms up.
        setup = client.predict(sample).phases["setup"].seconds
        predictions: list[Prediction] = []
        least, most = REPEATS
        started = time.perf_counter()
        while len(predictions) < least or (len(predictions) < most and time.perf_counter() - started < seconds):
            predictions.append(client.predict(sample))
    yield Timed("setup", "setup", document["setup_operations"], setup)
    for phase in ("offline", "online"):
        fastest = min(predictions, key=lambda prediction: prediction.phases[phase].seconds)
        steps = [step for step in fastest.layers if step.phase == phase]
        for layer, step in zip(document["layers"], steps, strict=True):
            counts = {operation: layer["visits"] * count for operation, count in layer["operations"].items()}
            yield Timed(layer["protocol"], phase, counts, step.seconds)


def _models() -> Iterator[tuple[str, Model]]:
    """The networks by the modes that they are for."""
    for mode in ("gazelle", "falcon", "cheetah", "tabula"):
        yield mode, _compiled(mode)
    # Layers that are computed ahead, and circuits over powers of two: where all else is dear.
    with native_errors():
        protocols = json.loads(_native.shipped_kernel_times())["protocols"]
    dear = {"offline": {"steps": 1e3}, "online": {"steps": 1e3}}
    others = {name: dear for name in protocols if not name.startswith(("delphi", "yao", "local", "share"))}
    prices = json.dumps({"machine": "", "setup": {}, "protocols": others})
    yield "auto", _compiled("auto", prices)


def _compiled(mode: str, kernels: str | None = None) -> Model:
    rng = np.random.default_rng(SEED)
    tensors = {name: rng.standard_normal(shape, np.float32) / np.float32(8) for name, shape in WEIGHTS.items()}
    # Lookups take ten times as long as what stands in their place elsewhere.
    graph = _graph(pooled=mode != "tabula")
    times = None if kernels is None else KernelTimes.of_text(kernels)
    options = CompileOptions(name=mode, mode=mode, precision=PRECISION, input_range=(0, 1), kernel_times=times)
    with native_errors():
        return Model(_native.NativeModel.compile(json.dumps(graph), tensors, _samples(), options.document()))


def _samples() -> NDArray[np.float32]:
    return np.random.default_rng(SEED).random((SAMPLES, *SHAPE), dtype=np.float32)


def _graph(pooled: bool) -> dict[str, Any]:
    """Activations of three sizes between convolutions and fully connected layers.

    The first ones are four times as many where they are `pooled`, and as many as then are left where they are not.
    """

    def convolution(weight: str, stride: int) -> object:
        whole = {"pads": [0, 0, 0, 0], "dilations": [1, 1], "groups": 1}
        return {"Conv": {"weight": weight, "bias": None, "strides": [stride, stride], **whole}}

    pool = ("pool", {"MaxPool": {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}})
    operators: tuple[tuple[str, object], ...] = (
        ("conv1", convolution("w1", 1 if pooled else 2)),
        ("relu1", "Relu"),
        *((pool,) if pooled else ()),
        ("conv2", convolution("w2", 2)),
        ("relu2", "Relu"),
        ("flat", "Flatten"),
        ("fc1", {"MatMul": {"weight": "w3", "bias": None}}),
        ("relu3", "Relu"),
        ("fc2", {"MatMul": {"weight": "w4", "bias": None}}),
    )
    names = ["x", *(name for name, _ in operators)]
    nodes = [
        {"name": name, "op": operator, "inputs": [before]}
        for before, (name, operator) in zip(names, operators, strict=False)
    ]
    return {"format_version": 2, "inputs": [{"name": "x", "shape": list(SHAPE)}], "nodes": nodes, "output": names[-1]}


#: The shape of an input, and those of weights. Both are drawn: what they are changes no time.
SHAPE = (1, 28, 28)
WEIGHTS = {"w1": (4, 1, 5, 5), "w2": (24, 4, 5, 5), "w3": (384, 32), "w4": (32, 10)}
SEED = 20_260_101
SAMPLES = 8
PRECISION = 10
