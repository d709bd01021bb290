"""What is told of a connection to a server, and of a request to a gateway, once it is over.

Logs, metrics and traces are made of these records, so that nothing is in them that is not here: no input, no result, no
key, no token, and nothing else that a caller wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lanner.prediction import Layer, Phase

#: How a connection may end where a model was agreed on, and where none was.
MODEL_ENDINGS = ("done", "stopped", "busy", "failed")
OTHER_ENDINGS = ("listed", "stopped", "busy", "refused", "no_connection")

_SESSION_CAUSES = ("protocol", "cheating", "unchecked", "timeout", "disconnected", "refused", "panic", "server")

#: Why connections end as they should not, by ending. The others have no cause.
CAUSES = {
    "busy": ("connections", "sessions", "material", "turn"),
    "refused": ("version", "model", "pin", "parameters", "tls", *_SESSION_CAUSES),
    "failed": _SESSION_CAUSES,
    "no_connection": ("tls", "certificate", "protocol", "timeout", "disconnected", "server"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a phase by a server, at a client's request.

    Attributes:
        phase: ``setup``, ``offline`` or ``online``.
        after: When it began, in seconds from the session's begin.
        predictions: For how many it was; 0 of a set-up.
        cost: What it took.
        layers: What its layers took, as the server sees it; none of a set-up.
    """

    phase: str
    after: float
    predictions: int
    cost: Phase
    layers: tuple[Layer, ...]

    @classmethod
    def from_entry(cls, run: Mapping[str, Any]) -> Run:
        """Read one of the ``runs`` of an entry of `Server.journal`."""
        cost = Phase(run["seconds"], run["bytes_sent"], run["bytes_received"], run["rounds"])
        layers = tuple(
            Layer(
                name=layer["name"],
                protocol=layer["protocol"],
                phase=run["phase"],
                seconds=layer["seconds"],
                computing=layer["computing"],
                bytes=layer["bytes_sent"] + layer["bytes_received"],
                bytes_sent=layer["bytes_sent"],
                rounds=layer["rounds"],
            )
            for layer in run["layers"]
        )
        return cls(run["phase"], run["after"], run["predictions"], cost, layers)


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to a server that ended or was turned away.

    Attributes:
        number: Its number in the order of their begins, from 1 at the server's start: no more than a count.
        time: When it ended, in seconds since 1970.
        peer: The client's address, for the log alone.
        certificate: The fingerprint of the client's certificate, for the log alone; None if it showed none.
        model: The name of the model that was agreed on; None if it did not get so far.
        mode: The model's mode.
        predictions: How many were made.
        seconds: How long it lasted; 0 where it was turned away at once.
        bytes_sent: Bytes that the server sent on TCP.
        bytes_received: Bytes that the server received.
        ending: One of `MODEL_ENDINGS` or `OTHER_ENDINGS`.
        reason: Why, in a sentence, where something went wrong; else empty.
        cause: The same as one of the `CAUSES` of this ending; empty where it has none.
        runs: What its phases took, the first ones.
        runs_omitted: How many more there were.
    """

    number: int
    time: float
    peer: str
    model: str | None
    mode: str | None
    predictions: int
    seconds: float
    bytes_sent: int
    bytes_received: int
    ending: str
    reason: str
    cause: str = ""
    certificate: str | None = None
    runs: tuple[Run, ...] = ()
    runs_omitted: int = 0

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any], modes: Mapping[str, str]) -> Connection:
        """Read an entry of `Server.journal`; `modes` are those of the served models, by name."""
        model = entry["model"]
        return cls(
            number=entry["session"],
            time=entry["time"],
            peer=entry["peer"],
            model=model,
            mode=None if model is None else modes[model],
            predictions=entry["predictions"],
            seconds=entry["seconds"],
            bytes_sent=entry["sent"],
            bytes_received=entry["received"],
            ending=entry["ending"] if model is not None else _WITHOUT_MODEL.get(entry["ending"], entry["ending"]),
            # What a session that was cut was waiting for is of no interest.
            reason="" if entry["ending"] == "stopped" else entry["reason"],
            cause=entry["cause"] or "",
            certificate=entry["certificate"],
            runs=tuple(map(Run.from_entry, entry["runs"])),
            runs_omitted=entry["runs_omitted"],
        )


#: What an ending of the journal means where no model was agreed on.
_WITHOUT_MODEL = {"done": "listed", "failed": "refused"}


@dataclass(frozen=True, slots=True)
class Work:
    """What the predictions of a request took on the gateway's side.

    Attributes:
        samples: How many were predicted.
        phases: The cost of each phase; the set-up is among them where this request paid it.
        layers: The cost of each layer, prediction by prediction.
    """

    samples: int
    phases: Mapping[str, Phase]
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a gateway that was answered.

    Attributes:
        number: Its number, from 1 at the gateway's start.
        time: When it was answered, in seconds since 1970.
        peer: The caller's address, for the log alone.
        method: The HTTP method.
        route: The path with placeholders in place of what a caller wrote; None where there is no such route.
        status: The HTTP status of the answer.
        seconds: From the request to the answer.
        model: The model's name, where the request got so far.
        mode: The model's mode.
        work: What its predictions took, where there are some.
        fault: The kind of the error, where the gateway itself failed.
        trace: The headers of the W3C Trace Context that came with it.
    """

    number: int
    time: float
    peer: str
    method: str
    route: str | None
    status: int
    seconds: float
    model: str | None = None
    mode: str | None = None
    work: Work | None = None
    fault: str | None = None
    trace: Mapping[str, str] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """How many samples were predicted."""
        return 0 if self.work is None else self.work.samples


#: Told of each request when it was answered.
Listener = Callable[[Request], None]
