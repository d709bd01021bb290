"""Tables in Python: what `lanner.compile` takes names from, and what `lanner.run` and models take by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from helpers.named_tables import NAMES, STATED, WORDS, samples, tree_model
from lanner.errors import InputError, MisuseError
from lanner.reference import open_exactly


@pytest.fixture(scope="module")
def model() -> lanner.Model:
    return lanner.compile(tree_model(), samples(), columns=STATED, mode="cheetah")


def test_run_takes_columns_by_name(model: lanner.Model) -> None:
    expected = open_exactly(tree_model()).run(["y"], {"x": np.array([[41, 0, np.nan]], np.float32)})[0].item()
    given: Any
    for given in (
        {"height": None, "smokes": "no", "age": 41},
        {"age": [41], "smokes": ["no"], "height": [np.nan]},
        [{"age": 41, "smokes": 0, "height": "NA"}],
        [[41, "no", None]],
        np.array([41, 0, np.nan]),
    ):
        values: Any = lanner.run(model, given).values
        assert abs(values[0] - expected) < 1e-5


def test_run_warns_of_ends_and_of_columns_that_are_left_out(model: lanner.Model) -> None:
    with pytest.warns(lanner.TableWarning) as caught:
        beyond = lanner.run(model, {"age": [1382], "smokes": ["yes"], "height": [170], "id": [7]})
    assert [str(each.message) for each in caught] == [
        "column id is left out: the model does not read it",
        "1 value is beyond its column's range and counts as the end: row 1 (column age)",
    ]
    assert {each.filename for each in caught} == {__file__}
    (column, *_) = model.manifest.input.named[0].columns or ()
    end = float(column.values(np.array([column.high]))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lanner.run(model, [[end, 1, 170]]).integers == beyond.integers


def test_a_data_frame_gives_its_names_and_missing_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    rows = samples()
    rows[3, 2] = np.nan
    frame = pandas.DataFrame(rows, columns=list(NAMES))
    frame["smokes"] = pandas.Categorical.from_codes(frame["smokes"].astype(int), WORDS)
    compiled = lanner.compile(tree_model(), frame, mode="cheetah")
    columns = compiled.manifest.input.named[0].columns or ()
    assert [(each.name, each.categories, each.missing) for each in columns] == [
        ("age", None, False),
        ("smokes", WORDS, False),
        ("height", None, True),
    ]
    turned = frame[["height", "age", "smokes"]].iloc[2:5]
    expected = open_exactly(tree_model()).run(["y"], {"x": rows[2:5]})[0]
    assert np.abs(compiled.predict_fixed(turned) - expected).max() < 1e-5
    bare = lanner.compile(tree_model(), pandas.DataFrame(samples()), mode="cheetah")
    assert all(each.name is None for each in bare.manifest.input.named[0].columns or ())
    with pytest.raises(InputError, match="shape"):
        lanner.compile(tree_model(), frame[["age", "smokes"]])


def test_a_data_frame_for_another_model_is_an_array() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="the shape is"):
        lanner.compile(tiny_classifier(), pandas.DataFrame(samples(), columns=list(NAMES)))


def test_columns_need_one_table_and_a_name_each() -> None:
    with pytest.raises(MisuseError, match="2 columns are named, and input x has 3"):
        lanner.compile(tree_model(), samples(), columns=["a", "b"])
    with pytest.raises(MisuseError, match="the model has no input that is a row of numbers"):
        lanner.compile(tiny_classifier(), tiny_samples(), columns=["a"])


def test_calibration_may_have_columns_by_name_where_they_are_stated(model: lanner.Model) -> None:
    by_name = {name: samples()[:, place] for place, name in enumerate(NAMES)}
    compiled = lanner.compile(tree_model(), dict(reversed(by_name.items())), columns=STATED, mode="cheetah")
    assert compiled.manifest.input.named == model.manifest.input.named
    objects = [{"age": age, "smokes": WORDS[int(smokes)], "height": None} for age, smokes, _ in samples().tolist()]
    objects[0]["height"] = 170.0
    compiled = lanner.compile(tree_model(), objects, columns=STATED, mode="cheetah")
    assert [each.missing for each in compiled.manifest.input.named[0].columns or ()] == [False, True, True]
