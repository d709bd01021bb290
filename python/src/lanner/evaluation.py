"""What a model is measured by on labelled data, as its field does.

A classifier is measured by its accuracy, one of two classes also by the area under the ROC curve (AUC), each label of
several by both, and a regression by its R2 and its mean absolute error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner.agreement import labels_of
from lanner.errors import InputError
from lanner.manifest import Manifest
from lanner.metrics import (
    Floats,
    Integers,
    Metric,
    accuracy,
    area_under_roc,
    determination,
    mean_absolute_error,
)
from lanner.prediction import Prediction

#: Class names that an error lists at most.
SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True)
class Results:
    """What a computation gives for samples, as far as it is known.

    Attributes:
        labels: A class index for each sample, shape (n,), or for each place, shape (n, places), or 0 or 1 for each of
            several labels, shape (n, labels).
        scores: What ranks class 1 above class 0, shape (n,), or a label above its absence, shape (n, labels).
        values: The estimated quantities, shape (n, outputs).
    """

    labels: Integers | None = None
    scores: Floats | None = None
    values: Floats | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What a model's outputs are compared with.

    Attributes:
        kind: ``classes``, ``two classes``, ``labels``, ``places`` or ``values``.
        truth: For ``values`` of shape (n, outputs), for ``labels`` of shape (n, labels), for ``places`` the class at
            each place, shape (n, places), else (n,).
        names: The names of the labels, of several.
    """

    kind: str
    truth: NDArray[Any]
    names: Sequence[str] = ()

    def of_scores(self, scores: NDArray[Any]) -> Results:
        """The results of real or integer scores, shape (n, outputs); these are the values of a regression."""
        reals = scores.astype(np.float64)
        if self.kind == "values":
            return Results(values=reals)
        if self.kind == "labels":
            return Results(labels_of(scores, "labels"), reals)
        if self.kind == "places":
            return Results(labels_of(scores, "label-map", self.truth.shape[1]))
        # One score speaks for class 1, of two it is the difference.
        two = reals[:, -1] - (reals[:, 0] if reals.shape[1] == 2 else 0.0)
        return Results(labels_of(scores, "label"), two if self.kind == "two classes" else None)

    def of_predictions(self, predictions: Sequence[Prediction]) -> Results:
        """The results that secure predictions reveal."""
        first = predictions[0]
        if first.values is not None or first.logits is not None:
            return self.of_scores(np.array([prediction.reals for prediction in predictions]))
        if self.kind == "labels" and first.labels is not None:
            held = np.zeros(self.truth.shape, np.int64)
            for row, prediction in zip(held, predictions, strict=True):
                row[prediction.labels or []] = 1
            return Results(held)
        if self.kind == "places":
            return Results(np.array([prediction.labels for prediction in predictions], np.int64))
        labels = np.array([prediction.label for prediction in predictions], np.int64)
        if self.kind != "two classes" or first.probability is None:
            return Results(labels)
        likely = np.array([prediction.probability for prediction in predictions], np.float64)
        return Results(labels, np.where(labels == 1, likely, 1 - likely))

    def measure(self, results: Results) -> dict[str, Metric]:
        """The metrics of results by name, those that are known; NaN where one is not defined."""
        found: dict[str, Metric] = {}
        if results.values is not None:
            found["r2"] = determination(results.values, self.truth)
            found["mean_absolute_error"] = mean_absolute_error(results.values, self.truth)
        if results.labels is not None:
            found["accuracy"] = accuracy(results.labels, self.truth)
        if results.scores is not None and results.scores.ndim == 1:
            found["auc"] = area_under_roc(results.scores, self.truth)
        return found

    def by_label(self, results: Results) -> list[dict[str, Any]]:
        """For each of several labels its metrics, None where one is not defined; empty for other kinds."""
        if self.kind != "labels" or results.labels is None:
            return []
        return [
            {"label": label, "class_name": self.names[label] if self.names else None, **self._of_label(results, label)}
            for label in range(self.truth.shape[1])
        ]

    def _of_label(self, results: Results, label: int) -> dict[str, float | None]:
        truth = self.truth[:, label]
        found = {} if results.labels is None else {"accuracy": accuracy(results.labels[:, label], truth)}
        if results.scores is not None:
            found["auc"] = area_under_roc(results.scores[:, label], truth)
        return {name: defined(metric) for name, metric in found.items()}


def defined(metric: Metric) -> float | None:
    """A metric's value; None where it is not defined, as the area is where one class alone occurs."""
    return None if math.isnan(metric.value) else metric.value


