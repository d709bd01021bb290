"""Tables by the names of their columns: what is read of CSV, objects and data frames, and what is refused, and how."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanner.columns import Beyond, Column, StatedColumn, encode
from lanner.errors import InputError, MisuseError
from lanner.named import NamedInput
from lanner.stated_columns import read_columns
from lanner.tables import Notes, is_frame, read_csv, read_objects, stated_by

COLUMNS = (
    Column(1.0, 0, 100, name="age"),
    Column(1.0, -1, 3, missing=True, name="sex", categories=("no", "yes")),
    Column(0.5, -2, 50, missing=True, name="height"),
)
#: The same without what their owner says.
BARE = tuple(Column(column.unit, column.offset, column.high, column.missing) for column in COLUMNS)

NAN = math.nan


def of_csv(text: str, columns: tuple[Column, ...] = COLUMNS, header: bool | None = None) -> tuple[Any, list[str]]:
    notes = Notes()
    rows = read_csv(io.StringIO(text, newline=""), columns, "t.csv", header, notes=notes)
    return rows.tolist(), notes.sentences()


def equal(found: Any, expected: Any) -> bool:  # noqa: ANN401 - lists of lists
    return np.array_equal(np.asarray(found, float), np.asarray(expected, float), equal_nan=True)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age,sex,height\n41,no,1.5\n", [[41, 0, 1.5]]),
        ("height,sex,age\n1.5,yes,41\n2,no,3\n", [[41, 1, 1.5], [3, 0, 2]]),
        ("41,yes,1.5\n3,no,2\n", [[41, 1, 1.5], [3, 0, 2]]),
        ("41,1,1.5\n", [[41, 1, 1.5]]),
        (" age , sex , height\r\n\r\n 41 , yes , 1e1 \r\n", [[41, 1, 10]]),
        *((f"age,sex,height\n1,{word},{word}\n", [[1, NAN, NAN]]) for word in ("", "NA", "NaN", "nan", "null", "?")),
    ],
)
def test_columns_of_csv_are_picked_by_name_or_stand_in_order(text: str, rows: list[list[float]]) -> None:
    found, told = of_csv(text)
    assert equal(found, rows)
    assert told == []


def test_other_columns_are_left_out_and_told() -> None:
    found, told = of_csv(",age,id,sex,height\n0,41,7,no,2\n")
    assert equal(found, [[41, 0, 2]])
    assert told == ["columns (without a name), id are left out: the model does not read them"]


def test_a_category_comes_before_what_says_missing_and_before_numbers() -> None:
    columns = (Column(1.0, -1, 4, missing=True, name="code", categories=("NA", "?", "1")),)
    assert equal(of_csv("code\nNA\n?\n1\n null \n", columns)[0], [[0], [1], [2], [NAN]])
    with pytest.raises(InputError, match=r"row 1: column code has a field that is none of its categories"):
        of_csv("code\n0\n", columns)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("age,height\n1,2\n", "t.csv, line 1: column sex is not there; the model reads age, sex, height"),
        ("a,b,c\n1,no,3\n", "t.csv, line 1: columns age, sex, height are not there"),
        ("age,age,sex,height\n1,1,no,3\n", "t.csv, line 1: column age is there twice"),
        ("1,no,2\n41,maybe,13.82\n", "t.csv, row 2: column sex has a field that is none of its categories"),
        ("1,2,13.82\n", "t.csv, row 1: column sex has a field that is none of its categories"),
        ("age,sex,height\n1,no,13.82\n1,no,maybe\n", "t.csv, row 2: column height has a field that is no number"),
        ("age,sex,height\n1_3,no,13.82\n", "t.csv, row 1: column age has a field that is no number"),
        ("age,sex,height\n13,no\n", "t.csv: row 1 has 2 values; the header has 3"),
        ("13,no\n", "t.csv: row 1 has 2 values; the model expects 3 values in a row"),
        ("age,sex,height\n", "t.csv: there are no rows"),
        ("", "t.csv: there are no rows"),
        ("0,1,2\n3,0,5\n4,1,7.5\n", "t.csv, line 1: this line may be a header of numbers"),
    ],
)
def test_what_does_not_fit_is_named_by_row_and_column_and_never_told(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        of_csv(text)
    assert str(caught.value).startswith(sentence)
    assert not any(told in str(caught.value) for told in ("maybe", "13.82", "1_3", "41"))


def test_columns_without_names_stand_in_order() -> None:
    assert equal(of_csv("41,,?\n", BARE)[0], [[41, NAN, NAN]])
    assert equal(of_csv("age,sex,height\n41,1,2\n", BARE, header=True)[0], [[41, 1, 2]])
    with pytest.raises(InputError, match="this is a header"):
        of_csv("age,sex,height\n41,1,2\n", BARE)
    with pytest.raises(InputError, match="column 2 has a field that is no number"):
        of_csv("41,no,2\n", BARE)


def test_a_header_of_names_that_could_be_rows_is_asked_for() -> None:
    columns = (Column(1.0, 0, 100, name="1"), Column(1.0, 0, 100, name="2"))
    with pytest.raises(InputError, match="this line may be a header"):
        of_csv("2,1\n5.5,6.5\n", columns)
    assert equal(of_csv("2,1\n5,6\n", columns, header=True)[0], [[6, 5]])
    assert equal(of_csv("2,1\n5,6\n", columns, header=False)[0], [[2, 1], [5, 6]])


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([{"sex": "no", "age": 41, "height": None}], [[41, 0, NAN]]),
        ({"age": [1, 2], "height": [0.5, 1], "sex": ["no", None]}, [[1, 0, 0.5], [2, NAN, 1]]),
        ({"age": np.array([1, 2]), "height": np.array([0.5, np.nan]), "sex": (1, 0)}, [[1, 1, 0.5], [2, 0, NAN]]),
        ({"age": 1, "sex": "yes", "height": 2}, [[1, 1, 2]]),
        ({"x": [[1, "no", None]]}, [[1, 0, NAN]]),
        ([[1, "no", 3], [2, "?", "nan"]], [[1, 0, 3], [2, NAN, NAN]]),
        ([1, None, 3], [[1, NAN, 3]]),
        (np.array([[1, "no", 3]], object), [[1, 0, 3]]),
    ],
)
def test_objects_and_lists_with_words_become_rows(given: object, rows: list[list[float]]) -> None:
    found = read_objects(given, COLUMNS, "x", "input")
    assert found is not None
    assert equal(found, rows)


@pytest.mark.parametrize("given", [[[1.0, 0, 3]], np.zeros((2, 3)), {"x": [[1, 0, 3]]}, [1, 0, 3], [], 3.5, {"y": [1]}])
def test_numbers_alone_are_left_to_those_who_read_arrays(given: object) -> None:
    assert read_objects(given, COLUMNS, "x", "input") is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"age": [1]}, "input: columns sex, height are not there"),
        ([{"age": 1, "sex": 0, "height": 1}, {"age": 1}], "input, row 2: columns sex, height are not there"),
        ([{"age": 1, "sex": "q", "height": 1}], "input, row 1: column sex has a field that is none of its categories"),
        ([{"age": 1, "sex": 2, "height": 1}], "input, row 1: column sex has a field that is none of its categories"),
        ([{"age": [13.82], "sex": 0, "height": 1}], "input, row 1: column age has a field that is no number"),
        ({"age": [1, 2], "sex": ["no"], "height": [1, 2]}, "input: the columns are not lists of equal length"),
        ([[1, None]], "input: row 1 has 2 values; the model expects 3 values in a row"),
    ],
)
def test_objects_that_do_not_fit_are_refused(given: object, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_objects(given, COLUMNS, "x", "input")
    assert str(caught.value).startswith(sentence)
    assert "13.82" not in str(caught.value)


def test_objects_need_names() -> None:
    with pytest.raises(InputError, match="the columns of the model have no names"):
        read_objects([{"age": 1}], BARE, "x", "input")


def test_a_data_frame_gives_names_categories_and_missing_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "height": pandas.array([1, None], dtype="Int64"),
            "sex": pandas.Categorical(["yes", None], categories=["no", "yes"]),
            "id": ["a", "b"],
            "age": [41, 3],
        }
    )
    assert is_frame(frame)
    assert stated_by(frame)[:2] == (StatedColumn("height"), StatedColumn("sex", categories=("no", "yes")))
    notes = Notes()
    assert equal(read_objects(frame, COLUMNS, "x", "input", notes), [[41, 1, 1], [3, NAN, NAN]])
    assert notes.sentences() == ["column id is left out: the model does not read it"]
    with pytest.raises(InputError, match="column age is not there"):
        read_objects(frame.drop(columns=["age"]), COLUMNS, "x", "input")
    unnamed = pandas.DataFrame([[41, 0, 2.5]])
    assert stated_by(unnamed) == ()
    assert equal(read_objects(unnamed, COLUMNS, "x", "input"), [[41, 0, 2.5]])


def test_columns_are_stated_as_text_as_lists_and_in_files(tmp_path: Path) -> None:
    named = (StatedColumn("age"), StatedColumn("sex"))
    assert read_columns("age, sex") == read_columns(["age", "sex"]) == named
    (tmp_path / "t.csv").write_text("\ufeffage, sex\n1,2\nno,7,8\n", encoding="utf-8")
    assert read_columns(tmp_path / "t.csv") == read_columns(str(tmp_path / "t.csv")) == named
    listed: list[Any] = ["age", {"name": "sex", "missing": True, "categories": ["no", "yes"]}]
    (tmp_path / "t.json").write_text(json.dumps(listed))
    told = (StatedColumn("age"), StatedColumn("sex", missing=True, categories=("no", "yes")))
    assert read_columns(tmp_path / "t.json") == read_columns(listed) == told
    assert read_columns(None) == ()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("age,,sex", "column 2 is empty"),
        ("age,sex,age", "column 'age' is there twice"),
        (["a" * 257], "column 1 has 257 bytes"),
        ([{"name": "a", "unit": 1}], "column 1 has the unknown field 'unit'"),
        ([{"missing": True}], "column 1 has no name"),
        ([{"name": "a", "missing": 1}], "`missing` of column a is neither true nor false"),
        ([{"name": "a", "categories": "no"}], "`categories` of column a are no list of texts"),
        ([{"name": "a", "categories": [1]}], "`categories` of column a are no list of texts"),
        ([{"name": "a", "categories": []}], "column a has 0 categories"),
        ([{"name": "a", "categories": ["x"] * 4097}], "column a has 4097 categories"),
        ([{"name": "a", "categories": ["x", "x"]}], "category 'x' of column a is there twice"),
        ([3], "column 1 is neither a name nor an object"),
        (3, "a int is no list of columns"),
        ("absent.csv", "no such file"),
    ],
)
def test_columns_that_are_stated_otherwise_are_misuse(given: Any, sentence: str) -> None:  # noqa: ANN401 - wrong
    with pytest.raises(MisuseError) as caught:
        read_columns(given)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "sentence"), [('{"a": 1}', "it is no list of columns"), ("[", "no columns can be")])
def test_a_file_that_states_no_columns_is_named(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(MisuseError, match=sentence) as caught:
        read_columns(tmp_path / "t.json")
    assert caught.value.where == str(tmp_path / "t.json")


def test_stated_columns_decide_codes() -> None:
    samples = np.array([0, 2], np.float32)
    column = Column.of(samples, StatedColumn("c", missing=True, categories=("a", "b", "c", "d")))
    assert (column.unit, column.ends, column.missing) == (1.0, (1, 4), True)
    assert column.codes(np.array([0, 3, np.nan], np.float32)).tolist() == [1, 4, 0]
    plain = Column.of(samples, StatedColumn("c", missing=True))
    assert (plain.name, plain.missing, plain.unit) == ("c", True, 1.0)
    assert Column.from_document(json.loads(json.dumps(column.document()))) == column
    assert set(BARE[0].document()) == {"unit", "offset", "high", "missing"}


def test_what_is_beyond_the_ends_is_told_by_its_place() -> None:
    rows = np.array([[41, 0, 1], [1e6, 1, np.nan], [-7, 0, 1e9], [100, 0, -np.inf]], np.float32)
    beyond = Beyond()
    named = NamedInput("x", "FP32", (3,), columns=COLUMNS)
    coded = named.encode(rows, "input", beyond)
    assert beyond.sentence() == (
        "4 values are beyond their columns' ranges and count as the ends: rows 2, 3 (column age), rows 3, 4 "
        "(column height)"
    )
    ends = np.array([[41, 0, 1], [100, 1, np.nan], [0, 0, 23.5], [100, 0, -0.5]], np.float32)
    assert np.array_equal(coded, encode(COLUMNS, ends))
    one = Beyond()
    NamedInput("x", "FP32", (3,), columns=BARE).encode(rows[1:2], "input", one.of("b.csv"))
    assert one.sentence() == ("1 value is beyond its column's range and counts as the end: row 1 of b.csv (column 1)")
    none = Beyond()
    named.encode(rows[:1], "input", none)
    assert none.sentence() is None


def test_many_places_are_not_all_listed() -> None:
    beyond = Beyond()
    NamedInput("x", "FP32", (3,), columns=COLUMNS).encode(np.array([[1e9, 0, 0]] * 20, np.float32), "x", beyond)
    assert beyond.sentence() is not None
    assert "rows 1, 2, 3, 4, 5, 6, 7, 8, ... (column age)" in str(beyond.sentence())


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([np.nan, 0, 1], r"element \[0, 0\] \(column age\) is missing"),
        ([1, 2, 1], r"element \[0, 1\] \(column sex\) is no category; give whole numbers from 0 to 1"),
        ([1, 0.5, 1], r"element \[0, 1\] \(column sex\) is no category"),
    ],
)
def test_arrays_are_checked_by_columns(row: list[float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        NamedInput("x", "FP32", (3,), columns=COLUMNS).encode(np.array([row], np.float32), "input")
