"""Models of scikit-learn, trained on its own data sets and exported by skl2onnx with the scores as output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from skl2onnx import to_onnx
from sklearn import datasets
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from helpers.brought import Brought

Estimator = Any
Data = tuple[NDArray[np.float32], NDArray[Any]]


def scikit_models() -> list[Brought]:
    """Every model, those that no version here computes among them."""
    return [Brought(name, _exporter(make, data)) for name, (make, data) in {**TAKEN, **REFUSED}.items()]


def _exporter(make: Callable[[], Estimator], data: Callable[[], Data]) -> Callable[[], onnx.ModelProto]:
    return lambda: _export(make(), *data())


def _export(estimator: Estimator, x: NDArray[np.float32], y: NDArray[Any]) -> onnx.ModelProto:
    estimator.fit(x, y)
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    options = {id(last): {"zipmap": False}} if hasattr(last, "classes_") and not isinstance(last, _PLAIN) else None
    proto: onnx.ModelProto = to_onnx(estimator, x[:1], options=options)
    scores = proto.graph.output[-1]
    del proto.graph.output[:]
    proto.graph.output.append(scores)
    return proto


def _data(load: Callable[..., Any], scale: float = 1.0) -> Callable[[], Data]:
    def loaded() -> Data:
        x, y = load(return_X_y=True)
        return (x * scale).astype(np.float32), y

    return loaded


def _by_column() -> Estimator:
    """Two scalers for some columns each, in another order, with a column that is left as it is and others that go."""
    parts = [("standard", StandardScaler(), [12, 3, 0, 7]), ("range", MinMaxScaler(), [5, 4, 9])]
    return ColumnTransformer([*parts, ("kept", "passthrough", [2])])


#: These classifiers' converters have no such option.
_PLAIN = (LinearSVC,)

iris, wine, cancer = (_data(load) for load in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer))
diabetes, digits = _data(datasets.load_diabetes), _data(datasets.load_digits, 1 / 16)
linnerud = _data(datasets.load_linnerud)

#: Models that are taken.
TAKEN: dict[str, tuple[Callable[[], Estimator], Callable[[], Data]]] = {
    "logistic regression": (lambda: LogisticRegression(max_iter=500), iris),
    "logistic regression of two classes": (lambda: LogisticRegression(max_iter=500), cancer),
    "logistic regression on digits": (lambda: LogisticRegression(max_iter=300), digits),
    "standard scaler": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), wine),
    "standard scaler of two classes": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), cancer),
    "min-max scaler": (lambda: make_pipeline(MinMaxScaler(), LogisticRegression()), wine),
    "min-max scaler that clips": (lambda: make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), wine),
    "two scalers": (lambda: make_pipeline(MaxAbsScaler(), RobustScaler(), Ridge()), diabetes),
    "principal components": (lambda: make_pipeline(StandardScaler(), PCA(5), LogisticRegression()), wine),
    "chosen columns": (lambda: make_pipeline(SelectKBest(k=7), LogisticRegression(max_iter=5000)), cancer),
    "scalers by column": (lambda: make_pipeline(_by_column(), LogisticRegression()), wine),
    "scalers by column of two classes": (lambda: make_pipeline(_by_column(), LogisticRegression()), cancer),
    "ridge": (Ridge, diabetes),
    "lasso": (lambda: Lasso(alpha=0.1), diabetes),
    "elastic net": (lambda: ElasticNet(alpha=0.01), diabetes),
    "linear regression of three targets": (LinearRegression, linnerud),
    "ridge classifier": (RidgeClassifier, iris),
    "support vectors of a linear kernel": (lambda: LinearSVC(random_state=0), iris),
    "stochastic gradient descent": (lambda: SGDClassifier(random_state=0), iris),
    "linear discriminants": (LinearDiscriminantAnalysis, iris),
    "perceptron": (lambda: MLPClassifier((24, 16), max_iter=40, random_state=0), digits),
    "perceptron behind a scaler": (
        lambda: make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=60, random_state=0)),
        wine,
    ),
    "perceptron that regresses": (
        lambda: MLPRegressor(hidden_layer_sizes=(12,), max_iter=60, random_state=0),
        diabetes,
    ),
    "perceptron without activations": (
        lambda: MLPClassifier((6,), activation="identity", max_iter=60, random_state=0),
        iris,
    ),
    "perceptron of tanh": (lambda: MLPClassifier((8, 8), activation="tanh", max_iter=30, random_state=0), digits),
    "perceptron of sigmoids": (lambda: MLPClassifier((8,), activation="logistic", max_iter=30, random_state=0), iris),
    "thresholds": (lambda: make_pipeline(Binarizer(), Ridge()), diabetes),
    "normalised rows": (lambda: make_pipeline(Normalizer(), Ridge()), diabetes),
    "rows normalised by their sum": (lambda: make_pipeline(Normalizer("l1"), Ridge()), diabetes),
    "missing values": (lambda: make_pipeline(SimpleImputer(), Ridge()), diabetes),
    "support vectors": (lambda: SVC(gamma="auto"), iris),
    "naive Bayes": (GaussianNB, iris),
    "forest": (lambda: RandomForestClassifier(4, max_depth=3, random_state=0), iris),
    "boosted trees": (lambda: GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), iris),
    "scaler and trees": (
        lambda: make_pipeline(StandardScaler(), RandomForestClassifier(3, max_depth=2, random_state=0)),
        wine,
    ),
}

#: Models that are refused.
REFUSED: dict[str, tuple[Callable[[], Estimator], Callable[[], Data]]] = {
    "neighbours by blocks": (lambda: KNeighborsClassifier(3, metric="manhattan"), iris),
}
