"""Fifty clients at once use one server, in several modes, each from its own process."""

from __future__ import annotations

from contextlib import ExitStack

from endurance.parties import Event, Served, failures, made, predicting, served
from endurance.processes import await_that, usage
from endurance.trial import Trial
from helpers.processes import HUNG, Serving, serving

MODES = ("gazelle", "falcon", "cheetah", "tabula")

#: Clients at once, and predictions of each.
CLIENTS, PREDICTIONS = 50, 20

#: Seconds that a client may wait for its turn among the others.
PATIENCE = 600


def run(trial: Trial) -> None:
    """Start all clients at once, and compare every label."""
    networks = [served(trial.folder, mode) for mode in MODES]
    clients, each = trial.scaled(CLIENTS, 5), trial.scaled(PREDICTIONS, 2)
    models = [f"{mode}={network.model}" for mode, network in zip(MODES, networks, strict=True)]
    with serving(trial.folder / "state", *models, "--max-sessions", clients, "--timeout", PATIENCE) as server:
        before = usage(server.process.pid).descriptors
        said = _all_at_once(server, networks, clients, each)
        seconds = await_that(lambda: usage(server.process.pid).descriptors <= before, HUNG)
        log = server.log()
    wrong = [label for network, events in said for label in network.wrong(events)]
    trial.counts |= {"clients at once": clients, "predictions": sum(made(events) for _, events in said)}
    trial.equal("Every client makes all its predictions", trial.counts["predictions"], clients * each)
    trial.none("Clients that fail", [sentence for _, events in said for sentence in failures(events)])
    trial.none("Labels other than the fixed-point reference's", wrong)
    trial.none("Sessions that the server calls failed", _failed(log))
    trial.most("The server's descriptors are those of before, after the last client", seconds, HUNG, "s")


def _all_at_once(server: Serving, networks: list[Served], clients: int, each: int) -> list[tuple[Served, list[Event]]]:
    """What every client says, with the network that it asks."""
    pin = {"pin": server.document["fingerprint"], "timeout": PATIENCE}
    with ExitStack() as stack:
        running = []
        for number in range(clients):
            network, mode = networks[number % len(MODES)], MODES[number % len(MODES)]
            client = predicting(server.address, network.samples, {**pin, "model": mode}, count=each)
            running.append((network, stack.enter_context(client)))
        return [(network, client.finish(PATIENCE)) for network, client in running]


def _failed(log: str) -> list[str]:
    """The lines of a server's log about sessions that did not end well."""
    return [line for line in log.splitlines() if "failed" in line or "panicked" in line]
