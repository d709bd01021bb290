"""Metrics in the text formats that Prometheus reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from lanner import __version__
from lanner.heap import live_bytes

#: Upper bounds of the buckets of histograms, in seconds: predictions take milliseconds to minutes.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


def new_registry() -> CollectorRegistry:
    """A registry with the version of this package, and what the system and the C library tell of this process."""
    # The times at which series began would be as many series again.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # The library says nothing of its type.
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Gauge("lanner_build_info", "1, with the version of lanner.", ["version"], registry=registry)
    build.labels(__version__).set(1)
    if live_bytes() is not None:
        allocated = Gauge(
            "lanner_allocated_bytes", "Memory that the process allocated and did not free.", registry=registry
        )
        allocated.set_function(lambda: float(live_bytes() or 0))
    return registry


def exposition(registry: CollectorRegistry, accepted: str | None) -> tuple[bytes, str]:
    """All metrics now, and their content type, in a format that the header ``Accept`` of a scraper asks for."""
    encode, content_type = choose_encoder(accepted or "")
    return encode(registry), content_type
