"""The gateway's sessions with the server: one for each model, kept between predictions, reopened where it failed."""

from __future__ import annotations

import hmac
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lanner.client import Client
from lanner.errors import BusyError, InputError, LannerError, PeerError
from lanner.forks import OfProcess
from lanner.interrupts import abandon
from lanner.manifest import Manifest
from lanner.prediction import Prediction, SentMessage
from lanner.progress import PartProgress, SetUpWatch, StepProgress

#: A commitment that no model has: a server that is asked for it answers, and no set-up follows.
_NO_MODEL = "0" * 64

#: For how long an answer about the server's readiness holds, in seconds.
_READY_SECONDS = 2.0

#: Seconds that sessions may take to end when the gateway stops.
_CLOSE_SECONDS = 2.0


class Connect(Protocol):
    """Opens a session: checks the server, shakes hands, and does the set-up."""

    def __call__(self, *, pin_model: str | None, probing: bool, watch: SetUpWatch | None = None) -> Client:
        """Connect.

        Args:
            pin_model: The commitment of the one model that is accepted; None for what the user gave.
            probing: Whether the question is only if the server answers, so that a short wait is enough.
            watch: What tells how far the set-up has come.
        """


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request for predictions gave.

    Attributes:
        predictions: One for each sample.
        opened: Whether the session was opened for it, so that the set-up was paid now and not before.
        seconds: From the input to the result, waits for other predictions not included.
        longest_sent: The longest message that the server got for the last of them, once there was a session.
    """

    predictions: list[Prediction]
    opened: bool
    seconds: float
    longest_sent: SentMessage


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that waits for its turn."""

    future: Future[Answer]
    read: Callable[[], NDArray[np.float32]]
    ticket: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a prediction has come.

    Attributes:
        set_up: The parts of the set-up of the session that it opened; none where the session was there before.
        steps: The layers, those offline first; none before the session is there.
    """

    set_up: list[PartProgress]
    steps: list[StepProgress]


@dataclass(frozen=True, slots=True)
class _Watched:
    """The prediction that runs.

    Attributes:
        ticket: What it is asked for by.
        session: Its client; None while that is made.
        sessions: How many sessions the client had before.
        before: How far the last of them had come.
    """

    ticket: str
    session: Client | None
    sessions: int
    before: list[StepProgress]


class ServedModel(OfProcess):
    """A model of the server behind, and the one session that asks it.

    Predictions are made one after the other, on a thread of their own.

    Args:
        name: The model's name for callers; what its public half calls it where it is None.
        connect: How a session is opened.

    Attributes:
        name: The model's name.
        manifest: Its public half, under this name. A server that later shows another one under it is refused.

    Raises:
        LannerError: As `lanner.Client`, about the first session.
        MisuseError: If the owner publishes tables of embeddings, and they are not at hand.
    """

    _kind = "gateway"

    def __init__(self, name: str | None, connect: Connect) -> None:
        super().__init__()
        self._connect = connect
        self._set_up = SetUpWatch()
        self._session: Client | None = connect(pin_model=None, probing=False, watch=self._set_up)
        self.manifest: Manifest = self._session.manifest
        try:
            self.manifest.check_tables()
        except LannerError:
            self._session.close()
            raise
        self.name = name or self.manifest.name
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._watched: _Watched | None = None
        self._running: Future[Answer] | None = None
        self._thread = threading.Thread(target=self._work, name=f"lanner-gateway-{self.name}", daemon=True)
        self._thread.start()
        self._readiness = _Readiness(connect)

    def predict(self, read: Callable[[], NDArray[np.float32]], ticket: str = "") -> Future[Answer]:
        """Predict samples as soon as the predictions before are done.

        Args:
            read: Gives the samples, shape (n, *the model's); called on the model's thread, since pictures take time.
            ticket: What the caller may ask for its progress by; nothing where it will not ask.

        Raises:
            MisuseError: In a copy of the process that made it, which has no such thread.
        """
        self._check_process()
        future: Future[Answer] = Future()
        self._calls.put(_Call(future, read, ticket))
        return future

    def progress(self, ticket: str) -> Progress | None:
        """How far the prediction with a ticket has come; None where it does not run, yet or any more."""
        watched = self._watched
        if watched is None or not ticket or not hmac.compare_digest(watched.ticket.encode(), ticket.encode()):
            return None
        set_up = self._set_up.parts()
        if watched.session is None:
            return Progress(set_up, [])
        with suppress(LannerError):
            now = watched.session.progress()
            if watched.session.sessions > watched.sessions:
                # The prediction opened the session, or began again in a new one where that before it ended.
                return Progress(set_up, now)
            if any(part.begun and not part.ended for part in set_up):
                # What had come in the session that ended is lost.
                return Progress(set_up, [])
            return Progress([], [step.since(then) for step, then in zip(now, watched.before, strict=True)])
        return None

    def check_ready(self) -> None:
        """Check that the server behind answers.

        Raises:
            LannerError: Why it does not.
        """
        self._check_process()
        try:
            self._readiness.check()
        except BusyError:
            # A server that has no room for one session more answers, and the one that is kept has its place.
            if self._session is None:
                raise

    def close(self) -> None:
        """End the session; a prediction that still runs is abandoned. A copy of the process leaves both as they are."""
        if self._is_inherited():
            return
        self._calls.put(None)
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive() and self._running is not None:
            abandon(self._running)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            self._running = call.future
            try:
                call.future.set_result(self._answer(call.read(), call.ticket))
            except BaseException as error:  # noqa: BLE001 - handed over to the caller whole
                call.future.set_exception(error)
        self._drop()

    def _answer(self, samples: NDArray[np.float32], ticket: str) -> Answer:
        start = time.monotonic()
        before = 0 if self._session is None else self._session.sessions
        come = [] if self._session is None else self._session.progress()
        self._watched = _Watched(ticket, self._session, before, come)
        try:
            if self._session is None:
                self._session = self._connect(pin_model=self.manifest.commitment, probing=False, watch=self._set_up)
                self._watched = _Watched(ticket, self._session, before, come)
            predictions = self._session.predict_batch(samples)
            seconds, opened = time.monotonic() - start, self._session.sessions > before
            return Answer(predictions, opened, seconds, self._session.longest_sent)
        except InputError:
            raise
        except BaseException:
            # It may be out of step with the server.
            self._drop()
            raise
        finally:
            self._watched = None

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(LannerError):
                session.close()


class _Readiness:
    """Whether the server answers, asked at most once in `_READY_SECONDS`."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._until = 0.0
        self._error: LannerError | None = None

    def check(self) -> None:
        """As `ServedModel.check_ready`."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._error = self._ask()
                self._until = time.monotonic() + _READY_SECONDS
            if self._error is not None:
                raise self._error

    def _ask(self) -> LannerError | None:
        try:
            self._connect(pin_model=_NO_MODEL, probing=True).close()
        except PeerError as error:
            return None if _NO_MODEL in error.what else error
        except LannerError as error:
            return error
        return None
