"""Estimators of scikit-learn as skl2onnx writes them: what the integers give is what onnxruntime gives of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification, make_friedman1
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

import lanner
from helpers.times import marked
from lanner.errors import LannerError, MisuseError, ModelError, UnsupportedOpError

Rows = NDArray[np.float32]
Data = tuple[Rows, NDArray[Any]]

WORDS = np.array(["ash", "birch", "cedar", "elm"])


def flowers() -> Data:
    rows, kinds = load_iris(return_X_y=True)
    return rows.astype(np.float32), kinds


def clouds(classes: int = 4, *, scale: float = 1.0) -> Data:
    """Classes that overlap, so that votes tie and many rows lie near borders."""
    rows, kinds = make_classification(
        280, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=3, class_sep=0.8
    )
    return (rows * scale).astype(np.float32), WORDS[kinds]


def curve() -> Data:
    rows, values = make_friedman1(200, 5, random_state=0)
    return rows.astype(np.float32), values


def exported(estimator: Any, data: Data) -> tuple[onnx.ModelProto, Rows, Rows]:  # noqa: ANN401 - scikit-learn's
    """An estimator fitted to most of the rows, as a file; these rows, and others within their ends."""
    rows, truth = data
    order = np.random.default_rng(5).permutation(len(rows))
    known = order[: len(rows) * 2 // 3]
    estimator.fit(rows[known], truth[known])
    near = rows + np.random.default_rng(6).normal(size=rows.shape).astype(np.float32) * rows.std(0) / 4
    others = np.concatenate([rows, near]).clip(rows[known].min(0), rows[known].max(0))
    return to_onnx(estimator, rows[:1]), rows[known], others


def asked(model: onnx.ModelProto, rows: Rows) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: rows}))


def numbers_of(output: Any) -> NDArray[np.float64]:  # noqa: ANN401 - an array, or a list of dicts
    listed = [list(row.values()) for row in output] if isinstance(output, list) else output
    return np.asarray(listed, np.float64)


#: Those that a test needs more than five seconds for.
LONG = {"outliers", "radial machine", "machine of nu", "probabilities of a machine", "a stack"}

LABELLED: dict[str, tuple[Callable[[], Any], Callable[[], Data]]] = {
    "linear machine": (lambda: SVC(kernel="linear"), clouds),
    "radial machine": (SVC, flowers),
    "radial machine of words": (SVC, clouds),
    "machine of two classes": (SVC, lambda: clouds(2)),
    "polynomial machine": (lambda: SVC(kernel="poly"), clouds),
    "polynomial machine with a term": (lambda: SVC(kernel="poly", degree=2, coef0=1.0), clouds),
    "machine of tanh": (lambda: SVC(kernel="sigmoid"), flowers),
    "machine of nu": (lambda: NuSVC(nu=0.3), flowers),
    "machine with probabilities": (lambda: SVC(probability=True), lambda: clouds(2)),
    "linear layer": (LinearSVC, clouds),
    "Gaussian classes": (GaussianNB, clouds),
    "Gaussian classes of large numbers": (GaussianNB, lambda: clouds(scale=1000.0)),
    "two-valued classes": (BernoulliNB, clouds),
    "clusters": (lambda: KMeans(4, n_init=1, random_state=0), clouds),
    "neighbours": (lambda: KNeighborsClassifier(5), flowers),
    "neighbours of words": (lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(3)), clouds),
    "nearest neighbour": (lambda: KNeighborsClassifier(1), clouds),
    "mixture": (lambda: GaussianMixture(3, random_state=0), flowers),
    "products of columns": (
        lambda: make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=500)),
        clouds,
    ),
    "rows over their norm": (lambda: make_pipeline(Normalizer(), LogisticRegression()), clouds),
    "filled numbers": (lambda: make_pipeline(SimpleImputer(), LogisticRegression()), clouds),
    "zeros filled": (lambda: make_pipeline(SimpleImputer(missing_values=0.0), LogisticRegression()), flowers),
    "bins": (
        lambda: make_pipeline(KBinsDiscretizer(3, encode="onehot-dense"), LogisticRegression()),
        flowers,
    ),
    "kernels' components": (
        lambda: make_pipeline(StandardScaler(), KernelPCA(3, kernel="rbf"), LogisticRegression()),
        flowers,
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", marked(LABELLED, LONG))
def test_labels_are_onnxruntimes(name: str) -> None:
    make, data = LABELLED[name]
    model, known, others = exported(make(), data())
    compiled = lanner.compile(model, known, output="label", mode="cheetah")
    found = compiled.predict_fixed(others).argmax(1)
    names = compiled.manifest.classes
    told = [str(index) if names is None else names[index] for index in found]
    expected = [str(label) for label in np.ravel(asked(model, others)[0])]
    wrong = sum(one != other for one, other in zip(told, expected, strict=True))
    # Of rows that lie on a border within the precision of a score there are a few.
    assert wrong <= len(others) // 200


def test_a_secure_run_of_votes_equals_the_integers() -> None:
    model, known, others = exported(SVC(kernel="linear"), clouds())
    compiled = lanner.compile(model, known, output="label", mode="cheetah")
    expected = compiled.predict_fixed(others[:3]).argmax(1).tolist()
    assert [lanner.run(compiled, row).label for row in others[:3]] == expected


VALUED: dict[str, tuple[Callable[[], Any], Callable[[], Data], float]] = {
    "radial regression": (lambda: SVR(C=10.0), curve, 0.01),
    "polynomial regression": (lambda: SVR(kernel="poly", C=10.0), curve, 0.01),
    "linear regression by vectors": (lambda: SVR(kernel="linear"), curve, 0.01),
    "decisions of two classes": (SVC, lambda: clouds(2), 0.01),
    "outliers": (lambda: OneClassSVM(nu=0.1), flowers, 0.01),
    "probabilities of a machine": (lambda: SVC(probability=True), lambda: clouds(2), 0.02),
    "cubes of columns": (
        lambda: make_pipeline(StandardScaler(), PolynomialFeatures(3), Ridge()),
        curve,
        0.01,
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", marked(VALUED, LONG))
def test_values_are_onnxruntimes(name: str) -> None:
    make, data, most = VALUED[name]
    model, known, others = exported(make(), data())
    output = [entry.name for entry in model.graph.output][-1]
    compiled = lanner.compile(model, known, output="value", output_name=output, mode="cheetah")
    expected = numbers_of(asked(model, others)[-1]).reshape(len(others), -1)
    found = compiled.predict_fixed(others).reshape(len(others), -1)
    assert np.abs(found - expected).max() <= most * np.ptp(expected)


def wines() -> Data:
    rows, kinds = load_wine(return_X_y=True)
    return rows.astype(np.float32), kinds


def cells() -> Data:
    rows, kinds = load_breast_cancer(return_X_y=True)
    return rows.astype(np.float32), kinds


def unlike(rows: Rows) -> Rows:
    """Rows between those given, of columns of different ones, drawn from all of each column, and beyond."""
    chosen = np.random.default_rng(9)
    one, other = chosen.permutation(rows)[:90], chosen.permutation(rows)[:90]
    mixed = np.stack([chosen.permutation(column)[:90] for column in rows.T], axis=1)
    drawn = chosen.uniform(rows.min(0), rows.max(0), (90, rows.shape[1]))
    between = one + (other - one) * chosen.uniform(size=(90, 1))
    farther = rows.mean(0) + 1.5 * (one - rows.mean(0))
    # Numbers below 0 are refused in columns that have none.
    return np.concatenate([mixed, drawn, between, farther.clip(np.minimum(rows.min(0), 0), None)]).astype(np.float32)


PROBABLE: dict[str, tuple[Callable[[], Any], Callable[[], Data]]] = {
    "linear discriminants": (LinearDiscriminantAnalysis, wines),
    "linear discriminants of columns that follow one another": (LinearDiscriminantAnalysis, cells),
    "quadratic discriminants": (lambda: QuadraticDiscriminantAnalysis(reg_param=0.01), flowers),
    "Gaussian classes": (GaussianNB, flowers),
    "Gaussian classes of large numbers": (GaussianNB, wines),
    "a stack": (
        lambda: StackingClassifier([("a", LogisticRegression(max_iter=500)), ("b", GaussianNB())], cv=3),
        flowers,
    ),
}


@pytest.mark.parametrize("name", marked(PROBABLE, LONG))
def test_probabilities_of_rows_unlike_the_samples_are_onnxruntimes(name: str) -> None:
    make, data = PROBABLE[name]
    rows, kinds = data()
    model = to_onnx(make().fit(rows, kinds), rows[:1], options={"zipmap": False})
    compiled = lanner.compile(model, rows, output="value", output_name=model.graph.output[1].name, mode="cheetah")
    others = unlike(rows)
    assert np.abs(compiled.predict_fixed(others) - asked(model, others)[1]).max() < 0.01
    assert compiled.report()["calibration"]["inputs_made"] > 32


def test_a_probability_of_rows_unlike_the_samples_is_onnxruntimes() -> None:
    rows, kinds = cells()
    model = to_onnx(LinearDiscriminantAnalysis().fit(rows, kinds), rows[:1], options={"zipmap": False})
    compiled = lanner.compile(model, rows, output="probability", mode="cheetah", digits=3)
    others = unlike(rows)[:180]
    assert np.abs(compiled.predict_probability(others) - asked(model, others)[1].max(1)).max() < 0.01


def test_owners_are_told_where_probabilities_beside_the_samples_are_not_precise() -> None:
    rows, kinds = wines()
    model = to_onnx(QuadraticDiscriminantAnalysis(reg_param=0.01).fit(rows, kinds), rows[:1], options={"zipmap": False})
    with pytest.warns(lanner.PrecisionWarning, match="may miss the precision"):
        compiled = lanner.compile(model, rows, output="probability", mode="falcon")
    assert compiled.report()["calibration"]["inputs_given_up"] > 32
    assert any("unlike the samples" in note for note in compiled.notes)


def test_a_probability_of_two_classes_is_the_machines() -> None:
    model, known, others = exported(SVC(probability=True), clouds(2))
    compiled = lanner.compile(model, known, output="probability", mode="cheetah", digits=3)
    expected = numbers_of(asked(model, others[:4])[1]).max(1)
    found = [lanner.run(compiled, row).probability for row in others[:4]]
    assert np.abs(np.array(found) - expected).max() < 0.02


def test_a_probability_of_votes_is_refused() -> None:
    model, known, _ = exported(SVC(), flowers())
    with pytest.raises(MisuseError, match="no probabilities"):
        lanner.compile(model, known, output="probability")


REFUSED: dict[str, tuple[Callable[[], Any], Callable[[], Data], str]] = {
    "probabilities of three classes": (lambda: SVC(probability=True), flowers, "by iteration"),
    "weighted neighbours": (
        lambda: KNeighborsClassifier(3, weights="distance"),
        flowers,
        "compared in pairs at most.*uniform weights",
    ),
    "neighbours of a number": (lambda: KNeighborsRegressor(3), curve, "compared in pairs at most.*uniform weights"),
    "distances to centres": (lambda: KMeans(3, n_init=1, random_state=0), flowers, "choose output label"),
    "the largest of a row": (
        lambda: make_pipeline(Normalizer("max"), LogisticRegression()),
        flowers,
        "may be near 0.*l1 or l2",
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_computed_is_refused(name: str) -> None:
    make, data, sentence = REFUSED[name]
    model, known, _ = exported(make(), data())
    output = [entry.name for entry in model.graph.output][-1]
    with pytest.raises((UnsupportedOpError, LannerError), match=sentence):
        lanner.compile(model, known, output="value", output_name=output)


def test_every_row_as_near_as_the_last_neighbour_votes() -> None:
    # Of three at a distance of 1, two neighbours vote in the file, the first ones; all three do here.
    rows = np.array([[0.0], [1.0], [3.0], [3.0], [9.0], [9.5], [10.0], [11.0]], np.float32)
    kinds = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    model = to_onnx(KNeighborsClassifier(2).fit(rows, kinds), rows[:1], options={"zipmap": False})
    compiled = lanner.compile(model, rows, mode="cheetah")
    assert lanner.run(compiled, np.array([2.0], np.float32)).label == 1
    assert lanner.run(compiled, np.array([0.25], np.float32)).label == 0


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (KNeighborsClassifier(3, weights="distance"), "weighs votes by distance"),
        (
            KNeighborsClassifier(3, metric_params={"w": np.array([1.0, 2.0, 1.0, 1.0])}),
            "measures distances by minkowski",
        ),
        (KNeighborsClassifier(3, p=1), "measures distances by minkowski, p=1"),
        (KNeighborsClassifier(3, metric="cosine"), "measures distances by cosine"),
        (KNeighborsClassifier(100), "asks all 100 rows"),
        (make_pipeline(StandardScaler(), KNeighborsRegressor(3)), "is computed by no protocol"),
    ],
)
def test_fitted_neighbours_that_are_not_counted_are_refused_by_what_they_differ_in(
    estimator: Any,  # noqa: ANN401 - of several classes
    sentence: str,
) -> None:
    rows, kinds = flowers()
    with pytest.raises(UnsupportedOpError, match=sentence):
        lanner.compile(estimator.fit(rows[:100], kinds[:100]), rows[:100])


def test_votes_of_equal_rows_that_change_labels_of_samples_are_refused() -> None:
    # Each row is there twice, with another label: the file takes the first of both.
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    nearest = KNeighborsClassifier(1).fit(np.concatenate([rows, rows]), [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    with pytest.raises(ModelError, match="calibration samples get other labels"):
        lanner.compile(nearest, rows)
    with pytest.warns(lanner.PrecisionWarning, match="lanner counts them all"):
        lanner.compile(nearest, rows, mode="cheetah", allow_imprecise=True)
