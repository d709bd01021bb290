"""The metrics of a server: its own counters as they are when asked, and counts of connections that ended."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lanner.server import Server
from lanner.telemetry.exposition import BUCKETS
from lanner.telemetry.records import CAUSES, MODEL_ENDINGS, OTHER_ENDINGS, Connection

#: What `Server.kept` tells, by metric.
_STOCK = {
    "lanner_stock_pairings": ("pairings", "Clients with which material or keys are kept on disk."),
    "lanner_stock_predictions": ("predictions", "Predictions that there is material for on disk."),
    "lanner_stock_bytes": ("bytes", "Material and keys kept on disk, in bytes."),
    "lanner_uploaded_keys_bytes": ("uploaded_bytes", "Keys that clients uploaded, kept on disk, in bytes."),
}

_STEP_LABELS = ("model", "mode", "phase", "step", "protocol")


class ServerMetrics(Collector):
    """Collects from a server when a scraper asks, and reads its journal.

    Args:
        server: The server.
        registry: Where the metrics are registered.
    """

    def __init__(self, server: Server, registry: CollectorRegistry) -> None:
        self._server = server
        self._modes = {name: model.manifest.mode for name, model in server.models.items()}
        self._connections = Counter(
            "lanner_connections_total",
            "Connections that ended or were turned away; without a model where none was agreed on.",
            ["model", "mode", "ending", "cause"],
            registry=registry,
        )
        self._omitted = Counter(
            "lanner_connections_omitted_total",
            "Connections that ended while too many others did, and are in no other count.",
            registry=registry,
        )
        self._seconds = Histogram(
            "lanner_session_seconds",
            "How long sessions lasted that agreed on a model, waits for the client included.",
            ["model", "mode"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._sent = Counter(
            "lanner_sent_bytes_total", "Bytes sent by sessions that ended.", ["model", "mode"], registry=registry
        )
        self._received = Counter(
            "lanner_received_bytes_total",
            "Bytes received by sessions that ended.",
            ["model", "mode"],
            registry=registry,
        )
        self._begin()
        registry.register(self)

    def ended(self, connection: Connection) -> None:
        """Count a connection."""
        labels = (connection.model or "", connection.mode or "")
        self._connections.labels(*labels, connection.ending, connection.cause).inc()
        self._sent.labels(*labels).inc(connection.bytes_sent)
        self._received.labels(*labels).inc(connection.bytes_received)
        if connection.model is not None:
            self._seconds.labels(*labels).observe(connection.seconds)

    def omitted(self, count: int) -> None:
        """Count connections of which nothing is known."""
        self._omitted.inc(count)

    def collect(self) -> Iterator[Metric]:
        """What the server counts and keeps at this moment."""
        stats, kept = self._server.stats(), self._server.kept()
        yield CounterMetricFamily("lanner_sessions", "Sessions that began.", value=stats["sessions"])
        predictions = CounterMetricFamily(
            "lanner_predictions",
            "Requests for predictions that were answered; each may hold several samples.",
            labels=["model", "mode"],
        )
        for labels in self._modes.items():
            predictions.add_metric(labels, stats["predictions_by_model"].get(labels[0], 0))
        yield predictions
        yield GaugeMetricFamily(
            "lanner_sessions_under_way", "Sessions that are open at this moment.", value=stats["under_way"]
        )
        yield GaugeMetricFamily(
            "lanner_material_bytes",
            "Material, keys and room for unread bytes that sessions hold in memory, in bytes.",
            value=stats["material"],
        )
        for name, (key, documentation) in _STOCK.items():
            yield GaugeMetricFamily(name, documentation, value=kept[key])
        yield from self._steps()

    def _steps(self) -> Iterator[Metric]:
        seconds = CounterMetricFamily(
            "lanner_step_seconds", "Time computed for a step, without waits and transport.", labels=_STEP_LABELS
        )
        runs = CounterMetricFamily("lanner_step_runs", "How often a step was computed.", labels=_STEP_LABELS)
        sent = CounterMetricFamily(
            "lanner_step_sent_bytes", "Bytes that the server sent for a step.", labels=_STEP_LABELS
        )
        received = CounterMetricFamily("lanner_step_received_bytes", "Bytes that it received.", labels=_STEP_LABELS)
        for step in self._server.computed():
            labels = [step["model"], self._modes[step["model"]], step["phase"], step["step"], step["protocol"]]
            seconds.add_metric(labels, step["seconds"])
            runs.add_metric(labels, step["count"])
            sent.add_metric(labels, step["bytes_sent"])
            received.add_metric(labels, step["bytes_received"])
        yield from (seconds, runs, sent, received)

    def _begin(self) -> None:
        """Have every count begin at 0: a rate misses what a series begins with."""
        for labels in self._modes.items():
            self._seconds.labels(*labels)
        for labels, endings in (*((each, MODEL_ENDINGS) for each in self._modes.items()), (("", ""), OTHER_ENDINGS)):
            for counter in (self._sent, self._received):
                counter.labels(*labels)
            for ending in endings:
                for cause in CAUSES.get(ending, ("",)):
                    self._connections.labels(*labels, ending, cause)
