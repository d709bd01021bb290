"""A worker: a client with a session, a pairing and keys of its own, in a process of its own somewhere in the cluster.

What crosses Ray is what the data owner has anyway: inputs, results and costs, and which server to trust. The session's
keys are made here and stay here, and material is in the worker's state directory.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lanner.client import Client, ClientKeywords
from lanner.errors import LannerError
from lanner.manifest import Manifest
from lanner.prediction import Prediction
from lanner.ray.pieces import Reading, samples_in
from lanner.ray.places import Place
from lanner.state import state_path


class Worker:
    """A client that is told by a `lanner.ray.pool.Pool` what to do.

    Args:
        address: The server, ``HOST[:PORT]``.
        client: Which server is trusted, and what it may take.
        base: The folder of workers' state directories on their node; ``ray`` below the usual one if it is None.
    """

    def __init__(self, address: str, client: ClientKeywords, base: str | None) -> None:
        self._address = address
        self._keywords = client
        self._place = Place(state_path() / "ray" if base is None else Path(base).expanduser())
        self._client: Client | None = None
        self._keeps = True

    def open(self) -> Manifest:
        """Open the session, unless it is open, and tell the model.

        Raises:
            LannerError: As `lanner.Client`.
        """
        return self._session().manifest

    def predict(self, block: object, rows: slice, reading: Reading, first: int) -> list[Prediction]:
        """Predict rows of a block, all of which are checked before the first is sent.

        Args:
            block: A block of Ray Data, or an array of samples.
            rows: Its rows.
            reading: How they become samples.
            first: The place of the first row, for errors.

        Raises:
            InputError: If a row does not fit the model.
            LannerError: As `lanner.Client.predict`. The next call has a new session then.
        """
        samples = samples_in(block, rows, reading, self.open(), first)
        try:
            return self._session().predict_batch(samples)
        except LannerError:
            # It may be out of step with the server.
            self._drop()
            raise

    def prepare(self, most: int) -> bool:
        """Keep material for one more prediction, unless there is for so many; False once there can be no more."""
        if not self._keeps:
            return False
        try:
            session = self._session()
            if session.stock >= most:
                return False
            session.keep(1)
        except LannerError:
            # The server has no room, or keeps none: predictions make their own.
            self._keeps = False
            self._drop()
        return self._keeps

    def close(self) -> None:
        """End the session in good order."""
        self._drop()

    def _session(self) -> Client:
        if self._client is None:
            self._client = Client(self._address, state_dir=self._place.path, **self._keywords)
        return self._client

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(LannerError):
                client.close()
