"""A network that loses packets: two network namespaces, and a program between them that drops packets at random.

It needs root, for the namespaces and the two TUN devices, and nothing that the kernel might lack, as it does a queueing
discipline that loses.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from endurance.parties import Served, failures, made, predicting
from endurance.trial import Trial
from helpers.processes import serving

#: Of a hundred packets, those that are lost; and seconds from one end to the other.
LOST, DELAY = 5, 0.01

#: Predictions over it, and seconds that they may take with sending again what was lost.
PREDICTIONS, PATIENCE = 20, 300

#: Where the server and the client are.
ADDRESSES = ("10.111.0.1", "10.111.0.2")

PORT = 7400

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def run(trial: Trial, network: Served) -> None:
    """Predict from one namespace to the other."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        trial.left_out.append("a network that loses packets: it needs root and /dev/net/tun")
        return
    count = trial.scaled(PREDICTIONS, 3)
    with lossy_network() as (way, inside):
        listen = ("--listen", f"{ADDRESSES[0]}:{PORT}")
        with serving(trial.folder / "lossy", network.model, *listen, within=inside[0]) as server:
            client = {"pin": server.document["fingerprint"]}
            with predicting(server.address, network.samples, client, inside[1], count=count) as one:
                events = one.finish(PATIENCE)
    trial.counts |= {"packets": way.carried + way.lost, "packets that were lost": way.lost}
    trial.equal(f"Predictions over a network that loses {LOST}% of its packets", made(events), count)
    trial.none("Errors over it", failures(events))
    trial.none("Wrong labels over it", network.wrong(events))
    trial.check("Packets are lost", way.lost, "more than 0", way.lost > 0)


@dataclass(slots=True)
class Way:
    """What lies between the namespaces.

    Attributes:
        ends: The TUN devices.
        carried: Packets that were carried.
        lost: Packets that were not.
    """

    ends: tuple[int, int]
    carried: int = 0
    lost: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def carry(self) -> None:
        """Carry packets until it is ended."""
        rng = random.Random(0x4C4F5353)  # noqa: S311 - losses, not secrets
        under_way: list[tuple[float, int, int, bytes]] = []
        while not self.ended.is_set():
            wait = max(under_way[0][0] - time.monotonic(), 0) if under_way else 0.05
            for end in select.select(self.ends, [], [], wait)[0]:
                packet = os.read(end, 1 << 16)
                if rng.randrange(100) < LOST:
                    self.lost += 1
                    continue
                self.carried += 1
                other = self.ends[1 - self.ends.index(end)]
                heapq.heappush(under_way, (time.monotonic() + DELAY, self.carried, other, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                os.write(under_way[0][2], heapq.heappop(under_way)[3])


@contextmanager
def lossy_network() -> Iterator[tuple[Way, list[tuple[str, ...]]]]:
    """The way between two namespaces, and for each the command that runs another within it."""
    with ExitStack() as stack:
        names = [f"lanner-{os.getpid()}-{number}" for number in range(2)]
        ends = []
        for name, address in zip(names, ADDRESSES, strict=True):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            ends.append(_device(name, address))
            stack.callback(os.close, ends[-1])
        way = Way((ends[0], ends[1]))
        carrying = threading.Thread(target=way.carry, daemon=True)
        carrying.start()
        stack.callback(carrying.join)
        stack.callback(way.ended.set)
        yield way, [("ip", "netns", "exec", name) for name in names]


def _device(namespace: str, address: str) -> int:
    """A TUN device in a namespace, with an address there."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    name = f"tun{namespace[-12:]}"[:15]
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    _ip("link", "set", name, "netns", namespace)
    _ip("-n", namespace, "address", "add", f"{address}/24", "dev", name)
    _ip("-n", namespace, "link", "set", name, "up")
    return device


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S607 - on the path
