"""Workers in a cluster, and who of them predicts what.

Tasks go to actors one by one from here, instead of by ``Dataset.map_batches``: a piece that was predicted is in this
process, so that a lost node takes back no result; a row's place is counted where blocks come in order; an actor that
waits for a server that is busy leaves its inputs to others; and errors keep their class. Blocks go from where they are
read to workers; what comes here is results, a few kilobytes each.

Threat model: the cluster is the data owner's, and sees inputs. The server sees several clients of the data owner, each
of which may do what one client may.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lanner.client import ClientKeywords
from lanner.errors import BusyError, InputError, LannerError, TransportError
from lanner.manifest import Manifest
from lanner.prediction import Prediction
from lanner.ray.cluster import cluster_cpus
from lanner.ray.order import LOSSES, Order
from lanner.ray.pieces import ARRAYS, Piece, Reading
from lanner.ray.reader import Reader
from lanner.ray.worker import Worker

#: The share of a CPU that a worker takes: it waits for the server half its time, and reading needs room.
CPUS = 0.5

#: Predictions for which a worker that has nothing to do keeps material.
AHEAD = 8

#: Seconds for which nobody may get on, as where the server is busy, before that is an error.
PATIENCE = 600.0

#: The shortest and the longest time that a worker waits for a server that is busy, in seconds.
_BACKOFF = (0.5, 60.0)

#: Seconds between looks at what has been read, and seconds that sessions may take to end.
_LOOK = 0.1
_CLOSE = 5.0


@dataclass(slots=True)
class _Hand:
    """A worker as it is seen from here.

    Attributes:
        actor: The actor.
        doing: open, predict, prepare or nothing.
        result: What it is about to give.
        piece: The piece that it predicts, with its number.
        is_open: Whether it has had a session.
        keeps: Whether it may keep more material.
        refusals: How often in a row it could not go on.
        until: When it may go on, by the clock of `time.monotonic`.
    """

    actor: Any
    doing: str = ""
    result: Any = None
    piece: tuple[int, Piece] | None = None
    is_open: bool = False
    keeps: bool = True
    refusals: int = 0
    until: float = 0.0


class Pool:
    """Workers with a session each; they are hired with the block and end with it.

    A connection to a cluster must be there.

    Args:
        address: The server, ``HOST[:PORT]``.
        client: Which server is trusted, and what it may take.
        workers: How many; one for each CPU of the cluster where it is None. Those for whom it has no room wait for it.
        cpus: The share of a CPU that each takes.
        ahead: Predictions for which a worker that has nothing to do keeps material.
        patience: Seconds for which nobody may get on before that is an error.
        base: The folder of workers' state directories on each node; see `Worker`.
    """

    def __init__(
        self,
        address: str,
        client: ClientKeywords,
        *,
        workers: int | None = None,
        cpus: float = CPUS,
        ahead: int = AHEAD,
        patience: float = PATIENCE,
        base: str | None = None,
    ) -> None:
        import ray

        self._ray: Any = ray
        self.workers = workers or cluster_cpus()
        actor: Any = ray.remote(Worker).options(num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
        self._hire: Callable[[], Any] = lambda: actor.remote(address, client, base)
        self._ahead, self._patience = ahead, patience
        self._hands: list[_Hand] = []
        self._manifest: Manifest | None = None
        self._lost_opening = 0
        self._since = time.monotonic()
        self._refusal: LannerError | None = None

    def manifest(self) -> Manifest:
        """The model, as soon as a worker has a session.

        Raises:
            LannerError: As `predict`, but for inputs.
        """
        while self._manifest is None:
            self._turn(None)
        return self._manifest

    def gather(self) -> None:
        """Wait until every worker has a session.

        Raises:
            LannerError: As `manifest`.
        """
        self._since = time.monotonic()
        while not all(hand.is_open for hand in self._hands):
            self._turn(None)

    def predict(self, pieces: Generator[Piece], reading: Reading = ARRAYS) -> Iterator[Prediction]:
        """Predict pieces of a dataset, and give the results in its order.

        Args:
            pieces: The pieces.
            reading: How rows become samples, where blocks are Ray Data's.

        Raises:
            InputError: If a row does not fit the model. What came before it has been given then.
            BusyError: If nobody got on for `patience` seconds, since the server had no room.
            TransportError: The same where it was not reached, or at once where the first worker does not reach it.
            PeerError: If the server refuses.
            LannerError: If workers are lost over and over.
        """
        self._since = time.monotonic()
        with Reader(pieces, 2 * self.workers) as reader:
            order = Order(reader)
            while not order.ended:
                self._turn(order, reading)
                for predictions in order.ready():
                    yield from predictions

    def _turn(self, order: Order | None, reading: Reading = ARRAYS) -> None:
        """Give work to who has none, and hear who is done."""
        self._give(order, reading)
        doing = {hand.result: hand for hand in self._hands if hand.doing}
        if any(hand.doing == "predict" for hand in self._hands):
            self._since = time.monotonic()
        if not doing:
            time.sleep(_LOOK)
        else:
            done, _ = self._ray.wait(list(doing), num_returns=len(doing), timeout=0)
            done = done or self._ray.wait(list(doing), timeout=_LOOK)[0]
            for result in done:
                self._hear(doing[result], order)
        self._check_patience()

    def _give(self, order: Order | None, reading: Reading) -> None:
        now = time.monotonic()
        for hand in self._hands:
            if hand.doing or hand.until > now:
                continue
            if not hand.is_open:
                hand.doing, hand.result = "open", hand.actor.open.remote()
            elif order is not None and (taken := order.take()) is not None:
                _, piece = hand.piece = taken
                first, last = piece.places[0][1], piece.places[-1][1]
                task = hand.actor.predict.options(name=f"predict rows {first} to {last}")
                # A block goes from where it lies to the worker, and not through here.
                hand.doing, hand.result = "predict", task.remote(piece.block, piece.rows, reading, first)
            elif order is not None and order.reading and hand.keeps and self._ahead:
                hand.doing, hand.result = "prepare", hand.actor.prepare.remote(self._ahead)

    def _hear(self, hand: _Hand, order: Order | None) -> None:
        """Take what a worker gives, or why it gives nothing."""
        from ray.exceptions import RayActorError, RayTaskError

        doing, piece, result = hand.doing, hand.piece, hand.result
        hand.doing, hand.piece, hand.result = "", None, None
        try:
            found = self._ray.get(result)
        except RayTaskError as failure:
            self._hear_error(hand, failure.cause, piece, order)
            return
        except RayActorError as failure:
            self._lose(hand, doing, failure, piece, order)
            return
        hand.refusals = 0
        self._since, self._refusal = time.monotonic(), None
        if doing == "open":
            hand.is_open, self._manifest, self._lost_opening = True, found, 0
        elif doing == "prepare":
            hand.keeps = found
        elif piece is not None and order is not None:
            number, rows = piece
            placed = zip(found, rows.places, strict=True)
            order.finish(number, [prediction.placed(*place) for prediction, place in placed])

    def _hear_error(
        self, hand: _Hand, error: BaseException, piece: tuple[int, Piece] | None, order: Order | None
    ) -> None:
        if piece is not None and order is not None:
            if isinstance(error, InputError):
                order.fail(piece[0], error)
                return
            order.give_back(*piece)
        if not isinstance(error, LannerError):
            what = f"a worker failed ({type(error).__name__})"
            raise LannerError(what, fix="see Ray's logs of that worker") from None
        # Whom nobody has reached is not there; who was there comes back, as a server that starts again does.
        if not isinstance(error, BusyError) and (self._manifest is None or not isinstance(error, TransportError)):
            raise error
        hand.is_open = False
        hand.until = time.monotonic() + _backoff(hand.refusals)
        hand.refusals += 1
        self._refusal = error

    def _check_patience(self) -> None:
        """Give up where nobody got on for too long.

        Raises:
            LannerError: The last reason why, if there is one.
        """
        if time.monotonic() - self._since > self._patience:
            raise self._refusal or LannerError(
                f"no worker got on for {self._patience:g} s",
                fix="give the cluster more CPUs, or ask for fewer workers; `ray status` shows what waits",
            )

    def _lose(
        self, hand: _Hand, doing: str, failure: Exception, piece: tuple[int, Piece] | None, order: Order | None
    ) -> None:
        """Hire another worker in the place of a lost one, whose inputs run again with fresh material."""
        self._hands[self._hands.index(hand)] = _Hand(self._hire())
        if doing == "open":
            self._lost_opening += 1
            if self._lost_opening >= LOSSES * self.workers:
                raise LannerError(
                    f"workers end before they have a session ({_last_line(failure)})",
                    fix="see Ray's logs; lanner must be installed on every node",
                ) from None
        if piece is not None and order is not None:
            order.lose(*piece)

    def __enter__(self) -> Self:
        self._hands = [_Hand(self._hire()) for _ in range(self.workers)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End sessions in good order where all went well; then the actors."""
        if kind is None:
            idle = [hand.actor.close.remote() for hand in self._hands if hand.is_open]
            with suppress(Exception):
                self._ray.wait(idle, num_returns=len(idle), timeout=_CLOSE)
        for hand in self._hands:
            with suppress(Exception):
                self._ray.kill(hand.actor)


def _backoff(refusals: int) -> float:
    """How long to wait, in seconds: any time up to one that doubles, so that workers do not come all at once."""
    least, most = _BACKOFF
    return random.uniform(0, min(most, least * 2**refusals))  # noqa: S311 - a moment, not a secret


def _last_line(failure: Exception) -> str:
    lines = str(failure).strip().splitlines()
    return lines[-1].strip() if lines else type(failure).__name__
