"""The search for bits of `lanner.compile` on a cluster, whose tasks trace each network that it tries over samples."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.errors import native_errors
from lanner.extras import require
from lanner.ray.cluster import check_connected, cluster_cpus
from lanner.ray.tasks import on_each, stored
from lanner.tracing import Trace, Traces


class Tracer:
    """Lets the CPUs of a cluster trace the networks that `lanner.compile` tries over the calibration samples.

        import ray
        import lanner
        import lanner.ray

        ray.init("auto")
        model = lanner.compile("network.onnx", samples, tracer=lanner.ray.Tracer())

    The model is the same as without it, to the bit. Networks with their weights, and the samples, lie in Ray's object
    store: the cluster is the model owner's. Tasks of a node that is lost run again elsewhere.

    Raises:
        MisuseError: If Ray is not installed, or no cluster is connected to.
    """

    def __init__(self) -> None:
        require("ray", "compiling on a cluster")
        check_connected()

    def over(self, samples: NDArray[np.float32]) -> Traces:
        """What traces networks over samples, shape (n, *input shape), by their numbers from 0."""
        return partial(_traces, stored(samples))


def _traces(samples: object, manifest: str, weights: bytes, numbers: list[int]) -> list[Trace]:
    parts = [part for part in np.array_split(numbers, cluster_cpus()) if len(part)]
    made = on_each(_as_task, parts, samples, (manifest, weights))
    return [trace for part in made for trace in part]


def _as_task(numbers: NDArray[np.int64], samples: NDArray[np.float32], network: tuple[str, bytes]) -> list[Trace]:
    with native_errors():
        return _native.traces(*network, samples[numbers], numbers.tolist())
