"""Whether traces are wanted, and where they go: by the standard variables of OpenTelemetry.

Nothing is traced unless one of them says so:

- ``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` names who collects them, by OTLP over HTTP;
- ``OTEL_TRACES_EXPORTER=otlp`` sends them to a collector on this machine, and ``none`` sends none;
- ``OTEL_SDK_DISABLED=true`` turns it off, whatever the others say.

What else OpenTelemetry reads, as ``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES`` and ``OTEL_TRACES_SAMPLER``, holds
here, too: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lanner.errors import MisuseError
from lanner.extras import advice

if TYPE_CHECKING:
    from lanner.telemetry.spans import Spans

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

#: The only protocol that traces are sent by.
PROTOCOL = "http/protobuf"


@contextmanager
def tracing(service: str, warn: Callable[[str], None]) -> Iterator[Sequence[Spans]]:
    """Give the body what makes spans, where they are wanted, and send those that are left when it ends.

    Args:
        service: What traces call this process where no variable names it.
        warn: Told what OpenTelemetry complains of, as of a collector that does not answer.

    Raises:
        MisuseError: If a variable asks for what there is not here.
    """
    if not is_wanted(os.environ):
        yield ()
        return
    try:
        from lanner.telemetry.spans import Spans, exporting
    except ImportError:
        raise MisuseError(
            "the environment asks for traces, which need OpenTelemetry's SDK and its exporter",
            where="OTEL_* variables",
            fix=f"{advice('otel')}, or set OTEL_SDK_DISABLED=true",
        ) from None
    with _complaints(warn):
        provider = exporting(service)
        try:
            yield (Spans(provider),)
        finally:
            provider.shutdown()


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether these variables ask for traces.

    Raises:
        MisuseError: If they ask for an exporter or a protocol that there is not here.
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    asked = exporter or any(environment.get(name, "").strip() for name in ENDPOINTS)
    if not asked or exporter == "none" or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter not in ("", "otlp"):
        raise MisuseError(
            f"traces are not exported by {exporter!r}", where="OTEL_TRACES_EXPORTER", fix="set it to otlp, or to none"
        )
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name, "").strip() or PROTOCOL
        if protocol != PROTOCOL:
            raise MisuseError(f"traces are not sent by {protocol!r}", where=name, fix=f"set it to {PROTOCOL}")
    return True


@contextmanager
def _complaints(warn: Callable[[str], None]) -> Iterator[None]:
    """Pass on what OpenTelemetry logs while the body runs, each complaint once."""

    class Complaints(logging.Handler):
        said: set[str] = set()  # noqa: RUF012 - one instance

        def emit(self, record: logging.LogRecord) -> None:
            if record.msg not in self.said:
                self.said.add(record.msg)
                warn(f"traces: {record.getMessage()}")

    log, handler = logging.getLogger("opentelemetry"), Complaints(logging.WARNING)
    propagated, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated
