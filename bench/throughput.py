"""Images per second: several clients at once, each with a session of its own and some inputs, at one server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from threading import Barrier
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.benchmarks.cases import Case
from lanner.benchmarks.measure import PATIENCE, check_results, served
from lanner.cli.on_ray import in_pieces
from lanner.cli.process import ServerProcess
from lanner.inputs import samples_of
from lanner.model import Model
from lanner.network import Network
from lanner.options import PACKING_MODES, Protocols
from lanner.prediction import Prediction
from lanner.ray.pool import Pool

#: Clients at once, and the inputs of each.
CLIENTS = (1, 4, 16)
INPUTS = (1, 8, 64)

#: Inputs that share a request.
BATCHES = (4, 16)

#: Workers on a cluster, and the inputs of each.
WORKERS = (1, 2, 4)
INPUTS_ON_CLUSTER = 256

#: What the network between a cluster's nodes is called.
CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of a server at once.

    Attributes:
        clients: Clients at once.
        inputs: Inputs of each.
        in_turn: Whether each input waits for the result before it.
        batch: How many inputs share a request, packed into the same ciphertexts.
    """

    clients: int
    inputs: int
    in_turn: bool = False
    batch: int = 1


def loads(mode: str) -> list[Load]:
    """Each number of clients with each number of inputs; and one client's that wait for each other, or are packed."""
    most = max(INPUTS)
    packed = [Load(1, most, batch=batch) for batch in BATCHES if mode in PACKING_MODES]
    return [
        *(Load(clients, inputs) for clients in CLIENTS for inputs in INPUTS),
        Load(1, most, in_turn=True),
        *packed,
    ]


def loads_on_cluster() -> list[Load]:
    """Each number of workers, with as many inputs for each."""
    return [Load(workers, INPUTS_ON_CLUSTER) for workers in WORKERS]


@dataclass(frozen=True, slots=True)
class Throughput:
    """What clients get of a server in a time.

    Attributes:
        name: The benchmark.
        mode: The model's mode.
        network: What is between the parties.
        clients: Clients at once, each with a session, set-up included.
        inputs: Inputs of each.
        in_turn: Whether each input waited for the result before it.
        batch: How many inputs shared a request.
        seconds: From the first request to the last result; connecting is done before.
        images_per_second: All inputs of all clients, by the seconds.
        bytes_per_image: Bytes in both directions, set-up included.
    """

    name: str
    mode: str
    network: str
    clients: int
    inputs: int
    in_turn: bool
    batch: int
    seconds: float
    images_per_second: float
    bytes_per_image: float

    def document(self) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return asdict(self)


def throughput(case: Case, protocols: Protocols, network: Network) -> Iterator[Throughput]:
    """Measure a network with each number of clients and inputs; every result is checked outside the clock.

    Raises:
        LannerError: If a result is not what the fixed-point reference and the rounding allow, or the protocol fails.
    """
    for batch, alike in groupby(loads(protocols.mode), lambda load: load.batch):
        model, sample = case.build(replace(protocols, batch=batch))
        with served(case, model) as server:
            for load in alike:
                yield _measured(case, model, sample, server, network, load)


def throughput_on_cluster(case: Case, protocols: Protocols, host: str) -> Iterator[Throughput]:
    """Measure a network with each number of workers on a cluster, which is connected to; every result is checked.

    Args:
        case: The network.
        protocols: What it is compiled for.
        host: This machine's address for the workers.

    Raises:
        LannerError: As `throughput`.
    """
    model, sample = case.build(protocols)
    reference = model.predict_integers(sample)[0][0]
    with served(case, model, host=host) as server:
        for load in loads_on_cluster():
            samples = samples_of(np.broadcast_to(sample, (load.clients * load.inputs, *sample.shape)))
            with Pool(server.address, server.trusted(), workers=load.clients, ahead=0) as pool:
                pool.gather()
                started = time.perf_counter()
                predictions = list(pool.predict(in_pieces(samples)))
                seconds = time.perf_counter() - started
            check_results(case, model, reference, predictions)
            yield _row(case, model, CLUSTER, load, seconds, _bytes(predictions, load.clients))


def _measured(
    case: Case,
    model: Model,
    sample: NDArray[np.float32],
    server: ServerProcess,
    network: Network,
    load: Load,
) -> Throughput:
    batch = np.broadcast_to(sample, (load.inputs, *sample.shape))
    ready = Barrier(load.clients + 1)

    def session() -> tuple[list[Prediction], float]:
        with server.connect(network=network) as client:
            ready.wait(PATIENCE)
            made = [client.predict(each) for each in batch] if load.in_turn else client.predict_batch(batch)
            return made, time.perf_counter()

    with ThreadPoolExecutor(load.clients) as pool:
        sessions = [pool.submit(session) for _ in range(load.clients)]
        ready.wait(PATIENCE)
        started = time.perf_counter()
        ended = [one.result() for one in sessions]
    seconds = max(end for _, end in ended) - started
    predictions = [prediction for made, _ in ended for prediction in made]
    check_results(case, model, model.predict_integers(sample)[0][0], predictions)
    return _row(case, model, network.name, load, seconds, sum(_bytes(made) for made, _ in ended))


def _row(case: Case, model: Model, network: str, load: Load, seconds: float, transferred: int) -> Throughput:
    count = load.clients * load.inputs
    return Throughput(
        name=case.name,
        mode=model.manifest.mode,
        network=network,
        clients=load.clients,
        inputs=load.inputs,
        in_turn=load.in_turn,
        batch=load.batch,
        seconds=seconds,
        images_per_second=count / seconds,
        bytes_per_image=transferred / count,
    )


def _bytes(predictions: list[Prediction], sessions: int = 1) -> int:
    """What sessions sent both ways: the set-up of each, and the other phases of each prediction."""
    setup = sessions * predictions[-1].phases["setup"].bytes
    return setup + sum(made.phases[phase].bytes for made in predictions for phase in ("offline", "online"))
