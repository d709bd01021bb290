"""Which variables of OpenTelemetry ask for traces, and what is said where they cannot be had."""

from __future__ import annotations

import logging
import sys

import pytest

from lanner.errors import MisuseError
from lanner.telemetry.tracing import is_wanted, tracing

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "mine"}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_traces_are_off_unless_asked_for(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) is wanted


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
    ],
)
def test_what_there_is_not_is_refused(environment: dict[str, str], name: str) -> None:
    with pytest.raises(MisuseError) as refused:
        is_wanted(environment)
    assert refused.value.where == name


def test_missing_sdk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "lanner.telemetry.spans", None)
    with pytest.raises(MisuseError, match=r"lanner\[otel\]"), tracing("lanner-server", print):
        pass


def test_complaints_of_the_sdk_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    told: list[str] = []
    log = logging.getLogger("opentelemetry.sdk")
    with tracing("lanner-server", told.append):
        for place in ("here", "there"):
            log.warning("no collector at %s", place)
    log.warning("nobody listens any more")
    assert told == ["traces: no collector at here"]
