"""Kills client or server without warning at two hundred random moments, while they make and use kept material.

A client names kept material when it uses it. A relay without TLS records these requests; they are compared with both
parties' indices after each death.
"""

from __future__ import annotations

import random
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from endurance.parties import Event, Predictor, Served, failures, made, predicting, served
from endurance.records import History
from endurance.relay import Relay, relay
from endurance.trial import Trial
from endurance.wire import names_used
from helpers.processes import Serving, serving

#: Deaths.
DEATHS = 200

#: Who dies, with how often of ten.
WHO = ("client",) * 4 + ("server",) * 4 + ("both",) * 2

#: The longest time from a client's start to the death, in seconds: some die as they start, most at work.
LATEST = 2.0

#: What a client does over and over: prepares so many, then predicts so many, the last of them with new material.
KEPT, PREDICTED = 3, 4

#: Seconds that a client may take to notice that its server died, and to end.
NOTICE = 10.0

#: Seconds within which one that comes after a death must have been served.
RECOVERY = 30.0


@dataclass(slots=True)
class Story:
    """What all deaths led to."""

    died: list[str] = field(default_factory=list)
    of_stock: int = 0
    predicted: int = 0
    wrong: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    unrecovered: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def hear(self, network: Served, events: list[Event]) -> None:
        """Take down what a client said."""
        self.predicted += made(events)
        self.of_stock += sum(event["event"] == "predicted" and event["of_stock"] for event in events)
        self.wrong += network.wrong(events)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where deaths happen."""

    network: Served
    folder: Path
    relay: Relay
    port: int
    story: Story

    @contextmanager
    def server(self) -> Iterator[Serving]:
        """The server, with the same address and state directory each time."""
        listen = ("--listen", f"127.0.0.1:{self.port}", "--insecure-plaintext", "--timeout", 20)
        with serving(self.folder / "server", self.network.model, *listen) as running:
            yield running

    def client(self, **options: object) -> AbstractContextManager[Predictor]:
        """A client with its state directory."""
        config = {"insecure_plaintext": True, "state_dir": self.folder / "client", "timeout": 20}
        return predicting(self.relay.address, self.network.samples, config, (), **options)

    def recover(self) -> bool:
        """Whether two predictions succeed now, the first with what is kept, if anything is."""
        start = time.monotonic()
        with self.client(count=2) as client:
            said = client.finish(RECOVERY)
        self.story.hear(self.network, said)
        self.story.slowest = max(self.story.slowest, time.monotonic() - start)
        if made(said) != 2:
            self.story.unrecovered.append(f"after death {len(self.story.died)}: {failures(said)}")
        return made(said) == 2


def run(trial: Trial) -> None:
    """Kill, recover, look, and start again."""
    network, deaths = served(trial.folder, "cheetah"), trial.scaled(DEATHS, 10)
    rng = random.Random(0x4B494C4C)  # noqa: S311 - moments, not secrets
    histories = [History(trial.folder / party, party) for party in ("client", "server")]
    port = _free_port()
    with relay(f"127.0.0.1:{port}") as link:
        scene = Scene(network, trial.folder, link, port, Story())
        while len(scene.story.died) < deaths:
            _live(scene, rng, histories, deaths)
        used = names_used(link.streams)
    _tell(trial, scene.story, histories, used)


def _live(scene: Scene, rng: random.Random, histories: list[History], deaths: int) -> None:
    """One life of the server."""
    story = scene.story
    with scene.server() as server:
        while len(story.died) < deaths:
            if story.died:
                scene.recover()
            for history in histories:
                history.look()
            who = rng.choice(WHO)
            _die(scene, server, who, rng.uniform(0, LATEST))
            for history in histories:
                history.look()
            if who != "client":
                return


def _die(scene: Scene, server: Serving, who: str, moment: float) -> None:
    """Let a client work, and kill at a moment."""
    story = scene.story
    with scene.client(count=1 << 30, each=PREDICTED, keep=KEPT) as client:
        time.sleep(moment)
        if who != "client":
            server.process.send_signal(signal.SIGKILL)
        if who != "server":
            client.process.send_signal(signal.SIGKILL)
        start = time.monotonic()
        said = client.finish(NOTICE + 60)
        if who == "server":
            clear = client.process.returncode == 1 and len(failures(said)) == 1 and not client.told()
            if not clear or time.monotonic() - start > NOTICE:
                story.unclear.append(f"after {time.monotonic() - start:.1f} s: {failures(said)} {client.told()[-200:]}")
    story.hear(scene.network, said)
    story.died.append(who)


def _tell(trial: Trial, story: Story, histories: list[History], used: list[str]) -> None:
    client, server = histories
    trial.counts |= {f"deaths of {who}": story.died.count(who) for who in ("client", "server", "both")}
    trial.counts |= {"predictions": story.predicted, "of kept material": story.of_stock}
    trial.counts |= {"pieces of material that were made": len(client.states), "that a client asked to use": len(used)}
    again = sorted({name for name in used if used.count(name) > 1})
    trial.none("Kept material that crosses the wire to be used twice", again)
    trial.none("Material that was used, and could be used again later", [*client.returned, *server.returned])
    trial.none("Material requested that the client had not marked as used", sorted(set(used) - client.used()))
    # Whoever died after asking leaves a name that the server never heard of, so it may have used fewer.
    trial.check(
        "No more predictions of kept material than names used on both sides",
        story.of_stock,
        f"at most {len(set(used) & client.used() & server.used())}",
        story.of_stock <= len(set(used) & client.used() & server.used()),
    )
    trial.check("Kept material is used at all", story.of_stock, "more than 0", story.of_stock > 0)
    trial.none("Labels other than the fixed-point reference's", story.wrong)
    trial.none(f"Clients that do not end with one sentence within {NOTICE:g} s of their server's death", story.unclear)
    trial.none("Deaths after which the next client is not served", story.unrecovered)
    trial.most("The slowest client after a death, its start included", story.slowest, RECOVERY, "s")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
