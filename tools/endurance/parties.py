"""The parties of a trial: models, and clients in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from helpers.processes import HUNG
from lanner.datasets import load_digits
from lanner.embedded import compile_embedded

PREDICTOR = Path(__file__).with_name("predictor.py")

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """A compiled network of digits, samples for it, and the labels that the fixed-point reference gives them.

    Attributes:
        model: The compiled network's file.
        samples: The samples' file: shape (n, 1, 28, 28), 0 to 1.
        labels: Of each sample.
    """

    model: Path
    samples: Path
    labels: list[int]

    def wrong(self, events: list[Event]) -> list[str]:
        """Of the predictions among events, those whose label is another than the reference's."""
        made = [event for event in events if event["event"] == "predicted"]
        return [str(event) for event in made if event["label"] != self.labels[event["index"] % len(self.labels)]]


def served(folder: Path, mode: str = "cheetah", network: str = "mnist_d", count: int = 360) -> Served:
    """Compile an embedded network with labels as its output, and save it and digits of the test split."""
    x = load_digits("test")[0][:count]
    model = compile_embedded(network, mode=mode, output="label")
    found = Served(folder / f"{mode}.lanner", folder / f"{mode}.npy", model.predict_fixed(x).argmax(1).tolist())
    model.save(found.model)
    np.save(found.samples, x)
    return found


@dataclass(frozen=True, slots=True)
class Predictor:
    """A client that runs `endurance.predictor`; its standard error is kept in a file."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def events(self) -> Iterator[Event]:
        """What it says, as it says it, until it ends. A line that a killed process left half is no event."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                yield json.loads(line)

    def proceed(self) -> None:
        """Let a client go on that paused; one that ended meanwhile does not."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def until(self, event: str) -> list[Event]:
        """What it says until it says this, or ends."""
        said: list[Event] = []
        for heard in self.events():
            said.append(heard)
            if heard["event"] == event:
                break
        return said

    def finish(self, seconds: float = HUNG) -> list[Event]:
        """All that it still says; it must end in time."""
        output, _ = self.process.communicate(timeout=seconds)
        return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]

    def told(self) -> str:
        """What it has printed on standard error."""
        self.errors.seek(0)
        return self.errors.read()


@contextmanager
def predicting(
    address: str, samples: Path, client: Mapping[str, object], wrap: tuple[str, ...] = (), **options: object
) -> Iterator[Predictor]:
    """Run a client until the block ends.

    Args:
        address: The server's.
        samples: A file of samples.
        client: Keywords of `lanner.Client`.
        wrap: A command that runs the client's command.
        options: Those of `endurance.predictor.main`.
    """
    given = json.dumps({"client": client, **options}, default=str)
    command = [*wrap, sys.executable, str(PREDICTOR), address, str(samples), given]
    with (
        tempfile.TemporaryFile("a+") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Predictor(process, errors)
        finally:
            process.kill()


def made(events: list[Event]) -> int:
    """How many predictions there are among events."""
    return sum(event["event"] == "predicted" for event in events)


def failures(events: list[Event]) -> list[str]:
    """The sentences of those that failed."""
    return [f"{event['kind']}: {event['what']}" for event in events if event["event"] == "failed"]