def task_of(manifest: Manifest, outputs: int, truth: NDArray[Any], path: Path) -> Task:
    """What a model of so many outputs is measured by, given the truth `y` of a file.

    Raises:
        InputError: If the truth does not fit the model; the file is named.
    """
    where = f"{path}, y"
    if manifest.output == "value" or (manifest.output == "logits" and manifest.is_map):
        return Task("values", _numbers(truth, outputs, where))
    if manifest.places is not None:
        places = math.prod(manifest.places)
        return Task("places", _at_places(truth, places, outputs // places, where))
    if manifest.output == "labels" or (manifest.output == "logits" and truth.ndim == 2 and truth.shape[1] > 1):
        return Task("labels", _whole(truth, 2, outputs, where), manifest.classes or ())
    classes = max(outputs, 2)
    return Task("two classes" if classes == 2 else "classes", _classes(truth, manifest, classes, where))


def _at_places(truth: NDArray[Any], places: int, classes: int, where: str) -> Integers:
    # The truth may have the map's shape.
    rows = truth.reshape(len(truth), math.prod(truth.shape[1:]))
    whole = rows.dtype.kind in "iu" and bool(((rows >= 0) & (rows < classes)).all())
    if rows.shape[1] != places or not whole:
        raise InputError(
            f"the shape is {truth.shape} and the type {truth.dtype}",
            where=where,
            fix=f"give {places} whole numbers a sample, one for each place, from 0 to {classes - 1}",
        )
    return rows.astype(np.int64)


def _numbers(truth: NDArray[Any], outputs: int, where: str) -> Floats:
    # Of a map the truth may have the shape.
    rows = truth.reshape(len(truth), math.prod(truth.shape[1:]))
    if rows.shape[1] != outputs or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
        raise InputError(
            f"the shape is {truth.shape} and the type {truth.dtype}",
            where=where,
            fix=f"give {outputs} finite number{'s' if outputs > 1 else ''} a sample",
        )
    return rows.astype(np.float64)


def _classes(truth: NDArray[Any], manifest: Manifest, classes: int, where: str) -> Integers:
    """A class index for each sample; the classes' names do as well, also where they are numbers."""
    column = truth[:, 0] if truth.ndim == 2 and truth.shape[1] == 1 else truth
    if column.dtype.kind == "U" and column.ndim == 1 and manifest.classes is not None:
        indices = {name: index for index, name in enumerate(manifest.classes)}
        unknown = sorted(set(column.tolist()) - set(indices))
        if unknown:
            raise InputError(f"the model has no class {unknown[0]!r}", where=where, fix="give its classes' names")
        return np.array([indices[name] for name in column.tolist()], np.int64)
    return _numbered(column, manifest.classes, classes, where)


def _numbered(labels: NDArray[Any], names: Sequence[str] | None, classes: int, where: str) -> Integers:
    """A class index for each label that is a number.

    Where all classes are named by integers other than their indices, labels are these names, else indices.

    Raises:
        InputError: If a label is neither; a name and an index are told apart.
    """
    if labels.dtype.kind not in "iuf" or labels.ndim != 1 or not np.isfinite(labels).all():
        return _whole(labels, 1, classes, where)
    listed = labels.tolist()
    named = _integer_names(names)
    if named is not None:
        unknown = sorted(set(listed) - set(named))
        if unknown:
            raise InputError(
                f"the label {unknown[0]:g} is no class name; labels are read as names and not as indices from 0 to "
                f"{classes - 1}, as all names are integers",
                where=where,
                fix=f"give names: {_some(list(map(str, named)))}",
            )
        return np.array([named[label] for label in listed], np.int64)
    beyond = sorted(label for label in set(listed) if not 0 <= label < classes or label != math.floor(label))
    if beyond:
        or_names = "" if names is None else f", or class names: {_some(names)}"
        raise InputError(
            f"the label {beyond[0]:g} is neither the index nor the name of a class",
            where=where,
            fix=f"give whole numbers from 0 to {classes - 1}{or_names}",
        )
    return labels.astype(np.int64)


def _integer_names(names: Sequence[str] | None) -> dict[int, int] | None:
    """The class index of each name, where all are integers and not the indices themselves in order; else None."""
    if names is None or not all(re.fullmatch(r"[+-]?[0-9]{1,18}", name) for name in names):
        return None
    integers = {int(name): index for index, name in enumerate(names)}
    indices = list(range(len(names)))
    return integers if len(integers) == len(names) and list(integers) != indices else None


def _some(names: Sequence[str]) -> str:
    """The first names, and that there are more."""
    return ", ".join(names[:SHOWN_NAMES]) + (", ..." if len(names) > SHOWN_NAMES else "")


def _whole(truth: NDArray[Any], rank: int, count: int, where: str) -> Integers:
    """Whole numbers below `count`, or of rank 2 a row of so many that are 0 or 1."""
    whole = truth.dtype.kind in "iub" or (truth.dtype.kind == "f" and bool((truth == np.floor(truth)).all()))
    below, sides = (count, ()) if rank == 1 else (2, (count,))
    if not whole or truth.shape[1:] != sides or truth.ndim != rank or ((truth < 0) | (truth >= below)).any():
        said = "one whole number" if rank == 1 else f"{count} whole numbers, one for each label,"
        raise InputError(
            f"the shape is {truth.shape} and the type {truth.dtype}",
            where=where,
            fix=f"give {said} a sample from 0 to {below - 1}",
        )
    return truth.astype(np.int64)
