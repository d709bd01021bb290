"""The systems that are compared: each is two processes with private inputs, warm, that predict when told to."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from networks import Compared
from numpy.typing import NDArray

from lanner.agreement import agrees
from lanner.cli.process import ServerProcess
from lanner.client import Client
from lanner.errors import LannerError
from lanner.model import Model
from lanner.options import CompileOptions

SPU_PARTY = Path(__file__).parent / "spu_party.py"


@dataclass(frozen=True, slots=True)
class Run:
    """One prediction.

    Attributes:
        seconds: What the client waited.
        bytes: What both parties sent.
        messages: What the client sent: rounds of lanner, sends of SPU.
        outputs: The network's outputs, as real numbers.
    """

    seconds: float
    bytes: int
    messages: int
    outputs: NDArray[np.float64]


class System(Protocol):
    """Two parties that are ready."""

    #: What the page calls it.
    name: str

    def predict(self) -> Run:
        """Predict the sample once."""


class Lanner:
    """A server process of lanner, and this process as its client.

    Args:
        client: The client.
        model: The model that the server has.
        network: What it was made of.
    """

    def __init__(self, client: Client, model: Model, network: Compared) -> None:
        asked = None if model.precision is None else model.precision.asked
        self.name = f"lanner, exact, {asked}"
        self._client, self._model = client, model
        self._sample = network.sample
        self._reference = model.predict_integers(self._sample)[0][0]
        #: The float network's outputs.
        self.expected = model.predict_float(self._sample)[0]

    def predict(self) -> Run:
        """Predict; the result is that of the fixed-point reference.

        Raises:
            LannerError: If it is not.
        """
        started = time.perf_counter()
        prediction = self._client.predict(self._sample)
        seconds = time.perf_counter() - started
        if not agrees(prediction, self._reference, self._model):
            raise LannerError("the secure result differs from the fixed-point reference", where=self.name)
        phases = [prediction.phases[phase] for phase in ("offline", "online")]
        return Run(
            seconds,
            sum(phase.bytes for phase in phases),
            sum(phase.rounds for phase in phases),
            np.asarray(prediction.logits, np.float64),
        )


@contextmanager
def lanner(network: Compared, bits: int) -> Iterator[Lanner]:
    """Mode cheetah of lanner, exact, as scores that are revealed must be, with so many bits of every activation."""
    options = CompileOptions(name="peers", mode="cheetah", output="logits", rounding="exact", precision=bits)
    model = network.compile(options)
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / "peers.lanner"
        model.save(path)
        with ServerProcess([str(path)]) as server, server.connect() as client:
            yield Lanner(client, model, network)


class Spu:
    """Both parties of SecretFlow-SPU, each a process.

    Args:
        parties: The processes, the client's first.
        folders: Theirs, with what they say when they fail.
    """

    def __init__(self, parties: Sequence[subprocess.Popen[str]], folders: Sequence[Path]) -> None:
        self._parties, self._folders = parties, folders
        client, _ = self._answers()
        self.name = f"SPU {client['version']}"

    def predict(self) -> Run:
        """Predict.

        Raises:
            LannerError: If a party ends.
        """
        for party in self._parties:
            assert party.stdin is not None
            party.stdin.write("predict\n")
            party.stdin.flush()
        client, server = self._answers()
        transferred = client["bytes_sent"] + server["bytes_sent"]
        return Run(client["seconds"], transferred, client["messages"], np.asarray(client["outputs"]))

    def _answers(self) -> list[dict[str, Any]]:
        """The next line of each party."""
        answers = []
        for party, folder in zip(self._parties, self._folders, strict=True):
            assert party.stdout is not None
            line = party.stdout.readline()
            if not line:
                words = (folder / "errors.log").read_text(errors="replace").strip().splitlines()
                raise LannerError(f"a party ended ({words[-1] if words else 'without a word'})", where="SPU")
            answers.append(json.loads(line))
        return answers


@contextmanager
def spu(network: Compared, python: Path) -> Iterator[Spu]:
    """SPU's Cheetah protocol; `python` is that of the environment that has it."""
    with tempfile.TemporaryDirectory(prefix="lanner-peers-") as name, ExitStack() as stack:
        folders = [Path(name) / party for party in ("client", "server")]
        shapes = {tensor: list(values.shape) for tensor, values in network.tensors.items()}
        graph = {"document": network.document, "tensors": shapes}
        for folder in folders:
            folder.mkdir()
            (folder / "graph.json").write_text(json.dumps(graph))
        shape = network.document["inputs"][0]["shape"]
        np.save(folders[0] / "image.npy", network.sample.reshape(shape))
        np.savez(folders[1] / "weights.npz", allow_pickle=False, **network.tensors)
        addresses = _free_addresses()
        parties = [
            stack.enter_context(_process([str(python), str(SPU_PARTY), str(folder), str(rank), *addresses], folder))
            for rank, folder in enumerate(folders)
        ]
        yield Spu(parties, folders)


@contextmanager
def _process(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the block."""
    pipe = subprocess.PIPE
    with (
        (folder / "errors.log").open("w") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _free_addresses() -> list[str]:
    """Two loopback addresses on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as client, socket.create_server(("127.0.0.1", 0)) as server:
        return [f"127.0.0.1:{probe.getsockname()[1]}" for probe in (client, server)]
