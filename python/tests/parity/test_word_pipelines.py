"""Pipelines of scikit-learn that read data frames with words predict as scikit-learn does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

import lanner

pandas = pytest.importorskip("pandas")

WORDS, NUMBERS = ["job", "city"], ["age", "income"]


def frame_of(rows: int) -> Any:  # noqa: ANN401 - pandas is optional
    rng = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "job": rng.choice(["clerk", "doctor", "nurse", "cook"], rows),
            "income": np.round(rng.lognormal(10, 1, rows), 2),
            "city": rng.choice(["A", "B", "C"], rows),
        }
    )


FRAME = frame_of(160)
TRUTH = ((FRAME["age"] > 50) ^ (FRAME["job"] == "doctor")).to_numpy().astype(int)

# Rows that lack a word have one of their own in scikit-learn.
LACKING = FRAME.assign(job=FRAME["job"].where(FRAME.index % 7 != 0, None))

PIPELINES: dict[str, Any] = {
    "one hot, logistic": (
        (OneHotEncoder(handle_unknown="ignore"), WORDS),
        (StandardScaler(), NUMBERS),
        LogisticRegression(),
    ),
    "drop first, logistic": ((OneHotEncoder(drop="first"), WORDS), (StandardScaler(), NUMBERS), LogisticRegression()),
    "ordinal, unscaled": ((OrdinalEncoder(), WORDS), ("passthrough", NUMBERS), LogisticRegression(max_iter=5000)),
    "one hot, network": (
        (OneHotEncoder(), WORDS),
        (StandardScaler(), NUMBERS),
        MLPClassifier((6,), max_iter=60, random_state=0),
    ),
    "one hot, forest": (
        (OneHotEncoder(handle_unknown="ignore"), WORDS),
        ("passthrough", NUMBERS),
        RandomForestClassifier(8, max_depth=4, random_state=0),
    ),
    "ordinal, forest": (
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), WORDS),
        ("passthrough", NUMBERS),
        RandomForestClassifier(8, max_depth=4, random_state=0),
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", PIPELINES)
def test_labels_are_scikit_learns(name: str) -> None:
    *columns, last = PIPELINES[name]
    pipeline = make_pipeline(make_column_transformer(*columns), last).fit(FRAME, TRUTH)
    model = lanner.compile(pipeline, FRAME, public_preprocessing=True, mode="cheetah")
    expected = pipeline.predict(FRAME)
    assert (model.predict_float(FRAME).argmax(axis=1) == expected).all()
    assert (model.predict_fixed(FRAME).argmax(axis=1) == expected).mean() > 0.99
    assert lanner.run(model, FRAME.iloc[:1]).label == expected[0]


def test_words_that_no_row_had_count_as_in_scikit_learn() -> None:
    transformer = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), WORDS), (StandardScaler(), NUMBERS))
    pipeline = make_pipeline(transformer, LogisticRegression()).fit(FRAME, TRUTH)
    # The samples lack words that the model knows.
    model = lanner.compile(pipeline, FRAME[FRAME["city"] != "C"], public_preprocessing=True, mode="cheetah")
    rows = FRAME.iloc[:8].copy()
    rows.loc[rows.index[:3], "job"] = "pilot"
    rows.loc[rows.index[3:6], "city"] = "C"
    with pytest.warns(lanner.TableWarning, match="column job: 3 words are none of its categories"):
        fixed = model.predict_fixed(rows)
    assert (fixed.argmax(axis=1) == pipeline.predict(rows)).all()


def test_missing_numbers_are_filled_in_as_in_scikit_learn() -> None:
    rows = FRAME.copy()
    rows["age"] = rows["age"].astype(float)
    rows.loc[::6, "age"] = np.nan
    transformer = make_column_transformer(
        (OneHotEncoder(), WORDS), (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS)
    )
    pipeline = make_pipeline(transformer, Ridge()).fit(
        rows, rows["income"] / 1000 + rows["city"].map({"A": 0, "B": 5, "C": 9})
    )
    model = lanner.compile(pipeline, rows, output="value", public_preprocessing=True, mode="cheetah")
    expected = pipeline.predict(rows)
    assert np.abs(model.predict_fixed(rows).ravel() - expected).max() < 0.01 * np.ptp(expected)


@pytest.mark.parametrize("last", [LinearSVC(), KNeighborsClassifier(5)], ids=["machine", "neighbours"])
def test_rows_that_lack_a_word_are_a_category(last: Any) -> None:  # noqa: ANN401 - scikit-learn is untyped
    transformer = make_column_transformer((OneHotEncoder(), WORDS), (StandardScaler(), NUMBERS))
    pipeline = make_pipeline(transformer, last).fit(LACKING, TRUTH)
    model = lanner.compile(pipeline, LACKING, public_preprocessing=True, mode="cheetah")
    assert (model.predict_float(LACKING).argmax(axis=1) == pipeline.predict(LACKING)).mean() > 0.98
    assert (model.predict_fixed(LACKING).argmax(axis=1) == pipeline.predict(LACKING)).mean() > 0.98
