"""Fitted estimators are compiled as they are, and predict as their own libraries do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import lanner
from lanner.errors import ModelError

Data = tuple[NDArray[np.float32], NDArray[Any]]


def _data(load: Any, missing: float = 0.0) -> Data:  # noqa: ANN401 - scikit-learn is untyped
    x, y = load(return_X_y=True)
    rows = x.astype(np.float32)
    rows[np.random.default_rng(0).random(rows.shape) < missing] = np.nan
    return rows, y


def _check_labels(estimator: Any, data: Data) -> None:  # noqa: ANN401 - any library's
    rows, truth = data
    estimator.fit(rows, truth)
    compiled = lanner.compile(estimator, rows)
    found = compiled.predict_fixed(rows).argmax(1)
    assert found.tolist() == [int(label) for label in estimator.predict(rows)]


def _check_values(estimator: Any, data: Data) -> None:  # noqa: ANN401 - any library's
    rows, truth = data
    estimator.fit(rows, truth)
    compiled = lanner.compile(estimator, rows)
    assert compiled.manifest.output == "value"
    expected = np.asarray(estimator.predict(rows), np.float64).reshape(len(rows), -1)
    assert np.abs(compiled.predict_fixed(rows) - expected).max() < 1e-5 * np.ptp(expected)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        RandomForestClassifier(10, max_depth=5, random_state=0),
        ExtraTreesClassifier(10, max_depth=5, random_state=0),
        GradientBoostingClassifier(n_estimators=10, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_labels_are_scikit_learns(estimator: Any, load: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
    _check_labels(estimator, _data(load))


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(5, max_depth=5, random_state=0),
        GradientBoostingRegressor(n_estimators=10, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_values_are_scikit_learns(estimator: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
    _check_values(estimator, _data(load_diabetes))


def test_an_imputer_before_trees_is_part_of_their_questions() -> None:
    forest = make_pipeline(SimpleImputer(), RandomForestClassifier(5, max_depth=4, random_state=0))
    _check_labels(forest, _data(load_breast_cancer, missing=0.1))


def test_a_scaler_before_trees_is_part_of_their_questions() -> None:
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=4, random_state=0))
    _check_labels(forest, _data(load_breast_cancer))


def test_a_linear_estimator_is_exported_too() -> None:
    _check_labels(make_pipeline(StandardScaler(), LogisticRegression()), _data(load_iris))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_labels_are_xgboosts(load: Any, missing: float) -> None:  # noqa: ANN401 - scikit-learn is untyped
    xgboost = pytest.importorskip("xgboost")
    pytest.importorskip("onnxmltools")
    _check_labels(xgboost.XGBClassifier(n_estimators=10, max_depth=4), _data(load, missing))


def test_values_are_xgboosts() -> None:
    xgboost = pytest.importorskip("xgboost")
    pytest.importorskip("onnxmltools")
    _check_values(xgboost.XGBRegressor(n_estimators=10, max_depth=4), _data(load_diabetes))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_labels_are_lightgbms(load: Any, missing: float) -> None:  # noqa: ANN401 - scikit-learn is untyped
    lightgbm = pytest.importorskip("lightgbm")
    pytest.importorskip("onnxmltools")
    _check_labels(lightgbm.LGBMClassifier(n_estimators=10, verbose=-1), _data(load, missing))


def test_values_are_lightgbms() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    pytest.importorskip("onnxmltools")
    _check_values(lightgbm.LGBMRegressor(n_estimators=10, verbose=-1), _data(load_diabetes))


def test_labels_are_catboosts() -> None:
    catboost = pytest.importorskip("catboost")
    estimator = catboost.CatBoostClassifier(iterations=10, depth=4, verbose=False, allow_writing_files=False)
    _check_labels(estimator, _data(load_breast_cancer))


def test_an_estimator_that_is_not_fitted_is_refused() -> None:
    rows, _ = _data(load_iris)
    with pytest.raises(ModelError, match="fit it first"):
        lanner.compile(RandomForestClassifier(), rows)
