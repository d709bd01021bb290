"""Spans of OpenTelemetry, made of the records of connections and of requests when these are over.

A prediction at a gateway is a span of the request, with one of each phase under it and one of each layer under these.
Parties measure how long steps take, not when they begin. So the phases are laid one behind the other up to the answer,
and layers one behind the other from the start of their phase; predictions of one request overlap, and where they take
longer together than the request, they are drawn shorter. What was measured is in the attribute ``lanner.seconds``.

A session at a server is a span, too, with one of each run of a phase where it was, and layers under it in the same way.

No attribute tells an input, a result, a token, or an address. The W3C context of a request at the gateway becomes the
parent of its span, and goes nowhere else: the model's owner is told nothing of who asks the gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lanner.prediction import PHASES, Layer, Phase
from lanner.telemetry.layout import Stretch, laid_out
from lanner.telemetry.records import Connection, Request, Run, Work

Attributes = Mapping[str, str | int | float]


def exporting(service: str) -> TracerProvider:
    """A provider that exports by OTLP to where the environment says."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Spans:
    """Makes spans of what is over.

    Args:
        provider: Where they go. It is not made the global one: nothing else in this process is traced.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("lanner")

    def ended(self, connection: Connection) -> None:
        """Make the span of a connection that agreed on a model."""
        if connection.model is None:
            return
        attributes: dict[str, str | int | float] = {
            "lanner.session": connection.number,
            "lanner.model": connection.model,
            "lanner.mode": connection.mode or "",
            "lanner.predictions": connection.predictions,
            "lanner.sent_bytes": connection.bytes_sent,
            "lanner.received_bytes": connection.bytes_received,
            "lanner.ending": connection.ending,
        }
        if connection.cause:
            attributes["lanner.cause"] = connection.cause
        if connection.runs_omitted:
            attributes["lanner.runs_omitted"] = connection.runs_omitted
        stretch = Stretch.before(connection.time, connection.seconds)
        span = self._begin("session", stretch, attributes, kind=SpanKind.SERVER)
        for run in connection.runs:
            self._run(run, connection, set_span_in_context(span, Context()))
        _end(span, stretch, failed=connection.ending == "failed")

    def omitted(self, count: int) -> None:
        """Nothing is known of these."""

    def answered(self, request: Request) -> None:
        """Make the spans of a request that got as far as a model."""
        if request.model is None:
            return
        attributes: dict[str, str | int | float] = {
            "http.request.method": request.method,
            "http.route": request.route or "",
            "http.response.status_code": request.status,
            "lanner.model": request.model,
            "lanner.mode": request.mode or "",
            "lanner.predictions": request.samples,
        }
        stretch = Stretch.before(request.time, request.seconds)
        parent = TraceContextTextMapPropagator().extract(dict(request.trace), Context())
        name = f"{request.method} {request.route}"
        span = self._begin(name, stretch, attributes, kind=SpanKind.SERVER, parent=parent)
        if request.work is not None:
            self._work(request.work, stretch, set_span_in_context(span, Context()))
        _end(span, stretch, failed=request.status >= HTTPStatus.INTERNAL_SERVER_ERROR)

    def _run(self, run: Run, connection: Connection, parent: Context) -> None:
        attributes = {
            **_of_phase(run.phase, run.cost),
            "lanner.session": connection.number,
            "lanner.predictions": run.predictions,
        }
        end = connection.time - connection.seconds + run.after + run.cost.seconds
        # The session ends with its last run, at the earliest, however the clock is read.
        stretch = Stretch.before(min(end, connection.time), run.cost.seconds)
        span = self._begin(run.phase, stretch, attributes, parent=parent)
        self._layers(run.layers, stretch, set_span_in_context(span, Context()))
        _end(span, stretch)

    def _work(self, work: Work, request: Stretch, parent: Context) -> None:
        names = [name for name in PHASES if name in work.phases]
        stretches = laid_out([work.phases[name].seconds for name in names], request, at_end=True)
        for name, stretch in zip(names, stretches, strict=True):
            span = self._begin(name, stretch, _of_phase(name, work.phases[name]), parent=parent)
            layers = _summed(layer for layer in work.layers if layer.phase == name)
            self._layers(layers, stretch, set_span_in_context(span, Context()))
            _end(span, stretch)

    def _layers(self, layers: Sequence[Layer], phase: Stretch, parent: Context) -> None:
        for layer, stretch in zip(layers, laid_out([each.seconds for each in layers], phase), strict=True):
            _end(self._begin(layer.name, stretch, _of_layer(layer), parent=parent), stretch)

    def _begin(
        self,
        name: str,
        stretch: Stretch,
        attributes: Attributes,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Context | None = None,
    ) -> Span:
        context = Context() if parent is None else parent
        return self._tracer.start_span(name, context, kind, attributes, start_time=stretch.start)


def _end(span: Span, stretch: Stretch, *, failed: bool = False) -> None:
    if failed:
        span.set_status(Status(StatusCode.ERROR))
    span.end(stretch.end)


def _of_phase(name: str, phase: Phase) -> Attributes:
    return {
        "lanner.phase": name,
        "lanner.seconds": phase.seconds,
        "lanner.sent_bytes": phase.bytes_sent,
        "lanner.received_bytes": phase.bytes_received,
        "lanner.rounds": phase.rounds,
    }


def _of_layer(layer: Layer) -> Attributes:
    return {
        "lanner.phase": layer.phase,
        "lanner.protocol": layer.protocol,
        "lanner.seconds": layer.seconds,
        "lanner.computing_seconds": layer.computing,
        "lanner.sent_bytes": layer.bytes_sent,
        "lanner.received_bytes": layer.bytes - layer.bytes_sent,
        "lanner.rounds": layer.rounds,
    }


def _summed(layers: Iterable[Layer]) -> list[Layer]:
    """The layers of a phase, those of one name and protocol added up over the predictions."""
    sums: dict[tuple[str, str], Layer] = {}
    for layer in layers:
        key = (layer.name, layer.protocol)
        before = sums.get(key)
        sums[key] = layer if before is None else _added(before, layer)
    return list(sums.values())


def _added(one: Layer, other: Layer) -> Layer:
    return replace(
        one,
        seconds=one.seconds + other.seconds,
        computing=one.computing + other.computing,
        bytes=one.bytes + other.bytes,
        bytes_sent=one.bytes_sent + other.bytes_sent,
        rounds=one.rounds + other.rounds,
    )
