"""What the server process of a command counts: requests answered, and seconds computed for each step."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from lanner.cli.process import ServerProcess
from lanner.errors import LannerError
from lanner.waterfall import Computed

#: Seconds that a server may take to count a request whose result the client has.
COUNT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server counted since its start.

    Attributes:
        requests: Requests for predictions that it answered; each may hold several samples.
        computed: What it computed.
    """

    requests: int
    computed: Computed


def read_counters(server: ServerProcess) -> Counters:
    """What a server with metrics has counted so far."""
    from prometheus_client.parser import text_string_to_metric_families

    requests: float | None = None
    computed: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for family in text_string_to_metric_families(server.metrics()):
        for sample in family.samples:
            if sample.name == "lanner_predictions_total":
                requests = (requests or 0) + sample.value
            elif sample.name == "lanner_step_seconds_total":
                step = sample.labels
                computed[step["phase"], step["step"], step["protocol"]] += sample.value
    if requests is None:
        raise LannerError("the server does not count predictions", where="metrics")
    return Counters(int(requests), computed)


def read_metric(server: ServerProcess, name: str) -> float:
    """The value of one of a server's metrics that has no labels.

    Raises:
        LannerError: If the server does not tell it.
    """
    from prometheus_client.parser import text_string_to_metric_families

    for family in text_string_to_metric_families(server.metrics()):
        for sample in family.samples:
            if sample.name == name:
                return float(sample.value)
    raise LannerError(f"the server does not report {name}", where="metrics")


def await_counters(server: ServerProcess, requests: int) -> Counters:
    """What a server has counted once it has counted so many requests: a client has its result a little earlier.

    Raises:
        LannerError: If it does not count them.
    """
    deadline = time.monotonic() + COUNT_SECONDS
    while True:
        counters = read_counters(server)
        if counters.requests >= requests:
            return counters
        if time.monotonic() > deadline:
            raise LannerError("the server does not count the prediction that it made", where="metrics")
        time.sleep(0.005)
