"""Ten thousand predictions in each interactive mode, while both parties' memory and open files are measured.

Live bytes are allocated and not freed, Python's objects included, so their growth is a leak. Resident memory also
contains freed memory that the C library keeps; the trial claims only that this stays within the library's settings.
Both are measured after each session, once the server has returned its memory. The client has the settings for
[programs that run for long](how-to/keep-a-client-running.md).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from endurance.clients import MODES
from endurance.parties import Event, failures, made, predicting, served
from endurance.processes import Usage, await_that, slope, usage
from endurance.trial import Trial
from helpers.processes import Serving, serving
from helpers.scraping import Scraped

#: Predictions in each mode; SOAK_MODES=NAME,... says which modes are run.
PREDICTIONS = 10_000

#: Sessions among which they are divided: memory is looked at after each.
SESSIONS = 40

#: MiB by which a party's live bytes may have grown over the last three quarters of a mode's predictions. Ten thousand
#: that leave 150 bytes each are beyond.
GROWTH = 1.0

#: The settings of programs that run for long: docs/how-to/keep-a-client-running.md.
LONG_RUNNING = ("env", "MALLOC_MMAP_THRESHOLD_=4194304", "MALLOC_TRIM_THRESHOLD_=8388608")

#: MiB that the C library may keep of what was freed: with these settings 8 in each of the places where it looks for
#: memory, which are up to 8 for each core.
KEPT = 8 * 8 * (os.cpu_count() or 1)

#: Has Python allocate its objects where the C library counts them.
COUNTED = ("env", "PYTHONMALLOC=malloc")

#: Seconds that a server may take to forget a session that was closed.
GOODBYE = 5.0

#: Seconds after which a server has given back what sessions held that ended: longer than `lanner.cli.serve` waits.
GIVEN_BACK = 3.0

#: What a server tells of its live bytes; not under every C library.
ALLOCATED = "lanner_allocated_bytes"


@dataclass(frozen=True, slots=True)
class Point:
    """What a party had after a session.

    Attributes:
        done: Predictions so far.
        usage: What the system tells.
        live: Bytes that it allocated and did not free; None where its C library does not tell.
    """

    done: int
    usage: Usage
    live: float | None


def run(trial: Trial) -> None:
    """Soak one mode after another."""
    for mode in trial.chosen(MODES, "SOAK_MODES"):
        _soak(trial, mode)


def _soak(trial: Trial, mode: str) -> None:
    network = served(trial.folder, mode)
    count = trial.scaled(PREDICTIONS, SESSIONS)
    points: dict[str, list[Point]] = {"server": [], "client": []}
    said: list[Event] = []
    watched = ("--metrics", "127.0.0.1:0")
    with serving(trial.folder / f"state-{mode}", network.model, *watched, within=COUNTED) as server:
        pin = {"pin": server.document["fingerprint"]}
        options = {"count": count, "each": -(-count // SESSIONS), "one_by_one": False, "paced": True}
        idle = usage(server.process.pid).descriptors
        with predicting(server.address, network.samples, pin, (*COUNTED, *LONG_RUNNING), **options) as client:
            for event in client.events():
                said.append(event)
                if event["event"] == "closed":
                    # A session that was closed a moment ago is still saying goodbye.
                    await_that(lambda: usage(server.process.pid).descriptors <= idle, GOODBYE)
                    time.sleep(GIVEN_BACK)
                    done, of_server = event["done"], usage(server.process.pid)
                    points["server"].append(Point(done, of_server, _allocated(server)))
                    points["client"].append(Point(done, usage(client.process.pid), event["live"]))
                    client.proceed()
    trial.counts[f"{mode}: predictions"] = made(said)
    trial.equal(f"{mode}: all predictions are made", made(said), count)
    trial.none(f"{mode}: errors", failures(said))
    trial.none(f"{mode}: labels other than the fixed-point reference's", network.wrong(said))
    for party, seen in points.items():
        _save(trial.folder / f"{mode}-{party}.csv", seen)
        _flat(trial, mode, party, [point for point in seen if point.done > count / 4])


def _allocated(server: Serving) -> float | None:
    scraped = Scraped.of_server(server.document["metrics"])
    return scraped.total(ALLOCATED) if ALLOCATED in scraped.names else None


def _flat(trial: Trial, mode: str, party: str, settled: list[Point]) -> None:
    """Claim that a party does not grow over points that begin when its caches are full."""
    trial.counts[f"{mode}: {party} at the end, MB"] = round(settled[-1].usage.resident / 1e6, 1)
    told = [(point, point.live) for point in settled if point.live is not None]
    if told:
        series = [(point.done, live) for point, live in told]
        claim = f"{mode}: growth of the {party}'s live bytes over the last three quarters"
        trial.most(claim, slope(series) * (series[-1][0] - series[0][0]) / 2**20, GROWTH, "MiB")
        kept = max(point.usage.resident - live for point, live in told)
        trial.most(f"{mode}: memory of the {party} beyond its live bytes, at most", kept / 2**20, KEPT, "MiB")
    else:
        trial.left_out.append(f"{mode}: live bytes of the {party}, which its C library does not tell")
    descriptors = sorted({point.usage.descriptors for point in settled})
    trial.equal(f"{mode}: open files of the {party} after every session", descriptors, descriptors[:1])


def _save(path: Path, points: list[Point]) -> None:
    """Write predictions, and resident bytes, live bytes, descriptors and threads."""
    rows = [
        (point.done, point.usage.resident, point.live, point.usage.descriptors, point.usage.threads) for point in points
    ]
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in rows), encoding="ascii")
