"""Commands on networks of every kind of end: what belongs to it is told, measured, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanner as library
from helpers.heads import network, rows
from helpers.models import save_model
from helpers.processes import HUNG, Finished, lanner
from lanner.metrics import area_under_roc, determination

TOLD = ("label", "class_name", "labels", "class_names", "probability", "top", "logits", "values")

#: Ends: number of scores, last operator, options, and the members of a prediction.
ENDS: dict[str, tuple[int, str, tuple[str, ...], set[str]]] = {
    "classes": (3, "Softmax", (), {"label"}),
    "two classes": (1, "Sigmoid", ("--output", "probability"), {"label", "probability"}),
    "logit": (1, "Sigmoid", ("--output", "logits"), {"label", "logits"}),
    "labels": (4, "Sigmoid", (), {"labels"}),
    "value": (1, "", (), {"values"}),
    "values": (2, "", ("--output", "value"), {"values"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_run_tells_what_belongs_to_the_end(tmp_path: Path, end: str) -> None:
    outputs, ending, options, members = ENDS[end]
    path = save_model(tmp_path / "net.onnx", network(outputs, ending))
    np.save(tmp_path / "calibration.npy", rows())
    np.save(tmp_path / "x.npy", rows(2, seed=9))
    arguments = ("run", path, tmp_path / "x.npy", "--calibration", tmp_path / "calibration.npy", *options)
    result = lanner(*arguments)
    assert result.code == 0, result.errors
    for prediction in result.document["predictions"]:
        assert {member for member in TOLD if prediction[member] is not None} == members
        assert "integers" not in prediction
    shown = subprocess.run(
        [sys.executable, "-m", "lanner", *map(str, arguments)], capture_output=True, text=True, timeout=HUNG, check=True
    )
    header = next(line for line in shown.stdout.splitlines() if line.startswith("input"))
    assert set(header.split()) == {"input", "index", *members}


def evaluated(tmp_path: Path, end: str, y: NDArray[Any], *options: str) -> tuple[Finished, library.Model]:
    """`evaluate` of a network on forty samples."""
    outputs, ending, compiled, _ = ENDS[end]
    output = compiled[1] if compiled else None
    model = library.compile(network(outputs, ending), rows(), output=output, name="net")
    model.save(tmp_path / "net.lanner")
    np.savez(tmp_path / "data.npz", x=rows(len(y)), y=y)
    return lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz", *options), model


def noisy(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    return scores + 0.3 * np.random.default_rng(1).standard_normal(scores.shape)


def truth_of(end: str) -> NDArray[Any]:
    """What is true of forty samples, which the network nearly ranks: both sides of every middle occur."""
    outputs, ending, _, _ = ENDS[end]
    exact = noisy(library.compile(network(outputs, ending), rows(), output="logits").predict_float(rows(40)))
    if end in ("value", "values"):
        return exact
    if end == "classes":
        best: NDArray[np.int64] = exact.argmax(1)
        return best
    above: NDArray[np.int64] = (exact > np.median(exact, 0)).astype(np.int64)
    return above if end == "labels" else above.ravel()


@pytest.mark.parametrize("end", ENDS)
def test_evaluate_measures_as_the_field_does(tmp_path: Path, end: str) -> None:
    y = truth_of(end)
    result, model = evaluated(tmp_path, end, y, "--secure")
    assert result.code == 0, result.errors
    document = result.document
    secure = document["secure"]
    assert secure["agrees_with_reference"] == secure["samples"] == 40
    metrics = {"classes": {"accuracy"}, "labels": {"accuracy", "labels"}}.get(end, {"accuracy", "auc"})
    if end in ("value", "values"):
        metrics = {"r2", "mean_absolute_error"}
        values = model.predict_fixed(rows(40))
        assert document["fixed"]["r2"] == pytest.approx(determination(values, y.astype(np.float64)).value)
    assert set(document["float"]) == metrics
    assert set(secure) == metrics | {"agrees_with_reference", "samples"}
    assert all(secure[metric] == pytest.approx(document["fixed"][metric], abs=0.01) for metric in metrics - {"labels"})
    if end == "labels":
        assert [label["label"] for label in document["float"]["labels"]] == [0, 1, 2, 3]
        assert all(label["auc"] > 0.8 for label in document["fixed"]["labels"])
        # The list of labels that hold does not rank samples.
        assert all("auc" not in label for label in secure["labels"])
    if end == "logit":
        score = model.predict_float(rows(40))[:, 0].astype(np.float64)
        assert document["float"]["auc"] == pytest.approx(area_under_roc(score, y).value)
        # Not that of class 0 of one logit.
        assert document["float"]["accuracy"] == pytest.approx(((score > 0) == y).mean())


def test_names_are_taken_for_the_truth_of_a_classifier(tmp_path: Path) -> None:
    model = library.compile(network(1, "Sigmoid"), rows(), classes=["no", "yes"])
    model.save(tmp_path / "net.lanner")
    y = np.array(["no", "yes"])[truth_of("two classes")]
    np.savez(tmp_path / "data.npz", x=rows(40), y=y)
    result = lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz")
    assert result.code == 0, result.errors
    labels = model.predict_float(rows(40)).argmax(1)
    assert result.document["float"]["accuracy"] == (labels == truth_of("two classes")).mean()
    np.savez(tmp_path / "data.npz", x=rows(1), y=np.array(["perhaps"]))
    result = lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz")
    assert result.code == 6
    assert "no class 'perhaps'" in result.document["error"]["what"]


@pytest.mark.parametrize(
    ("end", "y"),
    [
        ("classes", np.array([0, 1, 3])),
        ("classes", np.array([0.5, 1, 2])),
        ("two classes", np.array([0, 1, 2])),
        ("labels", np.array([0, 1, 1])),
        ("labels", np.full((3, 4), 2)),
        ("values", np.zeros(3)),
        ("value", np.array(["a", "b", "c"])),
    ],
)
def test_truth_that_does_not_fit_exits_6(tmp_path: Path, end: str, y: NDArray[Any]) -> None:
    result, _ = evaluated(tmp_path, end, y)
    assert result.code == 6
    assert "data.npz, y" in result.document["error"]["where"]


def test_evaluate_says_last_what_fixed_point_loses(tmp_path: Path) -> None:
    # Calibrated on inputs a hundredth as large, of which larger ones are cut to the limits.
    model = library.compile(network(1), 0.01 * rows(), name="net")
    model.save(tmp_path / "net.lanner")
    np.savez(tmp_path / "data.npz", x=rows(40), y=truth_of("value"))
    result = lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "data.npz")
    assert result.code == 0, result.errors
    last = result.errors.strip().splitlines()[-1]
    assert "fixed-point R2" in last
    assert "standard error" in last
    kept, _ = evaluated(tmp_path, "value", truth_of("value"))
    assert "standard error" not in kept.errors


def test_an_area_that_is_not_defined_is_null(tmp_path: Path) -> None:
    result, _ = evaluated(tmp_path, "logit", np.ones(3, np.int64))
    assert result.code == 0, result.errors
    assert result.document["float"]["auc"] is None
