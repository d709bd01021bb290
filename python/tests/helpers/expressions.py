"""Expressions of Prometheus that deploy/ has, held against the metrics that a server and a gateway tell."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from typing import Any

import yaml
from prometheus_client.metrics_core import Metric

from helpers.documents import ROOT
from lanner.telemetry.records import MODEL_ENDINGS, OTHER_ENDINGS

#: Labels that Prometheus adds, and that of a histogram's buckets.
ADDED_LABELS = frozenset({"instance", "job", "le"})


def expressions() -> dict[str, str]:
    """Every expression of the dashboard and of the alerts, by where it stands."""
    panels = json.loads((ROOT / "deploy" / "grafana" / "lanner.json").read_text())["panels"]
    alerts: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())
    found = {
        f"{panel['title']} {target['refId']}": target["expr"] for panel in panels for target in panel.get("targets", ())
    }
    return found | {rule["alert"]: rule["expr"] for group in alerts["groups"] for rule in group["rules"]}


def check_expression(expression: str, metrics: list[Metric], added: Set[str] = ADDED_LABELS) -> None:
    """Check that names, labels and endings occur, and that brackets are closed; no more of the language is read."""
    samples = [sample for metric in metrics for sample in metric.samples]
    selectors = re.findall(r"\b((?:lanner|process)_\w+)(?:\{([^}]*)\})?", expression)
    grouped = {label for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.findall(r"\w+", labels)}
    for name, matchers in selectors:
        labels = {label for sample in samples if sample.name == name for label in sample.labels} | added
        assert any(sample.name == name for sample in samples), name
        matched = dict(re.findall(r'(\w+)(?:=|!=|=~|!~)"([^"]*)"', matchers))
        assert set(matched) | grouped <= labels, (name, set(matched) | grouped)
        asked = set(re.findall(r"\w+", matched.get("ending", "")))
        assert asked <= {*MODEL_ENDINGS, *OTHER_ENDINGS}, asked
    assert selectors or expression.startswith("up{"), expression
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), expression
