"""One party of a prediction by SecretFlow-SPU's Cheetah protocol.

    python spu_party.py FOLDER RANK ADDRESS ADDRESS

Runs in SPU's own virtual environment, once for each party. FOLDER holds graph.json, which both may see, and what the
party alone has: image.npy at rank 0, weights.npz at rank 1. Inputs are shared once; then each line of the standard
input is a prediction, and each line of the standard output a JSON document of what it took.

The clock stands around the protocol alone, from shares of image and weights to shares of the outputs. Settings are
SPU's defaults in the ring of 64 bits, where it keeps 18 bits after the point, but for one that makes it faster.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import spu
from numpy.typing import NDArray
from operators import evaluate
from spu import libspu
from spu.utils import frontend

#: The party that has the image and learns the outputs, and the one that has the weights.
CLIENT, SERVER = 0, 1

#: What the profile of a run says of a party's messages.
DETAILS = re.compile(r"Link details: total send bytes (\d+), .*?send actions (\d+)")


class Party:
    """A party whose inputs are shared.

    Args:
        folder: Its inputs, and a place for its log.
        rank: `CLIENT` or `SERVER`.
        addresses: Where the client and the server listen.
    """

    def __init__(self, folder: Path, rank: int, addresses: Iterable[str]) -> None:
        self.rank = rank
        self._log = folder / f"party{rank}.log"
        self._log.touch()
        _log_to(self._log)
        self._link = _connect(rank, addresses)
        config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.CHEETAH, field=libspu.FieldType.FM64)
        config.enable_pphlo_profile = True
        # Who has an input computes on it without a share of the other's: half the messages of linear layers.
        config.experimental_enable_colocated_optimization = True
        self._runtime, self._io = spu.Runtime(self._link, config), spu.Io(2, config)
        graph = json.loads((folder / "graph.json").read_text())
        self._executable = _compile(graph)
        for name, owner in (("x", CLIENT), *((name, SERVER) for name in graph["tensors"])):
            self._runtime.set_var(name, self._share(_own(folder, name) if rank == owner else None, owner))

    def predict(self) -> dict[str, Any]:
        """What a prediction took this party; with its outputs, at the client."""
        seen = self._log.stat().st_size
        # Both begin together.
        self._exchange("")
        started = time.perf_counter()
        self._runtime.run(self._executable)
        seconds = time.perf_counter() - started
        transferred, messages = _counted(self._log, seen)
        result = {"seconds": seconds, "bytes_sent": transferred, "messages": messages}
        output = self._runtime.get_var("y")
        if self.rank == CLIENT:
            theirs = _read_share(self._link.recv(SERVER))
            return {**result, "outputs": self._io.reconstruct([output, theirs]).reshape(-1).tolist()}
        self._link.send(CLIENT, _write_share(output))
        return result

    def _share(self, value: NDArray[np.float32] | None, owner: int) -> Any:  # noqa: ANN401 - spu is untyped
        """This party's share of a value that the owner has."""
        if value is None:
            return _read_share(self._link.recv(owner))
        shares = self._io.make_shares(value, libspu.Visibility.VIS_SECRET, owner)
        self._link.send(1 - owner, _write_share(shares[1 - owner]))
        return shares[owner]

    def _exchange(self, text: str) -> None:
        self._link.send(1 - self.rank, text)
        self._link.recv(1 - self.rank)


def _connect(rank: int, addresses: Iterable[str]) -> Any:  # noqa: ANN401 - spu is untyped
    description = libspu.link.Desc()
    for party, address in enumerate(addresses):
        description.add_party(f"party{party}", address)
    description.recv_timeout_ms = 600_000
    return libspu.link.create_brpc(description, rank)


def _compile(graph: dict[str, Any]) -> Any:  # noqa: ANN401 - spu is untyped
    """The program that both parties run: image and weights are secret, the graph and its shapes are not."""
    names = list(graph["tensors"])
    arguments = [
        jax.ShapeDtypeStruct(shape, np.float32)
        for shape in (graph["document"]["inputs"][0]["shape"], *graph["tensors"].values())
    ]

    def network(x: jax.Array, *weights: jax.Array) -> jax.Array:
        return evaluate(graph["document"], dict(zip(names, weights, strict=True)), x)

    secret = [libspu.Visibility.VIS_SECRET] * len(arguments)
    executable, _ = frontend.compile(
        frontend.Kind.JAX, network, arguments, {}, ["x", *names], secret, lambda _outputs: ["y"]
    )
    return executable


def _own(folder: Path, name: str) -> NDArray[np.float32]:
    """A value that this party alone has."""
    if name == "x":
        image: NDArray[np.float32] = np.load(folder / "image.npy")
        return image
    with np.load(folder / "weights.npz") as file:
        weights: NDArray[np.float32] = file[name]
        return weights


def _write_share(share: Any) -> str:  # noqa: ANN401 - spu is untyped
    """A share as text, which is what a link takes."""
    return " ".join(base64.b64encode(part).decode() for part in (share.meta, *share.share_chunks))


def _read_share(text: bytes) -> Any:  # noqa: ANN401 - spu is untyped
    share = libspu.Share()
    share.meta, *chunks = (base64.b64decode(part) for part in text.split(b" "))
    share.share_chunks = chunks
    return share


def _log_to(path: Path) -> None:
    options = libspu.logging.LogOptions()
    options.enable_console_logger = False
    options.system_log_path = str(path)
    libspu.logging.setup_logging(options)


def _counted(log: Path, seen: int) -> tuple[int, int]:
    """Bytes and messages that the party sent in the run whose log follows the part seen already."""
    with log.open("rb") as file:
        file.seek(seen)
        found = DETAILS.findall(file.read().decode(errors="replace"))
    if len(found) != 1:
        raise RuntimeError(f"SPU's log tells the messages of {len(found)} runs, not of one")
    return int(found[0][0]), int(found[0][1])


def main(folder: str, rank: str, *addresses: str) -> None:
    """Share the inputs, then predict once for each line."""
    say = partial(print, flush=True)
    party = Party(Path(folder), int(rank), addresses)
    say(json.dumps({"version": spu.__version__}))
    for _ in sys.stdin:
        say(json.dumps(party.predict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
