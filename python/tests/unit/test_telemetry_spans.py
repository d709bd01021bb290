"""The spans that are made of records, in the SDK's memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("opentelemetry.sdk", reason="lanner[otel] is not installed")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from lanner.prediction import Layer, Phase
from lanner.telemetry.records import Connection, Request, Run, Work
from lanner.telemetry.spans import Spans, exporting

PEER = "192.0.2.7:4711"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LAYERS = (
    Layer("conv1", "cheetah.conv", "offline", 0.1, 0.1, 10, 5, 1),
    Layer("conv1", "cheetah.conv", "online", 0.2, 0.2, 20, 10, 2),
    Layer("output", "yao.argmax", "online", 0.05, 0.05, 30, 15, 3),
)
WORK = Work(2, {"offline": Phase(0.2, 1, 2, 1), "online": Phase(0.5, 3, 4, 5)}, LAYERS + LAYERS)
REQUEST = Request(1, 1000.0, PEER, "POST", "/v2/models/{name}/infer", 200, 1.0, "digits", "auto", WORK)
CONNECTION = Connection(3, 1000.0, PEER, "digits", "auto", 2, 4.0, 70, 80, "done", "")


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider)


def finished(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """The spans by path: names from the first span on."""
    made = exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in made if span.context is not None}

    def path(span: ReadableSpan) -> str:
        above = None if span.parent is None else by_id.get(span.parent.span_id)
        return span.name if above is None else f"{path(above)}>{span.name}"

    return {path(span): span for span in made}


def stretch(span: ReadableSpan) -> tuple[float, float]:
    """Start and end, in seconds."""
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time / 1e9, span.end_time / 1e9


def test_request_has_phases_and_these_have_layers(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.answered(REQUEST)
    made = finished(exporter)
    top = "POST /v2/models/{name}/infer"
    assert {path: stretch(span) for path, span in made.items()} == {
        top: pytest.approx((999.0, 1000.0)),
        f"{top}>offline": pytest.approx((999.3, 999.5)),
        f"{top}>offline>conv1": pytest.approx((999.3, 999.5)),
        f"{top}>online": pytest.approx((999.5, 1000.0)),
        f"{top}>online>conv1": pytest.approx((999.5, 999.9)),
        f"{top}>online>output": pytest.approx((999.9, 1000.0)),
    }
    assert made[top].kind is SpanKind.SERVER
    assert dict(made[f"{top}>online>conv1"].attributes or {}) == {
        "lanner.phase": "online",
        "lanner.protocol": "cheetah.conv",
        "lanner.seconds": 0.4,
        "lanner.computing_seconds": 0.4,
        "lanner.sent_bytes": 20,
        "lanner.received_bytes": 20,
        "lanner.rounds": 4,
    }


def test_phases_that_overlapped_stay_within_the_request(spans: Spans, exporter: InMemorySpanExporter) -> None:
    phases = {"offline": Phase(6.0, 1, 2, 1), "online": Phase(2.0, 3, 4, 5)}
    spans.answered(replace(REQUEST, work=replace(WORK, phases=phases)))
    top = "POST /v2/models/{name}/infer"
    made = finished(exporter)
    assert stretch(made[f"{top}>offline"]) == pytest.approx((999.0, 999.75))
    assert (made[f"{top}>offline"].attributes or {})["lanner.seconds"] == 6.0


def test_trace_context_is_the_parent(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.answered(replace(REQUEST, work=None, trace={"traceparent": f"00-{TRACE}-{PARENT}-01"}))
    spans.answered(replace(REQUEST, work=None, trace={"traceparent": "what somebody wrote"}))
    own, other = exporter.get_finished_spans()
    assert own.parent is not None
    assert own.context is not None
    assert (f"{own.context.trace_id:032x}", f"{own.parent.span_id:016x}") == (TRACE, PARENT)
    assert other.parent is None


def test_request_that_was_not_sampled_elsewhere_is_not_here(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.answered(replace(REQUEST, trace={"traceparent": f"00-{TRACE}-{PARENT}-00"}))
    assert exporter.get_finished_spans() == ()


def test_requests_that_reach_no_model_make_no_span(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.answered(Request(1, 1000.0, PEER, "GET", "/metrics", 200, 0.1))
    assert exporter.get_finished_spans() == ()


def test_session_is_a_span(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.ended(CONNECTION)
    broken = replace(CONNECTION, ending="failed", reason="the peer closed the connection", cause="disconnected")
    spans.ended(replace(broken, runs_omitted=7))
    spans.ended(replace(CONNECTION, model=None, mode=None, ending="refused"))
    spans.omitted(2)
    done, failed = exporter.get_finished_spans()
    assert done.name == "session"
    assert stretch(done) == pytest.approx((996.0, 1000.0))
    assert dict(done.attributes or {}) == {
        "lanner.session": 3,
        "lanner.model": "digits",
        "lanner.mode": "auto",
        "lanner.predictions": 2,
        "lanner.sent_bytes": 70,
        "lanner.received_bytes": 80,
        "lanner.ending": "done",
    }
    assert (done.status.is_ok, failed.status.is_ok) == (True, False)
    told = dict(failed.attributes or {})
    assert (told["lanner.cause"], told["lanner.runs_omitted"]) == ("disconnected", 7)


def test_session_has_its_phases_where_they_were_with_their_layers(spans: Spans, exporter: InMemorySpanExporter) -> None:
    runs = (
        Run("setup", 0.5, 0, Phase(0.25, 1, 2, 1), ()),
        Run("offline", 1.0, 1, Phase(0.5, 5, 5, 1), LAYERS[:1]),
        Run("online", 3.0, 1, Phase(1.0, 25, 25, 5), LAYERS[1:]),
    )
    spans.ended(replace(CONNECTION, runs=runs))
    made = finished(exporter)
    assert {path: stretch(span) for path, span in made.items()} == {
        "session": pytest.approx((996.0, 1000.0)),
        "session>setup": pytest.approx((996.5, 996.75)),
        "session>offline": pytest.approx((997.0, 997.5)),
        "session>offline>conv1": pytest.approx((997.0, 997.1)),
        "session>online": pytest.approx((999.0, 1000.0)),
        "session>online>conv1": pytest.approx((999.0, 999.2)),
        "session>online>output": pytest.approx((999.2, 999.25)),
    }
    assert dict(made["session>online"].attributes or {}) == {
        "lanner.phase": "online",
        "lanner.session": 3,
        "lanner.predictions": 1,
        "lanner.seconds": 1.0,
        "lanner.sent_bytes": 25,
        "lanner.received_bytes": 25,
        "lanner.rounds": 5,
    }


def test_no_span_tells_an_address_or_a_reason(spans: Spans, exporter: InMemorySpanExporter) -> None:
    spans.answered(REQUEST)
    spans.ended(replace(CONNECTION, ending="failed", reason=f"{PEER} said what it should not"))
    assert "192.0.2.7" not in "".join(span.to_json() for span in exporter.get_finished_spans())


def test_service_is_named_by_the_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def named() -> object:
        provider = exporting("lanner-server")
        provider.shutdown()
        return provider.resource.attributes["service.name"]

    assert named() == "lanner-server"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=theirs")
    assert named() == "theirs"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    assert named() == "mine"
