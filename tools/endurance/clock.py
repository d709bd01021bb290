"""Clocks jump: during a session, between a preparation and its use, and around a certificate's term.

The age of kept material, the terms of certificates, and the times in logs follow the wall clock; time-outs follow the
monotonic clock. A preloaded C library shifts both for one running process.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from endurance.parties import Event, Served, failures, made, predicting, served
from endurance.records import History
from endurance.relay import Relay, relay
from endurance.trial import Trial
from endurance.wire import names_used
from helpers.authority import make_authority
from helpers.processes import Serving, serving

SOURCE = Path(__file__).with_name("clock_shift.c")

HOUR, DAY, YEAR = 3600, 86_400, 31_557_600

#: Days that kept material is good for.
TERM = 7

#: Jumps of the wall clock in the middle of a session, in seconds: forward, back, and before 1970.
JUMPS = (10 * YEAR, -10 * YEAR, -70 * YEAR, 0)

#: Predictions between two jumps.
BETWEEN = 5


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a party.

    Attributes:
        library: The compiled library.
        file: Where the shifts are.
    """

    library: Path
    file: Path

    @property
    def within(self) -> tuple[str, ...]:
        """The command that runs another with this clock."""
        return ("env", f"LD_PRELOAD={self.library}", f"CLOCK_SHIFT={self.file}")

    def shift(self, wall: int = 0, monotonic: int = 0) -> None:
        """Set by how many seconds the clocks are off, of running processes too."""
        with self.file.open("r+b" if self.file.exists() else "w+b") as file:
            file.write(struct.pack("qq", wall, monotonic))


