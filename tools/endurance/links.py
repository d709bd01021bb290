"""Links are slow, break, fall silent or flip a bit: the result is right, or one clear error comes in time."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from itertools import product

from endurance import lossy
from endurance.parties import Event, Served, failures, made, predicting, served
from endurance.processes import await_that, usage
from endurance.relay import Link, Trouble, relay
from endurance.trial import Trial
from helpers.processes import Serving, serving

#: Links that carry everything, some badly.
SOUND = {
    "as fast as it goes": Link(),
    "50 ms each way": Link(delay=0.05),
    "1 MB/s each way": Link(rate=1e6),
    "pieces of 100 bytes": Link(piece=100),
}

#: What happens on links that do not.
TROUBLES = tuple(Trouble)

#: Links with each trouble in each direction, at random bytes.
REPEATS = 12

#: Seconds of silence after which either party gives up, and after which it must have done so: the greeting has its own
#: limit of 10 s.
SILENCE, GIVE_UP = 4, 20.0

#: Predictions of each client.
PREDICTIONS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a client of a troubled link ended, after how many seconds."""

    link: Link
    events: list[Event]
    code: int
    seconds: float
    errors: str

    def __str__(self) -> str:
        what = f"{_name(self.link)} at {self.link.at} {'up' if self.link.upwards else 'down'}"
        return f"{what}: code {self.code} after {self.seconds:.1f} s, {failures(self.events)} {self.errors[-200:]}"

    @property
    def is_clear(self) -> bool:
        """Whether it predicted, or failed as a peer or a connection fails, with one sentence."""
        kinds = [event["kind"] for event in self.events if event["event"] == "failed"]
        if self.code == 0:
            return made(self.events) == PREDICTIONS and not kinds
        return self.code == 1 and kinds in (["TransportError"], ["PeerError"]) and not self.errors

    @property
    def is_unnoticed(self) -> bool:
        """Whether the one session that the client opened made all predictions."""
        sessions = [event["sessions"] for event in self.events if event["event"] == "predicted_all"]
        return self.code == 0 and sessions == [1]


def run(trial: Trial) -> None:
    """Predict over each link; then over a network that loses packets."""
    network, rng = served(trial.folder, "cheetah"), random.Random(0x4C494E4B)  # noqa: S311 - places, not secrets
    with serving(trial.folder / "state", network.model, "--timeout", SILENCE) as server:
        idle = usage(server.process.pid).descriptors
        carried = _sound(trial, server, network)
        _troubled(trial, server, network, rng, carried)
        seconds = await_that(lambda: usage(server.process.pid).descriptors <= idle, GIVE_UP)
        trial.most("The server's descriptors are those of before, after the last link", seconds, GIVE_UP, "s")
    lossy.run(trial, network)


def _sound(trial: Trial, server: Serving, network: Served) -> dict[bool, int]:
    """Predict over links that carry everything; how many bytes went up and down on the first."""
    outcomes = []
    for name, link in SOUND.items():
        outcome = _predict(server, network, link)
        outcomes.append(outcome)
        trial.counts[f"{name}: seconds"] = round(outcome.seconds, 1)
    wrong = [str(outcome) for outcome in outcomes if outcome.code or network.wrong(outcome.events)]
    trial.none("Slow links over which a prediction fails or is wrong", wrong)
    return _bytes(server, network)


def _troubled(trial: Trial, server: Serving, network: Served, rng: random.Random, carried: dict[bool, int]) -> None:
    """Predict over links with trouble, and directly after each."""
    outcomes, unserved = [], []
    for trouble, upwards in product(TROUBLES, (True, False)):
        for _ in range(trial.scaled(REPEATS)):
            link = Link(trouble=trouble, at=rng.randrange(carried[upwards]), upwards=upwards)
            outcomes.append(_predict(server, network, link))
        # Whoever comes next is served.
        after = _predict(server, network, Link())
        if after.code or network.wrong(after.events):
            unserved.append(str(after))
    for name, count in Counter(_name(outcome.link) for outcome in outcomes).items():
        trial.counts[f"links with trouble: {name}"] = count
    done = [outcome for outcome in outcomes if not outcome.code]
    trial.counts["of these, clients that noticed nothing"] = sum(outcome.is_unnoticed for outcome in done)
    trial.counts["and that went on in a new session"] = sum(not outcome.is_unnoticed for outcome in done)
    late = [outcome for outcome in outcomes if outcome.seconds > GIVE_UP]
    trial.none("Labels other than the fixed-point reference's", [w for o in outcomes for w in network.wrong(o.events)])
    trial.none("Clients without a result or one clear sentence", [str(each) for each in outcomes if not each.is_clear])
    trial.none(f"Clients that take more than {GIVE_UP:g} s to end, start included", [str(outcome) for outcome in late])
    trial.none("Clients that are not served after a link's trouble", unserved)
    # A flipped bit ends a session of TLS. The next one has fewer predictions to make, and may end before that byte.
    flipped = [each for each in outcomes if each.link.trouble is Trouble.FLIP and each.is_unnoticed]
    trial.none("Flipped bits that TLS does not notice", [str(each) for each in flipped])


def _name(link: Link) -> str:
    return "none" if link.trouble is None else link.trouble.name.lower().replace("_", "-")


def _predict(server: Serving, network: Served, link: Link) -> Outcome:
    start = time.monotonic()
    client = {"pin": server.document["fingerprint"], "timeout": SILENCE}
    with relay(server.address, link) as way, predicting(way.address, network.samples, client, count=PREDICTIONS) as one:
        events = one.finish(GIVE_UP * 3)
        return Outcome(link, events, one.process.returncode, time.monotonic() - start, one.told())


def _bytes(server: Serving, network: Served) -> dict[bool, int]:
    """Bytes that predictions send up and down, a little less: so trouble there comes before the end."""
    client = {"pin": server.document["fingerprint"]}
    with relay(server.address) as way:
        with predicting(way.address, network.samples, client, count=PREDICTIONS) as one:
            one.finish(GIVE_UP)
        return {True: len(way.streams[0]) * 9 // 10, False: way.carried_down * 9 // 10}
