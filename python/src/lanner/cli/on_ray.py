"""``--ray``: what commands have done by workers on a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lanner.client import ClientKeywords
from lanner.errors import MisuseError
from lanner.inputs import Sample
from lanner.ray import BATCH_SIZE
from lanner.ray.cluster import LOCAL, cluster
from lanner.ray.pieces import Piece
from lanner.ray.tracer import Tracer

if TYPE_CHECKING:
    from lanner.ray.pool import Pool


def add_ray_option(parser: argparse.ArgumentParser, done: str) -> None:
    """The option that names a cluster; `done` says what is done on it."""
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"{done} on a Ray cluster: HOST:PORT, ray://HOST:PORT, auto, or {LOCAL} to start one here",
    )


def add_worker_options(parser: argparse.ArgumentParser, done: str) -> None:
    """The options of a command whose workers are clients of a server."""
    add_ray_option(parser, done)
    parser.add_argument(
        "--workers", type=int, metavar="N", help="with --ray: number of clients (default: one for each CPU)"
    )


def check_workers(options: argparse.Namespace) -> None:
    """Check that workers are asked for on a cluster.

    Raises:
        MisuseError: If they are not, or are none.
    """
    if options.workers is None:
        return
    if options.ray is None:
        raise MisuseError("--workers goes with --ray", fix="give both, or leave it out")
    if options.workers < 1:
        raise MisuseError(f"--workers is {options.workers}", fix="give 1 or more")


@contextmanager
def workers_on(
    options: argparse.Namespace, address: str, client: ClientKeywords, *, ahead: int | None = None
) -> Iterator[Pool]:
    """Workers on the cluster that the options name, until the block ends; a connection to it may be there already.

    Args:
        options: The command's.
        address: The server.
        client: Which server is trusted, and what it may take.
        ahead: For how many predictions a worker that waits keeps material; the usual number if it is None.

    Raises:
        LannerError: If there is no such cluster.
    """
    with cluster(options.ray):
        from lanner.ray.pool import AHEAD, Pool

        base = None if options.state_dir is None else str(Path(options.state_dir).absolute() / "ray")
        kept = AHEAD if ahead is None else ahead
        with Pool(address, client, workers=options.workers, ahead=kept, base=base) as pool:
            yield pool


@contextmanager
def tracer_on(options: argparse.Namespace) -> Iterator[Tracer | None]:
    """What traces networks on the cluster that the options name, until the block ends; None where they name none.

    Raises:
        LannerError: If there is no such cluster.
    """
    if options.ray is None:
        yield None
        return
    with cluster(options.ray):
        yield Tracer()


def this_host(options: argparse.Namespace) -> str:
    """The address of this machine at which workers on the cluster reach it; a connection to that must be there."""
    from ray.util import get_node_ip_address

    return "127.0.0.1" if options.ray == LOCAL else str(get_node_ip_address())


def in_pieces(samples: Iterable[Sample]) -> Generator[Piece]:
    """Samples, which have been checked, as pieces in Ray's object store, a few at a time."""
    import ray

    left = iter(samples)
    while some := list(islice(left, BATCH_SIZE)):
        block = ray.put(np.stack([sample.values for sample in some]))
        yield Piece(block, slice(0, len(some)), [(sample.source, sample.index) for sample in some])
