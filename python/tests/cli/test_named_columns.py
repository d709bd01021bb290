"""--columns, and tables by the names of their columns on the command line: compile, inspect, run and predict."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import lanner
from helpers.models import save_model, tiny_classifier, tiny_samples
from helpers.named_tables import NAMES, STATED, as_csv, samples, tree_model
from helpers.processes import Finished, Serving, serving
from helpers.processes import lanner as command
from lanner.reference import open_exactly


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of trees compiled from a table with a header, with its public half, and the files behind it."""
    folder = tmp_path_factory.mktemp("named")
    onnx.save(tree_model(), str(folder / "trees.onnx"))
    (folder / "columns.json").write_text(json.dumps(STATED))
    (folder / "samples.csv").write_text(as_csv(samples()))
    compiled = compiling(folder, folder / "samples.csv", "--columns", folder / "columns.json", "--mode", "cheetah")
    assert compiled.code == 0, compiled.errors
    assert compiled.document["calibration"]["samples"] == 64
    assert command("export", folder / "trees.lanner", "-o", folder / "trees.public").code == 0
    return folder


def compiling(folder: Path, calibration: Path, *options: object) -> Finished:
    arguments = ["compile", folder / "trees.onnx", "-o", folder / "trees.lanner", "--calibration", calibration]
    return command(*arguments, *options)


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state"), folder / "trees.lanner") as process:
        yield process


def model_of(folder: Path) -> lanner.Model:
    return lanner.load(folder / "trees.lanner")


def test_the_public_half_has_what_the_owner_says(folder: Path) -> None:
    (entry,) = json.loads((folder / "trees.public").read_text())["inputs"]
    told = [{key: column.get(key) for key in ("name", "categories")} for column in entry["columns"]]
    assert told == [{"name": each["name"], "categories": each.get("categories")} for each in STATED]
    assert [column["missing"] for column in entry["columns"]] == [False, True, True]


def test_predict_picks_columns_by_name(folder: Path, server: Serving, tmp_path: Path) -> None:
    rows = samples(3, seed=7)
    rows[0, 2] = rows[1, 1] = np.nan
    expected = open_exactly(tree_model()).run(["y"], {"x": rows})[0].ravel()
    turned = [",".join([height, "7", *others[::-1]]) for *others, height in csv.reader(io.StringIO(as_csv(rows)))]
    (tmp_path / "asked.csv").write_text("\n".join([turned[0].replace("7", "id"), *turned[1:]]) + "\n")
    (tmp_path / "plain.csv").write_text(as_csv(rows, header="", words=False))
    for name in ("asked.csv", "plain.csv"):
        done = command("predict", server.address, tmp_path / name, *server.pin)
        assert done.code == 0, done.errors
        assert np.allclose([each["values"][0] for each in done.document["predictions"]], expected, atol=1e-5)
        left = "column id is left out: the model does not read it"
        assert done.errors.count(left) == (name == "asked.csv")
    objects = [dict(zip(NAMES, (float(row[0]), "no", None), strict=True)) for row in rows]
    (tmp_path / "asked.json").write_text(json.dumps(objects))
    done = command("predict", server.address, tmp_path / "asked.json", *server.pin)
    same = np.stack([rows[:, 0], np.zeros(3), np.full(3, np.nan)], 1)
    assert np.allclose(
        [each["values"][0] for each in done.document["predictions"]], model_of(folder).predict_fixed(same).ravel()
    )


def test_predict_tells_what_counts_as_an_end_once_and_no_value(folder: Path, server: Serving, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("age,smokes,height\n41,no,170\n1382,yes,170\n41,no,-1382\n1382,no,1\n")
    public = ("--pin-model", folder / "trees.public")
    done = command("predict", server.address, tmp_path / "asked.csv", *server.pin, *public)
    assert done.code == 0, done.errors
    sentence = (
        "4 values are beyond their columns' ranges and count as the ends: rows 2, 4 (column age), rows 3, 4 "
        "(column height)"
    )
    assert done.errors.count(sentence) == 1
    assert "1382" not in done.errors
    assert "beyond" not in server.log()


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("age,height\n1,2\n", ", line 1", "column smokes is not there"),
        ("age,smokes,height\n1,no,170\n1,maybe,170\n", ", row 2", "column smokes has a field that is none of its"),
        ("age,smokes,height\nmaybe,no,170\n", ", row 1", "column age has a field that is no number"),
        ("age,smokes,height\n,no,170\n", ", x", "element [0, 0] (column age) is missing"),
    ],
)
def test_a_table_that_does_not_fit_exits_6_before_anybody_is_asked(
    folder: Path, tmp_path: Path, text: str, where: str, what: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    trust = ("--insecure-plaintext", "--pin-model", folder / "trees.public")
    done = command("predict", "127.0.0.1:9", tmp_path / "t.csv", *trust)
    assert done.code == 6
    assert done.document["error"]["what"].startswith(what)
    assert done.document["error"]["where"] == f"{tmp_path / 't.csv'}{where}"
    assert "maybe" not in done.errors


def test_columns_that_do_not_fit_the_model_exit_2(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "x.npy"
    np.save(table, samples())
    done = compiling(folder, table, "--columns", "age,height")
    assert (done.code, done.document["error"]["what"]) == (2, "2 columns are named, and input x has 3")
    save_model(tmp_path / "tiny.onnx", tiny_classifier())
    np.save(table, tiny_samples())
    target = tmp_path / "tiny.lanner"
    done = command("compile", tmp_path / "tiny.onnx", "-o", target, "--calibration", table, "--columns", "age")
    assert done.code == 2
    assert "the model has no input that is a row of numbers" in done.document["error"]["what"]


def test_calibration_with_a_header_needs_the_names_or_goes_without(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "samples.csv"
    table.write_text(as_csv(samples(), words=False))
    target = ("-o", tmp_path / "trees.lanner", "--mode", "cheetah")
    arguments = ["compile", folder / "trees.onnx", *target, "--calibration", table]
    done = command(*arguments)
    assert (done.code, done.document["error"]["what"]) == (6, "this is a header")
    assert done.document["error"]["fix"].startswith("pass --columns")
    for options, names in ((("--csv-header",), [None] * 3), (("--columns", table), list(NAMES))):
        assert command(*arguments, *options).code == 0
        columns = lanner.load(tmp_path / "trees.lanner").manifest.input.named[0].columns or ()
        assert [column.name for column in columns] == names


def test_inspect_takes_columns(folder: Path) -> None:
    done = command("inspect", folder / "trees.onnx", "--columns", "a,b,c")
    (entry,) = done.document["inputs"]
    assert (done.code, [column["name"] for column in entry["columns"]]) == (0, ["a", "b", "c"])
    assert command("inspect", folder / "trees.onnx", "--columns", "a,b").code == 2


def test_text_stays_an_error_for_other_models(tiny_label: Path, tmp_path: Path) -> None:
    for text, what in (("a,b\n1,2\n", "this is a header"), ("1,\n", "field 2 is empty"), ("1,NA\n", "field 2 is no")):
        (tmp_path / "t.csv").write_text(text)
        done = command("run", tiny_label, tmp_path / "t.csv")
        assert done.code == 6
        assert done.document["error"]["what"].startswith(what)
    (tmp_path / "t.json").write_text('[{"age": 1}]')
    done = command("run", tiny_label, tmp_path / "t.json")
    assert (done.code, done.document["error"]["where"]) == (6, str(tmp_path / "t.json"))
