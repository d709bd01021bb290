"""What is said of metrics, in the page, the dashboard and the alerts, is what a server and a gateway tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from helpers.callers import Caller, request_of
from helpers.documents import ROOT, blocks
from helpers.expressions import ADDED_LABELS, check_expression, expressions
from helpers.models import tiny_samples
from helpers.processes import gateway, serving
from lanner.telemetry.records import MODEL_ENDINGS, OTHER_ENDINGS

PAGE = ROOT / "docs" / "how-to" / "watch-a-server.md"
SCHEMAS = ROOT / "tools" / "tests" / "schemas"


@pytest.fixture(scope="module")
def told(tiny_label: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Metric]]]:
    """The metrics of a server and a gateway after a prediction, by the command."""
    folder = tmp_path_factory.mktemp("watched")
    with (
        serving(folder / "state", tiny_label, "--metrics", "127.0.0.1:0") as server,
        gateway(folder / "gate", server.address, *server.pin) as gate,
    ):
        callers = {"server": Caller(f"http://{server.document['metrics']}"), "gateway": Caller(gate.document["url"])}
        assert callers["gateway"].infer("tiny_label", request_of(tiny_samples(1), "x")).status == 200
        yield {
            name: list(text_string_to_metric_families(call.get("/metrics").body.decode()))
            for name, call in callers.items()
        }


def full_name(metric: Metric) -> str:
    """The name as it is written down: of counters with the ending that the parser takes off."""
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def described(section: str) -> dict[str, tuple[str, set[str]]]:
    """The kind and the labels of each metric in the table of a section of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(lanner_\w+)` \| (\w+) \| ([\w, ]*)\|", text, re.MULTILINE)
    return {name: (kind, set(re.findall(r"\w+", labels))) for name, kind, labels in rows}


@pytest.mark.parametrize(("section", "command"), [("A server", "server"), ("A gateway", "gateway")])
def test_page_lists_what_is_told(told: dict[str, list[Metric]], section: str, command: str) -> None:
    found = {
        full_name(metric): (metric.type, set().union(*(sample.labels for sample in metric.samples)) - ADDED_LABELS)
        for metric in told[command]
        if metric.name.startswith("lanner_")
    }
    assert described(section) == found


def test_names_are_in_base_units_and_explained(told: dict[str, list[Metric]]) -> None:
    for metric in [metric for metrics in told.values() for metric in metrics]:
        assert metric.documentation.endswith("."), metric.name
        assert not re.search(r"_(ms|millis\w*|kb|mb|kib|mib|gib|minutes|percent)(_|$)", metric.name)


def test_page_explains_every_ending() -> None:
    text = PAGE.read_text(encoding="utf-8").split("| ending | what happened |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {*MODEL_ENDINGS, *OTHER_ENDINGS}


def test_page_shows_a_job_that_prometheus_reads() -> None:
    (job,) = (block for block in blocks(PAGE) if block.language == "yaml")
    jsonschema.validate(yaml.safe_load(job.text), json.loads((SCHEMAS / "prometheus.json").read_text()))


@pytest.mark.parametrize("place", expressions())
def test_expression_asks_for_what_is_told(told: dict[str, list[Metric]], place: str) -> None:
    check_expression(expressions()[place], [metric for metrics in told.values() for metric in metrics])


def test_expression_with_what_is_not_told_is_found(told: dict[str, list[Metric]]) -> None:
    for expression in (
        "rate(lanner_session_total[5m])",
        "sum by (modell) (rate(lanner_sent_bytes_total[5m]))",
        'lanner_connections_total{ending="lost"}',
        'lanner_stock_bytes{model="digits"}',
        "sum(rate(lanner_sent_bytes_total[5m])",
    ):
        with pytest.raises(AssertionError):
            check_expression(expression, told["server"])
