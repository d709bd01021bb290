"""Ten thousand predictions in each interactive mode, with memory and open files of both parties looked at all along.

Resident memory is what the system sees, with what the C library keeps of what was freed; a client's live bytes are what
it counts as allocated and not freed, so that growth of them is a leak. The client is a program that runs for long, and
sets what [a page](how-to/keep-a-client-running.md) tells such programs to set.
"""

from __future__ import annotations

from pathlib import Path

from endurance.clients import MODES
from endurance.parties import Event, failures, made, predicting, served
from endurance.processes import Usage, await_that, slope, usage
from endurance.trial import Trial
from helpers.processes import serving

#: Predictions in each mode.
PREDICTIONS = 10_000

#: Sessions among which they are divided: memory is looked at after each.
SESSIONS = 40

#: The same of live bytes, which nothing but a leak moves much.
LIVE_GROWTH = 1 << 20

#: The settings of programs that run for long: docs/how-to/keep-a-client-running.md.
LONG_RUNNING = ("env", "MALLOC_MMAP_THRESHOLD_=4194304", "MALLOC_TRIM_THRESHOLD_=8388608")

#: Bytes by which a process may have grown over the last three quarters of a mode's predictions: what the C library's
#: allocator is found to move about. Ten thousand predictions that leave 600 bytes each are beyond.
GROWTH = 4 << 20

#: Seconds that a server may take to forget a session that was closed.
GOODBYE = 5.0


def run(trial: Trial) -> None:
    """Soak one mode after another."""
    for mode in MODES:
        _soak(trial, mode)


def _soak(trial: Trial, mode: str) -> None:
    network = served(trial.folder, mode)
    count = trial.scaled(PREDICTIONS, SESSIONS)
    points: list[tuple[int, Usage, Usage]] = []
    live: list[tuple[float, float]] = []
    said: list[Event] = []
    with serving(trial.folder / f"state-{mode}", network.model) as server:
        pin = {"pin": server.document["fingerprint"]}
        options = {"count": count, "each": -(-count // SESSIONS), "one_by_one": False, "paced": True}
        idle = usage(server.process.pid).descriptors
        with predicting(server.address, network.samples, pin, LONG_RUNNING, **options) as client:
            for event in client.events():
                said.append(event)
                if event["event"] == "closed":
                    # A session that was closed a moment ago is still saying goodbye.
                    await_that(lambda: usage(server.process.pid).descriptors <= idle, GOODBYE)
                    points.append((event["done"], usage(server.process.pid), usage(client.process.pid)))
                    if event["live"] is not None:
                        live.append((event["done"], event["live"]))
                    client.proceed()
    trial.counts[f"{mode}: predictions"] = made(said)
    trial.equal(f"{mode}: all predictions are made", made(said), count)
    trial.none(f"{mode}: errors", failures(said))
    trial.none(f"{mode}: labels other than the fixed-point reference's", network.wrong(said))
    _save(trial.folder / f"{mode}.csv", points)
    settled = [point for point in points if point[0] > count / 4]
    for side, party in ((1, "server"), (2, "client")):
        series = [(float(done), float(point.resident)) for done, *usages in settled for point in [usages[side - 1]]]
        trial.counts[f"{mode}: {party} at the end, MB"] = round(series[-1][1] / 1e6, 1)
        trial.most(
            f"{mode}: growth of the {party} over the last three quarters", _growth(series), GROWTH / 2**20, "MiB"
        )
        descriptors = sorted({usages[side - 1].descriptors for _, *usages in settled})
        trial.equal(f"{mode}: open files of the {party} after every session", descriptors, descriptors[:1])
    if live:
        grown = _growth([point for point in live if point[0] > count / 4])
        claim = f"{mode}: growth of the client's live bytes over the last three quarters"
        trial.most(claim, grown, LIVE_GROWTH / 2**20, "MiB")
    else:
        trial.left_out.append(f"{mode}: live bytes, which this C library does not tell")


def _growth(series: list[tuple[float, float]]) -> float:
    """By how many MiB bytes have grown along a series: what the line that fits it best rises by."""
    return slope(series) * (series[-1][0] - series[0][0]) / 2**20


def _save(path: Path, points: list[tuple[int, Usage, Usage]]) -> None:
    """Write predictions, and resident bytes, descriptors and threads of server and client."""
    rows = [
        [done, *(value for party in (server, client) for value in _values(party))] for done, server, client in points
    ]
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in rows), encoding="ascii")


def _values(party: Usage) -> tuple[int, int, int]:
    return party.resident, party.descriptors, party.threads
