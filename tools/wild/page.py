"""docs/wild.md from what runs found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.markdown import size_of, table, time_of
from wild.trial import VERDICTS

INTRODUCTION = """# Models that packages ship

Trained models from public packages, none made for lanner. `make wild` downloads, inspects and compiles each, makes two
private predictions, and compares them with onnxruntime on the same file at the sizes of `--shape`.
[tools/wild](../tools/wild/README.md) explains the verdicts and how to add a model; `docs/wild.json` has all results.
Each row is of the commit that [Runs](#runs) names: another version may differ.

Inputs are synthetic: pictures of shapes, voices of harmonics, noise like that of a brain, tokens. The error is the
largest difference from onnxruntime, as a percentage of the numbers' range on the calibration samples; up to 1% is
right. A file that rounds values to 8 bits while it runs is compared without this rounding, whose size the table gives.
Seconds and bytes are of one prediction with its preparation, without the session's set-up. Both parties share a
machine with other work, which changes seconds, not verdicts and bytes.
"""


def page(documents: Sequence[Mapping[str, Any]]) -> str:
    """The page of these documents, one for each model."""
    by_verdict = {verdict: [each for each in documents if each["verdict"] == verdict] for verdict in VERDICTS}
    counts = ", ".join(f"{len(found)} {verdict}" for verdict, found in by_verdict.items() if found)
    parts = [INTRODUCTION, f"Of {len(documents)} models: {counts or 'nothing was run'}.\n"]
    right = [each for each in documents if each["verdict"] in ("accepted", "wrong")]
    if right:
        columns = ("model", "task", "options beside the samples", "verdict", "error", "a prediction", "sent")
        parts += ["## Computed\n", table(columns, map(_computed, right))]
    stopped = [each for each in documents if each not in right]
    if stopped:
        rows = ((_model(each), each["task"], each["verdict"], _plain(each["reason"])) for each in stopped)
        parts += ["## Not computed\n", table(("model", "task", "verdict", "why"), rows)]
    parts += ["## Runs\n", _runs(documents)]
    return "\n".join(parts)


def _computed(document: Mapping[str, Any]) -> tuple[str | None, ...]:
    error, labels = document.get("error"), document.get("labels")
    told = f"{100 * error:.2g}%" if error is not None else labels and f"{labels} labels"
    if (own := document.get("own_rounding")) is not None:
        told = f"{told}; the file's own rounding: {100 * own:.2g}%"
    options = _plain(" ".join(document["options"]))
    return (
        _model(document),
        document["task"],
        f"`{options}`" if options else "none",
        document["verdict"] + (", told as saturated" if document.get("saturated") else ""),
        told or document.get("reason"),
        time_of(document["seconds"]),
        size_of(document["bytes"]),
    )


def _model(document: Mapping[str, Any]) -> str:
    file = document["file"].rsplit("/", 1)[-1]
    where = "" if document["registry"] == "pypi" else f" ({document['registry']})"
    return f"{document['package']} {document['version']}{where}, `{file}`"


def _runs(documents: Sequence[Mapping[str, Any]]) -> str:
    """Where each model was run, and the dates and loads of the runs at one commit of one machine."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for each in documents:
        machine = each["machine"]
        where = f"lanner {machine['lanner']} at {each['commit']}, {machine['processor']}, {machine['cores']} cores"
        runs.setdefault(where, []).append(each)
    return "".join(
        f"- {where}, {_span([each['date'] for each in ran])}, "
        f"load {_span([round(each['machine']['load']) for each in ran])}: {', '.join(each['name'] for each in ran)}\n"
        for where, ran in runs.items()
    )


def _span(values: Sequence[Any]) -> str:
    """The least and the largest of some values, or the one that all are."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _plain(text: str) -> str:
    """A text that stays in one cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
