"""What ``lanner evaluate`` measures, as members of a document and as text for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import agreeing
from lanner.evaluation import Results, Task, defined
from lanner.model import Model

#: Samples computed at once by the references.
BATCH = 256

#: How metrics are called in tables, and whether they are shares.
SHOWN = {"accuracy": ("accuracy", True), "auc": ("AUC", False), "r2": ("R2", False)}
SHOWN["mean_absolute_error"] = ("mean absolute error", False)


def integers_of(model: Model, x: NDArray[np.float32]) -> tuple[NDArray[np.int64], int]:
    """Fixed-point integer logits, and the overflows met; inputs out of range count among these."""
    return saturating_of(model, x)[:2]


def saturating_of(model: Model, x: NDArray[np.float32]) -> tuple[NDArray[np.int64], int, list[dict[str, int]]]:
    """The same, and for each sample where its values were beyond what the network has room for."""
    within = model.manifest.input.clip(x)
    values, met, saturated = model.predict_saturating(within)
    return values, met + int((within != x).reshape(len(x), -1).any(1).sum()), saturated


def as_results(integers: NDArray[np.int64], model: Model) -> NDArray[np.float64]:
    """Integer logits as reals."""
    return model.reals(integers)


def document_of(task: Task, results: Results) -> dict[str, Any]:
    """A computation's metrics; those of each label where there are several."""
    found: dict[str, Any] = {name: defined(metric) for name, metric in task.measure(results).items()}
    by_label = task.by_label(results)
    return found | ({"labels": by_label} if by_label else {})


def against_float(fixed: Results, exact: Results) -> dict[str, Any]:
    """How the fixed-point results differ from the float's."""
    if fixed.labels is not None and exact.labels is not None:
        return {"labels_agree": agreeing(fixed.labels, exact.labels)}
    if fixed.values is not None and exact.values is not None:
        return {"largest_difference": float(np.abs(fixed.values - exact.values).max())}
    return {}


def metric_cell(name: str, values: dict[str, Any]) -> str | None:
    """A metric for a table; None where it is not known."""
    value = values.get(name)
    return None if value is None else metric_text(name, value)


def metric_text(name: str, value: float) -> str:
    """A metric for people."""
    return f"{value:.2%}" if SHOWN[name][1] else f"{value:.4g}"
