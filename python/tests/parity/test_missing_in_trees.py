"""Missing numbers go where scikit-learn's own trees send them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanner

sklearn_tree = pytest.importorskip("sklearn.tree")
ensemble = pytest.importorskip("sklearn.ensemble")
pytest.importorskip("skl2onnx")

COLUMNS = 4


def rows(seed: int, missing: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(150, COLUMNS)).astype(np.float32)
    x[rng.random(x.shape) < missing] = np.nan
    return x


def classes(seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which columns are above 0 before some are lost: what is missing says something, too."""
    x = rows(seed, 0.0)
    return (x[:, 0] > 0).astype(np.int64) + (x[:, 1] + x[:, 2] > 0.3)


CLASSIFIERS = {
    "tree": lambda: sklearn_tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    "extra tree": lambda: sklearn_tree.ExtraTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(8, max_depth=4, random_state=0),
    "extra trees": lambda: ensemble.ExtraTreesClassifier(8, max_depth=4, random_state=0),
    "bagging": lambda: ensemble.BaggingClassifier(
        sklearn_tree.DecisionTreeClassifier(max_depth=4), n_estimators=5, random_state=0
    ),
}

REGRESSORS = {
    "tree": lambda: sklearn_tree.DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": lambda: ensemble.RandomForestRegressor(8, max_depth=4, random_state=0),
    "extra trees": lambda: ensemble.ExtraTreesRegressor(8, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_rows_that_lack_numbers_are_the_estimators(name: str) -> None:
    fitted = CLASSIFIERS[name]().fit(rows(1, 0.2), classes(1))
    x = rows(2, 0.2)
    model = lanner.compile(fitted, rows(1, 0.2))
    own, found = fitted.predict(x), fitted.classes_[model.predict_fixed(x).argmax(1)]
    chances = np.sort(fitted.predict_proba(x), axis=1)
    clear = chances[:, -1] - chances[:, -2] > 0.01
    assert np.isnan(x[clear]).any(1).sum() > 40
    assert np.array_equal(found[clear], own[clear])


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers_of_rows_that_lack_some_are_the_estimators(name: str) -> None:
    fitted = REGRESSORS[name]().fit(rows(1, 0.2), classes(1))
    x = rows(2, 0.2)
    found = lanner.compile(fitted, rows(1, 0.2)).predict_fixed(x).ravel()
    assert np.abs(found - fitted.predict(x)).max() < 0.01


def test_a_forest_that_saw_no_missing_number_sends_them_to_the_larger_side() -> None:
    fitted = CLASSIFIERS["forest"]().fit(rows(1, 0.0), classes(1))
    x = rows(2, 0.2)
    model = lanner.compile(fitted, np.concatenate([rows(1, 0.0), rows(3, 0.2)]))
    chances = np.sort(fitted.predict_proba(x), axis=1)
    clear = chances[:, -1] - chances[:, -2] > 0.01
    assert np.array_equal(model.predict_fixed(x).argmax(1)[clear], fitted.predict(x)[clear])
    row = int(np.flatnonzero(clear & np.isnan(x).any(1))[0])
    assert lanner.run(model, x[row]).label == fitted.predict(x[row : row + 1])[0]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_shallow_trees_that_split_alike_are_told_apart(missing: float) -> None:
    fitted = ensemble.RandomForestClassifier(60, max_depth=1, random_state=0).fit(rows(1, missing), classes(1))
    x = rows(2, missing)
    model = lanner.compile(fitted, rows(1, missing))
    chances = np.sort(fitted.predict_proba(x), axis=1)
    clear = chances[:, -1] - chances[:, -2] > 0.01
    assert np.array_equal(model.predict_fixed(x).argmax(1)[clear], fitted.predict(x)[clear])
