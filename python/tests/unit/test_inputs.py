"""Inputs: what is read and converted, and the sentence for each thing that is not."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lanner.errors import InputError
from lanner.inputs import (
    as_batch,
    check_range,
    fit_sources,
    load_arrays,
    load_truth,
    read_sources,
    to_float32,
)
from lanner.manifest import InputDescription, Manifest


def manifest(image: str = "null") -> Manifest:
    return Manifest.parse(
        '{"name": "tiny", "mode": "gazelle", "output": "label", "classes": null, "commitment": "00", '
        f'"image": {image}, '
        '"plan": {}, "network": {"input": '
        '{"name": "image", "shape": [1, 2, 3], "scale": {"grid": -8}, "low": -4, "high": 4, "modulus": 114689}}}'
    )


ENTRY = manifest().input


def test_a_calibrated_range_is_in_units_of_the_grid_and_a_stated_one_is_itself() -> None:
    assert manifest().input == InputDescription("image", (1, 2, 3), -2.0, 2.0, 0.5)
    stated = {"low": -0.1, "high": 1.0, "steps": 255}
    document = {"name": "x", "shape": [4], "scale": {"stated": stated}, "low": -23, "high": 232, "modulus": 114_689}
    assert InputDescription.from_document(document) == InputDescription("x", (4,), -0.1, 1.0, (1.0 + 0.1) / 255)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.uint8, np.int64])
def test_numbers_of_any_type_convert(dtype: type) -> None:
    converted = to_float32(np.array([0, 1, 2], dtype=dtype))
    assert converted.dtype == np.float32
    assert converted.tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [[1j], ["a"], [b"a"], [None]])
def test_other_types_are_refused(values: list[object]) -> None:
    with pytest.raises(InputError, match="not numbers"):
        to_float32(np.array(values))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_is_named(value: float) -> None:
    array = np.zeros((2, 3))
    array[1, 2] = value
    with pytest.raises(InputError, match=r"element \[1, 2\]") as caught:
        to_float32(array)
    assert "e+" not in str(caught.value)


def test_sample_and_batch_have_the_models_shape() -> None:
    assert as_batch(np.zeros((1, 2, 3), np.float32), ENTRY).shape == (1, 1, 2, 3)
    assert as_batch(np.zeros((5, 1, 2, 3), np.float32), ENTRY).shape == (5, 1, 2, 3)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 3, 2), (0, 1, 2, 3), (1, 1, 1, 2, 3), (6,), ()])
def test_another_shape_is_refused_naming_both(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        as_batch(np.zeros(shape, np.float32), ENTRY)
    assert str(shape) in str(caught.value)
    assert "(1, 2, 3)" in str(caught.value)


def test_range_is_checked_naming_the_limit() -> None:
    check_range(np.full((1, 1, 2, 3), -2, np.float32), ENTRY)
    with pytest.raises(InputError, match=r"element \[0, 0, 0, 0\] is outside .*\[-2, 2\]") as caught:
        check_range(np.full((1, 1, 2, 3), 2.625, np.float32), ENTRY)
    assert "2.6" not in str(caught.value)


def test_npy_npz_and_csv_hold_the_same_samples(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3) / 10
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, y=[0, 1])
    np.savetxt(tmp_path / "x.csv", x.reshape(2, 6), delimiter=",")
    paths = [tmp_path / name for name in ("x.npy", "x.npz", "x.csv")]
    samples = fit_sources(read_sources(paths), manifest())
    assert [(Path(str(sample.source)).name, sample.index) for sample in samples] == [
        (path.name, index) for path in paths for index in (0, 1)
    ]
    for sample in samples:
        assert np.array_equal(sample.values, x[sample.index])


def test_a_picture_needs_a_description(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("L", (3, 2), 255).save(path)
    sources = read_sources([path])
    with pytest.raises(InputError) as caught:
        fit_sources(sources, manifest())
    assert caught.value.what == "model tiny does not describe images"
    assert caught.value.fix == "pass .npy of shape (1,2,3), or CSV of 6 values a row"
    (sample,) = fit_sources(sources, manifest('{"channels": 1, "size": [2, 3]}'))
    assert sample.values.tolist() == np.ones((1, 2, 3)).tolist()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.npy", b"", "cannot be read"),
        ("x.npy", b"\x93NUMPY\x01\x00garbage", "cannot be read"),
        ("x.npz", b"PK\x03\x04", "cannot be read"),
        ("x.csv", b"a,b\n1,2\n", "line 1: this is a header; leave this line out"),
        ("x.csv", b",a,b\n\n0,1,2\n", "line 1: this is a header"),
        ("x.csv", b"a;b\n1;2\n", "line 1: this is a header"),
        ("x.csv", b"\n1,2\n3,,4\n", "line 3: field 2 is empty; give every input all of its numbers"),
        ("x.csv", b",,\n1,2,3\n", "line 1: field 1 is empty"),
        ("x.csv", b"1;2;3\n", "line 1: field 1 is several numbers; put commas between them, not semicolons"),
        ("x.csv", b"1,5;2,5\n", "line 1: field 2 is several numbers"),
        ("x.csv", b"1\t2\n", "line 1: field 1 is several numbers"),
        ("x.csv", b"1,2\na,b\n", "line 2: field 1 is no number"),
        ("x.csv", b"1_0,2\n", "line 1: field 1 has an underscore, or digits other than 0 to 9"),
        ("x.csv", b"1,2\n1,2_0.5\n", "line 2: field 2 has an underscore"),
        ("x.csv", "1,\u0663\n".encode(), "line 1: field 2 has an underscore, or digits other than 0 to 9"),
        ("x.csv", b"a,b\nc,d\n1,2\n", "cannot be read as CSV .its first lines have no numbers"),
        ("x.csv", b"\x89PNG\r\n", "cannot be read as CSV"),
        ("x.csv", b"1,2\n3\n", "row 2 has 1 value,"),
        ("x.csv", b"", "no rows"),
        ("x.csv", b"1,nan,1,1,1,1\n", "nan"),
        ("x.csv", b"\xff\xfe\x00", "cannot be read"),
        ("x.text", b"1", "not read"),
        ("x.png", b"1", "this is not a PNG or JPEG picture"),
    ],
)
def test_unreadable_file_is_an_input_error(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        # What is text may be right for a table with names, so that it is refused where the model is known.
        fit_sources(read_sources([path]), manifest())
    assert name in str(caught.value)


def test_what_stands_in_a_row_is_not_repeated(tmp_path: Path) -> None:
    for row in ("3,41;42", "3,41x", "x41,y41", "41 42,3", "3,nan41"):
        for rows in (f"1,2\n{row}\n", f"{row}\n1,2\n", f"{row}\n"):
            (tmp_path / "x.csv").write_text(rows)
            with pytest.raises(InputError) as caught:
                fit_sources(read_sources([tmp_path / "x.csv"]), manifest())
            assert "41" not in str(caught.value).removeprefix(str(tmp_path))


#: Files whose first line names columns by numbers: their places, years, wavelengths, places on a grid.
HEADERS = {
    "places from 0, as pandas writes them": "0,1,2\n0.5,0.1,0.7\n",
    "places from 1 above whole numbers": "1,2,3,4\n7,0,3,3\n1,2,3,4\n",
    "years": "2005,2012,2019\n0.5,1.0,2e-3\n",
    "wavelengths": "400.0,402.5,405.0\n0.5,1.0,2.0\n",
    "one column": "0\n0.25\n0.5\n",
    "two columns": "\n0,1\n0.25,0.0\n",
}

#: Files of inputs alone.
INPUTS = {
    "whole numbers": "3,1,2\n0,0,1\n",
    "whole numbers first, and elsewhere": "3,1,2\n0.5,1,2\n",
    "an empty picture first": "0,0,0\n0.5,0.25,0.5\n",
    "rows that all count": "0,1,2\n3,4,5\n",
    "one row": "0,1,2\n",
    "bits": "0,1\n1,1\n",
    "signs and exponents": "+1e2,-.5, 3. \n1,2,3\n",
}


@pytest.mark.parametrize("case", HEADERS)
def test_header_of_numbers_is_refused_until_someone_says_what_it_is(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(HEADERS[case])
    line = 2 if HEADERS[case].startswith("\n") else 1
    with pytest.raises(InputError) as caught:
        read_sources([path])
    assert caught.value.what == "this line may be a header of numbers"
    assert caught.value.where == f"{path}, line {line}"
    assert "--csv-header" in str(caught.value.fix)
    every = np.loadtxt(path, delimiter=",", ndmin=2)
    for header, rows in ((True, every[1:]), (False, every)):
        (source,) = read_sources([path], header)
        assert isinstance(source.values, np.ndarray)
        assert np.array_equal(source.values, rows.astype(np.float32))


@pytest.mark.parametrize("case", INPUTS)
def test_inputs_are_not_taken_for_a_header(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(INPUTS[case])
    (source,) = read_sources([path])
    assert isinstance(source.values, np.ndarray)
    assert np.array_equal(source.values, np.loadtxt(path, delimiter=",", ndmin=2))


def test_header_of_names_is_left_out_where_someone_says_that_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("age,2,pulse\n0.5,1,2\n")
    (source,) = read_sources([path], csv_header=True)
    assert isinstance(source.values, np.ndarray)
    assert source.values.tolist() == [[0.5, 1, 2]]
    with pytest.raises(InputError, match="line 1: field 1 is no number"):
        fit_sources(read_sources([path], csv_header=False), manifest())
    path.write_text("age,pulse\n")
    with pytest.raises(InputError, match="there are no rows"):
        read_sources([path], csv_header=True)


def test_missing_file_and_member_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_sources([tmp_path / "x.npy"])
    np.savez(tmp_path / "x.npz", images=np.zeros(3))
    with pytest.raises(InputError, match="no `x` in it but images"):
        as_batch(load_arrays(tmp_path / "x.npz"), InputDescription("x", (3,)))
    assert as_batch(load_arrays(tmp_path / "x.npz"), InputDescription("images", (3,))).shape == (1, 3)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        read_sources([tmp_path / "x.npy"])


def test_a_csv_row_has_a_value_per_element(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2,3\n")
    with pytest.raises(InputError, match=r"a row has 3 values.*6 values"):
        fit_sources(read_sources([tmp_path / "x.csv"]), manifest())


def test_the_truth_has_a_place_for_each_sample(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros(2), y=np.array([[1], [2]]))
    assert load_truth(path).tolist() == [[1], [2]]
    np.savez(path, x=np.zeros(2), y=np.array(3))
    with pytest.raises(InputError, match="single value"):
        load_truth(path)


def test_names_that_are_objects_are_told_how_to_save(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    names = np.array(["cat", "dog"], dtype=object)
    np.savez(path, x=np.zeros(2), y=names)
    with pytest.raises(InputError, match=r"objects of Python.*; save y\.astype\(str\) in its place"):
        load_truth(path)
    np.savez(path, x=np.zeros(2), y=names.astype(str))
    assert load_truth(path).tolist() == ["cat", "dog"]
    np.savez(path, x=np.array([1, 2], dtype=object))
    with pytest.raises(InputError, match=r"; save x\.astype\(float\) in its place"):
        load_arrays(path)