def run(trial: Trial) -> None:
    """Shift clocks during sessions, between them, and around certificates' terms."""
    compiler = shutil.which("cc")
    if compiler is None:
        trial.left_out.append("clock jumps: there is no C compiler")
        return
    library = trial.folder / "clock_shift.so"
    command = [compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
    subprocess.run(command, check=True)
    clocks = {party: Clock(library, trial.folder / f"clock-of-{party}") for party in ("server", "client")}
    network = served(trial.folder, "cheetah")
    _during(trial, network, clocks)
    _between(trial, network, clocks)
    _certificates(trial, network, clocks)


def _during(trial: Trial, network: Served, clocks: dict[str, Clock]) -> None:
    """Jumps while a session is under way, of either party's clock."""
    said: list[Event] = []
    jumps = 0
    _still(clocks)
    with serving(trial.folder / "during", network.model, within=clocks["server"].within) as server:
        client = {"pin": server.document["fingerprint"]}
        count = BETWEEN * (2 * len(JUMPS) + 1)
        with predicting(
            server.address, network.samples, client, clocks["client"].within, count=count, pause_every=BETWEEN
        ) as one:
            for party in ("server", "client"):
                for jump in JUMPS:
                    said += one.until("pause")
                    clocks[party].shift(wall=jump)
                    jumps += 1
                    one.proceed()
            said += one.until("pause")
            one.proceed()
            said += one.finish()
        trial.counts["jumps of the wall clock during a session"] = jumps
        trial.equal("Predictions of that session", made(said), count)
        trial.none("Its errors", failures(said))
        trial.none("Its wrong labels", network.wrong(said))
        _monotonic(trial, network, server, clocks)


def _monotonic(trial: Trial, network: Served, server: Serving, clocks: dict[str, Clock]) -> None:
    """An hour that passes at once for a party in a session, as for a machine that was asleep."""
    unclear = []
    client = {"pin": server.document["fingerprint"]}
    for party in ("server", "client"):
        _still(clocks)
        with predicting(
            server.address, network.samples, client, clocks["client"].within, count=3 * BETWEEN, pause_every=BETWEEN
        ) as one:
            said = one.until("pause")
            clocks[party].shift(monotonic=HOUR)
            one.proceed()
            said += one.until("pause")
            for _ in range(2):
                one.proceed()
                said += one.until("pause")
            if (made(said) < 3 * BETWEEN and len(failures(said)) != 1) or network.wrong(said) or one.told():
                unclear.append(f"{party}: {failures(said)} {network.wrong(said)} {one.told()[-200:]}")
    trial.none("Sessions that meet an hour's sleep and neither go on nor end with one sentence", unclear)
    after = _predict(network, server.address, client, clocks, 2)
    trial.equal("Predictions of the next client", made(after), 2)


def _between(trial: Trial, network: Served, clocks: dict[str, Clock]) -> None:
    """Kept material, and clocks that jump before it is used."""
    homes = {party: trial.folder / "between" / party for party in clocks}
    histories = [History(home, party) for party, home in homes.items()]
    _still(clocks)
    with (
        serving(homes["server"], network.model, "--insecure-plaintext", within=clocks["server"].within) as server,
        relay(server.address) as way,
    ):
        client = {"insecure_plaintext": True, "state_dir": homes["client"]}
        wrong = []
        for who, days, expected in _AGES:
            stock = _aged(network, way, client, clocks, (who, days))
            if stock != expected:
                wrong.append(f"{who} {days:+g} days: {stock} of 2 predictions of kept material, not {expected}")
            for history in histories:
                history.look()
        used = names_used(way.streams)
    trial.counts["jumps between preparation and use"] = len(_AGES)
    trial.none(f"Material that is used although {TERM} days passed, or is not although fewer did", wrong)
    trial.none("Kept material that crosses the wire to be used twice", sorted({n for n in used if used.count(n) > 1}))
    trial.none(
        "Material that was used, and could be used again later", [n for each in histories for n in each.returned]
    )


#: Whose clock jumps, by how many days, and how many of two predictions then use what was kept before the jump.
_AGES = (
    ("both", TERM - 1, 2),
    ("both", TERM + 1, 0),
    ("client", TERM + 1, 0),
    ("server", TERM + 1, 0),
    ("both", -365, 2),
    ("client", 3650, 0),
    ("server", -3650, 2),
)


def _aged(
    network: Served, way: Relay, client: Mapping[str, object], clocks: dict[str, Clock], jump: tuple[str, float]
) -> int:
    """Keep two predictions, jump, predict twice, jump back, predict again: how many of the two used what was kept."""
    _still(clocks)
    _predict(network, way.address, client, clocks, 0, keep=2)
    for party, clock in clocks.items():
        if jump[0] in ("both", party):
            clock.shift(wall=round(jump[1] * DAY))
    said = _predict(network, way.address, client, clocks, 2)
    _still(clocks)
    # Whatever the jump left is used up, or of no use, before the next.
    said += _predict(network, way.address, client, clocks, 3)
    assert made(said) == 5, said
    assert not network.wrong(said), said
    return sum(event["of_stock"] for event in said[: _place_of_second_session(said)] if event["event"] == "predicted")


def _place_of_second_session(said: list[Event]) -> int:
    return next(place for place, event in enumerate(said) if event["event"] == "end")


def _certificates(trial: Trial, network: Served, clocks: dict[str, Clock]) -> None:
    """A client whose clock is outside the term of the server's certificate."""
    authority = make_authority(trial.folder / "authority")
    certificate, key = authority.issue("server", "serverAuth")
    _still(clocks)
    tls = ("--tls-cert", certificate, "--tls-key", key)
    with serving(trial.folder / "signed", network.model, *tls) as server:
        trusting = {"ca": authority.certificate}
        pinning = {"pin": server.document["fingerprint"]}
        for name, days in (("before", -30), ("within", 0), ("after", 30)):
            clocks["client"].shift(wall=days * DAY)
            said = _predict(network, server.address, trusting, clocks, 1)
            refused = failures(said)
            if days:
                clear = len(refused) == 1 and refused[0].startswith("TransportError") and "certificate" in refused[0]
                trial.check(f"A client {name} the certificate's term", refused, "one sentence about it", clear)
            else:
                trial.equal(f"Predictions of a client {name} the certificate's term", made(said), 1)
            pinned = _predict(network, server.address, pinning, clocks, 1)
            trial.equal(f"Predictions {name} its term of a client that pins the certificate", made(pinned), 1)


def _predict(
    network: Served, address: str, client: Mapping[str, object], clocks: dict[str, Clock], count: int, keep: int = 0
) -> list[Event]:
    """What a client with its own clock says."""
    with predicting(address, network.samples, client, clocks["client"].within, count=count, keep=keep) as one:
        return one.finish()


def _still(clocks: dict[str, Clock]) -> None:
    """Let all clocks be right."""
    for clock in clocks.values():
        clock.shift()
