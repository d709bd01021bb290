"""The metrics of a gateway: its requests, and what predictions took by phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from lanner.prediction import PHASES
from lanner.telemetry.exposition import BUCKETS
from lanner.telemetry.records import Request, Work

_BY_PHASE = ("model", "mode", "phase")


class GatewayMetrics:
    """Counts requests as they are answered.

    Args:
        modes: The modes of the models that are offered, by name.
        under_way: Tells how many predictions are read, wait or are made at the moment.
        registry: Where the metrics are registered.
    """

    def __init__(self, modes: Mapping[str, str], under_way: Callable[[], int], registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "lanner_gateway_request_seconds",
            "From a request to its answer, by route and HTTP status.",
            ["route", "model", "code"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._predictions = Counter(
            "lanner_gateway_predictions_total", "Samples that were predicted.", ["model", "mode"], registry=registry
        )
        self._phase_seconds = Histogram(
            "lanner_gateway_phase_seconds",
            "What the predictions of a request took in a phase; the set-up where a session was opened for it.",
            _BY_PHASE,
            buckets=BUCKETS,
            registry=registry,
        )
        self._sent = Counter(
            "lanner_gateway_sent_bytes_total", "Bytes sent to the server in a phase.", _BY_PHASE, registry=registry
        )
        self._received = Counter(
            "lanner_gateway_received_bytes_total",
            "Bytes received from the server in a phase.",
            _BY_PHASE,
            registry=registry,
        )
        Gauge(
            "lanner_gateway_requests_under_way",
            "Requests for predictions that are read, wait, or are predicted.",
            registry=registry,
        ).set_function(under_way)
        self._begin(modes)

    def answered(self, request: Request) -> None:
        """Count a request."""
        self._seconds.labels(request.route or "", request.model or "", request.status).observe(request.seconds)
        if request.work is not None and request.model is not None:
            self._count(request.work, request.model, request.mode or "")

    def _count(self, work: Work, model: str, mode: str) -> None:
        self._predictions.labels(model, mode).inc(work.samples)
        for name, phase in work.phases.items():
            self._phase_seconds.labels(model, mode, name).observe(phase.seconds)
            self._sent.labels(model, mode, name).inc(phase.bytes_sent)
            self._received.labels(model, mode, name).inc(phase.bytes_received)

    def _begin(self, modes: Mapping[str, str]) -> None:
        """Have every count begin at 0: a rate misses what a series begins with."""
        for model, mode in modes.items():
            self._predictions.labels(model, mode)
            for phase in PHASES:
                for family in (self._phase_seconds, self._sent, self._received):
                    family.labels(model, mode, phase)
