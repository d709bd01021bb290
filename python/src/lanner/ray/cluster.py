"""The cluster: one that is there, or one on this machine that is started for the block and ended with it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lanner.errors import MisuseError, TransportError
from lanner.extras import require

#: The address that stands for a cluster on this machine.
LOCAL = "local"


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Be connected to a cluster until the block ends; a connection that the caller has already stays as it is.

    Args:
        address: ``local`` for a cluster that is started on this machine, else as ``ray.init`` takes it: ``auto``,
            ``HOST:PORT`` or ``ray://HOST:PORT``.

    Raises:
        MisuseError: If Ray is not installed.
        TransportError: If there is no such cluster.
    """
    require("ray", "working on a cluster")
    if address == LOCAL:
        # A cluster of this machine tells nobody of itself.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        # Nothing of workers goes to standard output, which has results alone.
        ray.init(
            address=address,
            include_dashboard=False if address == LOCAL else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        with suppress(Exception):
            ray.shutdown()
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise TransportError(
            f"there is no Ray cluster to join ({reason[0]})", where=address, fix="check the address, or give local"
        ) from None
    try:
        if threading.current_thread() is threading.main_thread():
            # Ray has put its own in the place of the command's.
            signal.signal(signal.SIGTERM, handler)
        yield
    finally:
        ray.shutdown()


def check_connected() -> None:
    """Check that there is a connection to a cluster. Ray must be installed.

    Raises:
        MisuseError: If there is none.
    """
    import ray

    if not ray.is_initialized():
        raise MisuseError("there is no connection to a cluster", fix="call ray.init first")


def cluster_cpus() -> int:
    """The CPUs of the cluster, which there is a connection to; 1 where it has none yet."""
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 0.0)))
