"""Ray clusters on this machine, each with a folder of its own, and who works in them."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

#: Bytes of each node's object store.
STORE = 100_000_000


@dataclass
class Nodes:
    """A cluster.

    Attributes:
        cluster: Ray's own.
        folder: Where its logs and sockets are, and what it spills.
        others: Its nodes beside the head.
    """

    cluster: Any
    folder: Path
    others: list[Any]

    def kill(self) -> None:
        """End the first of the other nodes without warning."""
        self.cluster.remove_node(self.others.pop(0), allow_graceful=False)


@contextmanager
def nodes(count: int, cpus: int = 1) -> Iterator[Nodes]:
    """A head without CPUs, which this process is connected to, and nodes beside it."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    # Sockets lie there, whose paths may not be long.
    with (
        tempfile.TemporaryDirectory(prefix="lanner-ray-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        try:
            others = [cluster.add_node(num_cpus=cpus, object_store_memory=STORE) for _ in range(count)]
            ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            yield Nodes(cluster, Path(folder), others)
        finally:
            ray.shutdown()
            cluster.shutdown()


def holders(base: Path) -> dict[str, int]:
    """The processes that have held workers' state directories below a base, the last of each."""
    return {held.parent.name: int(held.read_text()) for held in base.glob("worker-*/held") if held.read_text()}
