"""The data owner's party: asks a server for private predictions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.embeddings import read_tables
from lanner.errors import InputError, MisuseError, ModelError, PeerError, TransportError, native_errors
from lanner.files import check_file
from lanner.forks import OfProcess
from lanner.heap import give_back_freed
from lanner.inputs import batch_of, check_range
from lanner.interrupts import interruptible
from lanner.limits import limits_document
from lanner.manifest import Manifest
from lanner.named import Given
from lanner.prediction import Phase, Prediction, SentMessage, phases_of
from lanner.progress import SetUpWatch, StepProgress
from lanner.state import state_path
from lanner.trust import Trust, parse_address

T = TypeVar("T")

#: Seconds without a byte from the server after which the client gives up.
DEFAULT_TIMEOUT = 60.0

#: Seconds before another session is asked for where one ended.
_LEAVING = 0.3


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that a server offers.

    Attributes:
        name: The name to ask for, as the server chose it.
        commitment: Its identity, which a client pins; 64 hexadecimal digits.
    """

    name: str
    commitment: str


def list_models(
    address: str,
    *,
    pin: str | None = None,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    insecure_plaintext: bool = False,
    proxy: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> list[OfferedModel]:
    """The models that a server offers, in its order; no session is made.

    Args:
        address: As for `Client`, and so are the others.
        pin: The fingerprint of the server's certificate.
        ca: A file of certificate authorities, instead of `pin`.
        cert: The client's own certificate.
        key: The private key to `cert`.
        insecure_plaintext: Whether to speak without TLS.
        proxy: The HTTP proxy on the way.
        timeout: Seconds without a byte from the server after which to give up.

    Raises:
        MisuseError: If an argument is wrong.
        TransportError: If there is no connection, or the server's certificate is not trusted.
        PeerError: If the server speaks another version.
    """
    server = parse_address(address)
    trust = Trust(pin, ca, cert, key, None, insecure_plaintext)
    with native_errors(server):
        text = _native.list_models(
            json.dumps({"address": server, "proxy": proxy, "timeout": timeout, **trust.document()})
        )
    return [OfferedModel(**model) for model in json.loads(text)]


class ClientKeywords(TypedDict, total=False):
    """Keywords of `lanner.Client` that say which server and model are trusted, and what they may take.

    Files are named by their paths; no key is ever given itself.
    """

    model: str | None
    pin: str | None
    ca: str | Path | None
    cert: str | Path | None
    key: str | Path | None
    pin_model: str | None
    insecure_plaintext: bool
    proxy: str | None
    timeout: float
    max_memory: str | int | None
    max_seconds: int | None
    keys: str | Path | None
    embeddings: str | Path | None


class Client(OfProcess):
    """A session with a server. Making one connects, shakes hands and does the set-up; close it when done.

    If the connection ends during a prediction, for example because the server stops, the client asks once more in a new
    session with the same model, which a balancer may open with another server. The new session has new randomness, so
    asking twice reveals nothing more.

    A client belongs to the process that made it. In a copy that a fork makes of that process, every call raises a
    `MisuseError` and sends nothing: open another client there.

    Args:
        address: ``HOST[:PORT]``.
        model: The model's name; may be left out where the server has one.
        pin: The fingerprint of the server's certificate, as ``serve`` printed it.
        ca: A file of certificate authorities, instead of `pin`.
        cert: The client's own certificate, where the server asks for one.
        key: The private key to `cert`.
        pin_model: The commitment of the one model that is accepted.
        insecure_plaintext: Whether to speak without TLS; the server must do so too.
        proxy: The URL of the HTTP proxy on the way, ``http://[NAME:PASSWORD@]HOST[:PORT]``, or ``"none"``. Without it
            the environment's ``HTTPS_PROXY`` or ``ALL_PROXY`` is used, unless ``NO_PROXY`` names the server or it is
            this machine.
        timeout: Seconds without a byte from the server after which to give up.
        max_memory: Bytes that either party may hold for a session with one prediction, as a number or as ``"12GB"``; 8
            GiB where it is not given. The client refuses a model that needs more, before any work for it.
        max_seconds: Seconds that both parties together may compute on one core, very roughly; 1800 where it is not
            given.
        state_dir: Where pairings and material are kept for later sessions, and found again. Without it the directory
            of the commands is used, so that a client finds what ``lanner prepare`` made; see `lanner.state`. In a
            process that a fork made while its parent used that directory, such a client keeps and finds nothing.
        keys: A file that `lanner.keygen` wrote: the session's keys, of which a server is sent its part once. Without it
            each session makes its own, and sends them.
        embeddings: The file of tables that ``lanner export`` wrote beside the public half, for a model whose owner
            publishes its embeddings: indices are looked up there. The public half names its hash.
        truncate: Whether texts are cut to the tokens that the model reads, with a `TextWarning`; without it a longer
            one is an `InputError`.
        watch: What other threads see of the set-up while it runs.

    Attributes:
        address: The server's, ``HOST:PORT``.
        manifest: The model's public half, as the server sent it: input, output, mode and limits; under the asked name.
        sessions: How many sessions there were: one, and one more for each that ended under a prediction.

    Raises:
        MisuseError: If an argument is wrong, or the keys are for models with other needs.
        ModelError: If the file of tables cannot be read, or has other tables than the model's.
        TransportError: If there is no connection, or the server's certificate is not trusted.
        PeerError: If the server refuses, speaks another version, or serves another model.
        BusyError: If it is busy: try again later.
    """

    _kind = "client"

    def __init__(
        self,
        address: str,
        *,
        model: str | None = None,
        pin: str | None = None,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        pin_model: str | None = None,
        insecure_plaintext: bool = False,
        proxy: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_memory: str | int | None = None,
        max_seconds: int | None = None,
        state_dir: str | Path | None = None,
        keys: str | Path | None = None,
        embeddings: str | Path | None = None,
        truncate: bool = False,
        watch: SetUpWatch | None = None,
    ) -> None:
        super().__init__()
        trust = Trust(pin, ca, cert, key, pin_model, insecure_plaintext)
        self.address = parse_address(address)
        if keys is not None:
            check_file(keys, MisuseError)
        tables = {} if embeddings is None else read_tables(embeddings)
        self._broken = False
        self._watch = watch or SetUpWatch()
        self._config = {
            "address": self.address,
            "model": model,
            **trust.document(),
            "proxy": proxy,
            "timeout": timeout,
            "limits": limits_document(max_memory, max_seconds),
            "state_dir": _state(state_dir),
            "leave_inherited": state_dir is None,
            "keys": _text(keys),
        }
        self._native: _native.NativeClient | None = None
        self._native = self._connect()
        manifest = Manifest.parse(self._native.manifest(), self.address)
        # The server may offer it by another name than its file has.
        self.manifest = manifest if model is None else replace(manifest, name=model)
        if truncate:
            self.manifest = self.manifest.cutting()
        try:
            self.manifest = self.manifest.holding(tables, _text(embeddings))
        except ModelError:
            self.close()
            raise
        self.sessions = 1

    def _connect(self) -> _native.NativeClient:
        return self._call(lambda: _native.NativeClient(json.dumps(self._config), self._watch.native))

    def _connect_again(self) -> None:
        """Open a session in the place of one that ended. What was prepared in that one is lost."""
        # A server that stops still takes connections for a moment, which it does not serve.
        time.sleep(_LEAVING)
        self._config["pin_model"] = self.manifest.commitment
        self._native = self._connect()
        self.sessions += 1

    def prepare(self, count: int) -> None:
        """Do the offline phase of `count` predictions now, so that only their online phase is left.

        Raises:
            MisuseError: If `count` is not positive.
            PeerError: If the server refuses that many.
            BusyError: If it has no room for them now.
            TransportError: If the connection fails.
        """
        if count < 1:
            raise MisuseError(f"count is {count}", fix="give 1 or more")
        native = self._open()
        self._call(lambda: native.prepare(count))

    def keep(self, count: int) -> dict[str, Phase]:
        """Do the offline phase of `count` predictions now, for this session or any later one.

        Both parties keep the material on disk until a prediction uses it, once, which then needs neither set-up nor
        offline phase. Returns the cost of making it, by phase; the set-up is the session's.

        Raises:
            MisuseError: If `count` is not positive, or the material does not fit into the state directory.
            PeerError: If the server keeps no material, or has no room for more.
            TransportError: If the connection fails. What was kept before stays.
        """
        if count < 1:
            raise MisuseError(f"count is {count}", fix="give 1 or more")
        native = self._open()
        return phases_of(json.loads(self._call(lambda: native.keep(count))))

    @property
    def stock(self) -> int:
        """Predictions for which material is kept with this server."""
        native = self._open()
        return self._call(native.stock)

    def progress(self) -> list[StepProgress]:
        """How far each layer has come, over all predictions of the session: those offline, then those online.

        Other threads may ask while a prediction runs, and wait for nothing.

        Raises:
            MisuseError: If the session is closed.
        """
        return [StepProgress(**step) for step in json.loads(self._open().progress())]

    @property
    def longest_sent(self) -> SentMessage:
        """The longest message that the last requests for predictions sent; of length 0 before there were any.

        What opening the session sent does not count. Where requests share the connection, a message is a piece of up to
        256 KiB of one request's. It waits for a prediction that runs.

        Raises:
            MisuseError: If the session is closed.
        """
        native = self._open()
        return SentMessage(*self._call(native.longest_sent))

    def predict(self, x: Given) -> Prediction:
        """Predict one sample in private, with material that was prepared, else with some that is kept, else with new.

        Args:
            x: Shape `manifest.input.shape`, or (1, *shape); of several inputs arrays by name; a text, where the model
                reads texts. If columns have names, also a data frame, or columns by name, ``{"age": 41}``. A
                `TableWarning` says which numbers count as the ends of their columns.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the accepted range; nothing
                has been sent then.
            PeerError: If the server refuses or sends a malformed message.
            TransportError: If the connection fails or the server stalls, and in a new session again.
        """
        self._open()
        batch = batch_of(x, self.manifest.input)
        if len(batch) != 1:
            raise InputError(
                f"there are {len(batch)} samples", where="input", fix="call predict_batch, which accepts several"
            )
        return self.predict_batch(batch)[0]

    def predict_batch(self, x: Given) -> list[Prediction]:
        """Predict samples in private, as `predict_each` does, and return all predictions at the end.

        If a request fails, the predictions before it are lost.

        Args:
            x: Shape (n, *shape) with n of 1 or more, or `manifest.input.shape`; of texts a list.

        Raises:
            InputError: As `predict`, of all samples before the first is sent.
            PeerError: As `predict`.
            TransportError: As `predict`.
        """
        return list(self.predict_each(x))

    def predict_each(self, x: Given) -> Iterator[Prediction]:
        """Predict samples in private and yield each prediction as soon as it is there.

        Each request has as many samples as the model's owner compiled it for, often one; its cost is divided among
        them. Several short requests run at once while the client makes material for the next ones, so their seconds
        overlap. Predictions that run together are yielded together.

        Args:
            x: Shape (n, *shape) with n of 1 or more, or `manifest.input.shape`; of texts a list.

        Raises:
            InputError: As `predict`, of all samples before the first is sent.
            PeerError: As `predict`.
            TransportError: As `predict`.
        """
        self._open()
        batch = batch_of(x, self.manifest.input)
        check_range(batch, self.manifest.input)
        return self._predict_each(batch)

    def _predict_each(self, batch: NDArray[np.float32]) -> Iterator[Prediction]:
        start = 0
        while start < len(batch):
            try:
                documents = self._request(batch, start)
            except TransportError:
                self._connect_again()
                documents = self._request(batch, start)
            for index, document in enumerate(documents, start):
                # The model's name is the file's in there.
                prediction = replace(Prediction.from_document(document), index=index, model=self.manifest.name)
                yield self.manifest.told(prediction, batch[index])
            start += len(documents)

    def _request(self, batch: NDArray[np.float32], start: int) -> list[dict[str, Any]]:
        """What becomes of the samples from `start` on that run together."""
        native = self._open()
        end = min(start + self._call(native.together), len(batch))
        documents: list[dict[str, Any]]
        documents = json.loads(self._call(partial(native.predict, batch[start:end], len(batch) - end)))
        return documents

    def __repr__(self) -> str:
        return f"<lanner.Client at {self.address}>"

    def close(self) -> None:
        """End the session. Closing twice does nothing.

        Raises:
            MisuseError: In a copy of the process that made the client, where its session goes on.
        """
        self._check_process(self.address)
        native, self._native = self._native, None
        # An abandoned call still holds a broken session; it ends when that call times out.
        if native is not None and not self._broken:
            # A server that is gone already takes nothing from the predictions that were made.
            with suppress(TransportError, PeerError), native_errors(self.address):
                native.close()
            # Programs that run for long have many sessions.
            give_back_freed()

    def _open(self) -> _native.NativeClient:
        self._check_process(self.address)
        if self._native is None or self._broken:
            raise MisuseError("the session is closed", where=self.address, fix="make a new Client")
        return self._native

    def _call(self, call: Callable[[], T]) -> T:
        try:
            with native_errors(self.address):
                return interruptible(call)
        except KeyboardInterrupt:
            self._broken = True
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A child that leaves the block leaves its parent's session as it is.
        if not self._is_inherited():
            self.close()


def _state(given: str | Path | None) -> str | None:
    """The state directory; none where nothing is given and this user has no home."""
    try:
        return str(state_path(given))
    except RuntimeError:
        if given is not None:
            raise
        return None


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)
