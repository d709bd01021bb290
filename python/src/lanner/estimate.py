"""What a prediction will take: seconds, bytes, rounds, memory and material, before anybody pays for it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanner import _native
from lanner.capacity import LIKE_THE_TABLES, Fits, Machine
from lanner.errors import native_errors
from lanner.kernel_times import KernelTimes, measured_times
from lanner.limits import limits_document
from lanner.network import LOOPBACK, Network, read_network

if TYPE_CHECKING:
    from lanner.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PhaseEstimate:
    """What a phase takes.

    Attributes:
        seconds: What the client waits.
        bytes: Bytes in both directions, without what TLS adds, some per mille.
        rounds: Sends by the client that are followed by a wait.
    """

    seconds: float
    bytes: int
    rounds: int


@dataclass(frozen=True, slots=True)
class LayerEstimate:
    """What a step of the plan takes, in both phases of a prediction.

    Attributes:
        name: The layer.
        protocol: Its protocol.
        reason: Why that one, in words.
        timed: Whether there are times of the protocol; without, its computation counts as none.
        offline: Before the input is known.
        online: The rest.
        client_material: Bytes that the client keeps of a prediction that is prepared.
        server_material: Bytes that the server keeps of it.
        model_bytes: Bytes of the server's weights, ready to multiply.
    """

    name: str
    protocol: str
    reason: str
    timed: bool
    offline: PhaseEstimate
    online: PhaseEstimate
    client_material: int
    server_material: int
    model_bytes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a session with one prediction takes.

    Attributes:
        mode: The mode.
        network: The network between the parties.
        setup: Once a session.
        offline: Of each request, before its inputs are known.
        online: The rest.
        memory: Bytes that each party holds, by what they are.
        material: Bytes that each party keeps of a request that is prepared.
        layers: The steps, in order.
        machine: The machine whose kernel times were used.
        kernel_times: Which table of them that was.
        fits: Whether both parties have the memory that it takes.
        document: The document that ``lanner estimate --json`` prints.
    """

    mode: str
    network: Network
    setup: PhaseEstimate
    offline: PhaseEstimate
    online: PhaseEstimate
    memory: dict[str, int]
    material: dict[str, int]
    layers: list[LayerEstimate]
    machine: str
    kernel_times: KernelTimes
    fits: Fits
    document: dict[str, Any]


def estimate(
    manifest: Manifest,
    link: str | Network = LOOPBACK,
    *,
    state_dir: str | Path | None = None,
    max_memory: str | int | None = None,
    max_seconds: int | None = None,
    client: Machine = LIKE_THE_TABLES,
    server: Machine = LIKE_THE_TABLES,
    kernel_times: str | Path | KernelTimes | None = None,
) -> Estimate:
    """Estimate a prediction by the model of a public half.

    Bytes and rounds are those of the first prediction of a session, exactly. Seconds come from a table of what
    operations take on this machine: the one that ``lanner doctor --calibrate`` left in the state directory, else one
    that the first estimate measures in about a second, and keeps there.

    Args:
        manifest: The public half.
        link: The network between the parties: ``loopback``, ``lan``, ``wan``, a TOML file, or a `Network`.
        state_dir: Where the table is; see `lanner.state`.
        max_memory: As for `lanner.load`.
        max_seconds: As for `lanner.load`.
        client: The data owner's machine, where its cores are not those of the table's, or its memory is bounded.
        server: The model owner's, likewise.
        kernel_times: Another table: the path of one, ``shipped`` for the one that comes with the package, of another
            machine, or ``measure`` to measure this machine again. Where it is not given, ``$LANNER_KERNEL_TIMES``
            counts.

    Raises:
        MisuseError: If there is no such network or table, or the table is damaged, or does not tell of what cores it
            is.
        ModelError: If the model takes more than the limits.
    """
    network = link if isinstance(link, Network) else read_network(link)
    limits = limits_document(max_memory, max_seconds)
    times = measured_times(kernel_times, state_dir)
    with native_errors(manifest.name):
        text = _native.estimate(
            json.dumps(manifest.document),
            times.text,
            network.profile,
            limits["memory"],
            limits["seconds"],
            (client.cores, server.cores),
        )
    return _read(json.loads(text), network, times, client, server)


def _read(document: dict[str, Any], network: Network, times: KernelTimes, client: Machine, server: Machine) -> Estimate:
    phases = {name: PhaseEstimate(**phase) for name, phase in document["phases"].items()}
    layers = [
        LayerEstimate(
            name=layer["name"],
            protocol=layer["protocol"],
            reason=layer["reason"],
            timed=layer["timed"],
            offline=PhaseEstimate(**layer["phases"]["offline"]),
            online=PhaseEstimate(**layer["phases"]["online"]),
            client_material=layer["material"]["client_bytes"],
            server_material=layer["material"]["server_bytes"],
            model_bytes=layer["model_bytes"],
        )
        for layer in document["layers"]
    ]
    fits = Fits.of(document["memory"], client, server)
    return Estimate(
        mode=document["mode"],
        network=network,
        setup=phases["setup"],
        offline=phases["offline"],
        online=phases["online"],
        memory=document["memory"],
        material=document["material"],
        layers=layers,
        machine=document["machine"],
        kernel_times=times,
        fits=fits,
        document={"network": network.name, **document, "kernel_times": times.document(), "fits": asdict(fits)},
    )
