"""Fitted estimators are compiled as they are, and predict as their own libraries do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import lanner
from lanner.errors import ModelError

Data = tuple[NDArray[np.float32], NDArray[Any]]


def _tree(depth: int = 3) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


def _forest() -> Any:  # noqa: ANN401 - scikit-learn is untyped
    return RandomForestClassifier(4, max_depth=3, random_state=0)


def _boosted() -> Any:  # noqa: ANN401 - scikit-learn is untyped
    return GradientBoostingRegressor(n_estimators=5, random_state=0)


def _named(estimator: Any) -> str:  # noqa: ANN401 - any library's
    return type(estimator).__name__


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
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
        BaggingClassifier(_tree(), 5, max_features=0.5, random_state=0),
        VotingClassifier([("tree", _tree()), ("forest", _forest())], voting="soft", weights=[1, 2]),
        VotingClassifier([("small", _tree(2)), ("gone", "drop"), ("large", _tree(4))], weights=[2, 5, 1]),
        AdaBoostClassifier(_tree(1), n_estimators=5, random_state=0),
        CalibratedClassifierCV(_tree(), cv=3),
        CalibratedClassifierCV(_tree(4), cv=3, method="isotonic"),
        CalibratedClassifierCV(_forest(), cv=3, ensemble=False),
        StackingClassifier([("tree", _tree()), ("forest", _forest())], LogisticRegression(), cv=3),
    ],
    ids=_named,
)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_labels_are_scikit_learns(estimator: Any, load: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
    _check_labels(estimator, _data(load))


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(5, max_depth=5, random_state=0),
        GradientBoostingRegressor(n_estimators=10, random_state=0),
        HistGradientBoostingRegressor(max_iter=5, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_depth=3), 5, random_state=0),
        VotingRegressor([("boosted", _boosted()), ("tree", DecisionTreeRegressor(max_depth=3))], weights=[1, 3]),
        StackingRegressor([("boosted", _boosted()), ("tree", DecisionTreeRegressor(max_depth=3))], Ridge(), cv=3),
    ],
    ids=_named,
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


def test_missing_numbers_of_histogram_boosting_go_its_way() -> None:
    _check_labels(HistGradientBoostingClassifier(max_iter=5), _data(load_breast_cancer, missing=0.1))


def test_categories_of_histogram_boosting_are_asked_for_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=120), rng.choice([3, 5, 8, 13], 120), rng.normal(size=120)], 1)
    truth = np.isin(rows[:, 1], [5, 13]) * 2.0 + (rows[:, 0] > 0)
    rows[rng.random(120) < 0.1, 1] = np.nan
    model = HistGradientBoostingRegressor(max_iter=1, categorical_features=[1], max_leaf_nodes=5)
    _check_values(model, (rows.astype(np.float32), truth))
    words = HistGradientBoostingRegressor(max_iter=1, categorical_features=[0])
    words.fit(np.array([["a"], ["b"]] * 50, object), np.arange(100))
    with pytest.raises(ModelError, match="its categories are words"):
        lanner.compile(words, rows[:, :1].astype(np.float32))


@pytest.mark.parametrize("classes", [["no", "yes"], [7, 3], [True, False]])
def test_classes_of_histogram_boosting_keep_their_names(classes: list[Any]) -> None:
    rows, truth = _data(load_breast_cancer)
    named = np.array(classes)[truth]
    compiled = lanner.compile(HistGradientBoostingClassifier(max_iter=3).fit(rows, named), rows)
    names = sorted(classes)
    assert compiled.manifest.classes == tuple(str(int(each)) if isinstance(each, bool) else str(each) for each in names)


@pytest.mark.parametrize("contamination", ["auto", 0.1], ids=str)
def test_isolation_forests_find_scikit_learns_outliers(contamination: Any) -> None:  # noqa: ANN401 - scikit-learn's
    rows, _ = _data(load_breast_cancer)
    # With a share of outliers a row of the training may be at the threshold.
    rows = rows[:101] if contamination != "auto" else rows
    forest = IsolationForest(n_estimators=8, max_samples=32, contamination=contamination, random_state=0).fit(rows)
    compiled = lanner.compile(forest, rows)
    names = [int(name) for name in compiled.manifest.classes or ()]
    assert [names[at] for at in compiled.predict_fixed(rows).argmax(1)] == forest.predict(rows).tolist()


def test_one_tree_against_the_rest_has_scikit_learns_label() -> None:
    _check_labels(OneVsRestClassifier(_tree()), _data(load_iris))


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (
            VotingClassifier([("a", _tree()), ("b", GradientBoostingClassifier(n_estimators=2))], voting="soft"),
            "Sigmoid",
        ),
        (VotingClassifier([("a", _tree()), ("b", LogisticRegression(max_iter=10))], voting="soft"), "columns"),
        (VotingClassifier([("a", _tree()), ("b", _forest())]), "ArgMax"),
        (CalibratedClassifierCV(_forest(), cv=3), "Sigmoid"),
        (CalibratedClassifierCV(_forest(), cv=3, method="isotonic", ensemble=False), "Clip"),
    ],
    ids=["boosting votes", "a linear vote", "labels of forests", "two calibrated forests", "isotonic"],
)
def test_what_is_no_sum_of_trees_is_refused(estimator: Any, reason: str) -> None:  # noqa: ANN401 - any library's
    rows, truth = _data(load_breast_cancer)
    with pytest.raises(ModelError, match=f"{reason} combines trees|input's {reason}"):
        lanner.compile(estimator.fit(rows, truth), rows)


def test_medians_and_exponentials_of_trees_are_refused() -> None:
    rows, truth = _data(load_diabetes)
    with pytest.raises(ModelError, match="TopK combines trees other than by sums"):
        lanner.compile(AdaBoostRegressor(n_estimators=2).fit(rows, truth), rows)
    with pytest.raises(ModelError, match="loss poisson makes a prediction the exponential"):
        lanner.compile(HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(rows, truth), rows)


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
