"""The disk with either party's state is full: one clear error, no loss, and service for other clients.

The disk is a file system of some megabytes in memory; mounting it requires root.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from endurance.parties import Event, Served, failures, made, predicting, served
from endurance.records import states
from endurance.trial import Trial
from helpers.processes import Finished, Serving, lanner, serving

#: Megabytes of the disk, which are full of material long before so many predictions are prepared.
DISK, ENDLESS = 24, 1000

#: What a name's state is while its material can be taken.
KEPT = 1

#: A limit that the disk reaches first.
UNLIMITED = ("--max-stock", 1 << 40)


def run(trial: Trial) -> None:
    """Fill the server's disk, then the client's, then start on a disk that is full already."""
    if os.geteuid() != 0:
        trial.left_out.append("a full disk: it needs root, to mount a file system of a size")
        return
    network = served(trial.folder, "cheetah", count=20)
    for party in ("server", "client"):
        with small_disk(trial.folder / f"disk-of-{party}") as disk:
            _fill(trial, network, party, disk)
    with small_disk(trial.folder / "full") as disk:
        fill(disk)
        result = lanner("serve", network.model, "--listen", "127.0.0.1:0", "--state-dir", disk / "state")
        trial.check("A server on a full disk says so and ends", _told(result), "one sentence", _is_clear(result))


def _fill(trial: Trial, network: Served, party: str, disk: Path) -> None:
    homes = {each: trial.folder / f"{party}-full" / each for each in ("server", "client")} | {party: disk / "state"}
    with serving(homes["server"], network.model, *UNLIMITED) as server:
        there = ("--state-dir", homes["client"])
        filling = lanner("prepare", server.address, "--count", ENDLESS, *server.pin, *there)
        kept = {each: _kept(home, each) for each, home in homes.items()}
        both = len(kept["client"] & kept["server"])
        trial.counts[f"{party}'s disk: prepared until it was full"] = both
        trial.check(f"{party}'s disk: preparing ends", _told(filling), "one sentence", _is_clear(filling))
        trial.check(f"{party}'s disk: it holds material by then", both, "more than 0", both > 0)
        fill(disk)
        while_full = _predict(network, server, homes["client"], 2)
        other = _predict(network, server, None, 2)
        _make_room(disk)
        left = {each: _kept(home, each) for each, home in homes.items()}
        after = _predict(network, server, homes["client"], len(left["client"] & left["server"]))
        again = lanner("prepare", server.address, "--count", 2, *server.pin, *there)
        log = server.log()
    clear = made(while_full) == 2 or len(failures(while_full)) == 1
    trial.check(
        f"{party}'s disk: predictions with no byte free succeed, or end with one sentence",
        failures(while_full) or f"{made(while_full)} predictions",
        "2, or one sentence",
        clear,
    )
    trial.none(f"{party}'s disk: wrong labels", network.wrong([*while_full, *other, *after]))
    trial.equal(f"{party}'s disk: predictions of a client that keeps nothing, meanwhile", made(other), 2)
    of_stock = sum(event["event"] == "predicted" and event["of_stock"] for event in after)
    expected = both - 2
    trial.check(
        f"{party}'s disk: of what was kept, all but what was tried meanwhile serves once there is room",
        f"{of_stock} predictions",
        f"at least {expected}",
        of_stock >= expected,
    )
    trial.equal(f"{party}'s disk: once there is room, 2 more are prepared", again.document.get("prepared"), 2)
    trial.none(f"{party}'s disk: panics in the server's log", [line for line in log.splitlines() if "panic" in line])


def _predict(network: Served, server: Serving, home: Path | None, count: int) -> list[Event]:
    """What a client with a state directory, or without, says of so many predictions."""
    client = {"pin": server.document["fingerprint"], "state_dir": home}
    with predicting(server.address, network.samples, client, count=count) as one:
        return one.finish()


def _kept(home: Path, party: str) -> set[str]:
    """The names of material that a party keeps."""
    return {name for name, state in states(home, party).items() if state == KEPT}


def _is_clear(result: Finished) -> bool:
    """Whether a command failed as it should: with an error in its document, and no trace or panic."""
    return result.code in (2, 4, 5) and "error" in result.document and "Traceback" not in result.errors


def _told(result: Finished) -> str:
    return f"code {result.code}: {result.document.get('error', {}).get('what', result.errors[-200:])}"


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 8, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def _make_room(disk: Path) -> None:
    """Let the disk have twice its size."""
    subprocess.run(["mount", "-o", f"remount,size={2 * DISK}m", str(disk)], check=True)  # noqa: S607 - on the path


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of `DISK` megabytes, until the block ends."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607 - on the path
