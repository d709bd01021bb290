"""Rows of numbers that lack some, which the pipeline's own SimpleImputer fills in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from helpers.processes import lanner as run_lanner
from lanner.errors import InputError, MisuseError, UnsupportedOpError

pytest.importorskip("skl2onnx")
pytest.importorskip("sklearn")

from skl2onnx import to_onnx
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

COLUMNS = 4


def rows(seed: int) -> NDArray[np.float32]:
    """Rows of which all columns but the last lack numbers."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(120, COLUMNS)) * [1, 10, 0.1, 3] + [0, 5, 1, 0]).astype(np.float32)
    lacking = rng.random(x.shape) < 0.15
    lacking[:, -1] = False
    x[lacking] = np.nan
    return x


def target(x: NDArray[np.float32]) -> NDArray[np.float32]:
    filled = np.nan_to_num(x)
    return np.asarray(filled[:, 0] + filled[:, 1] / 10 - 5 * filled[:, 2] + filled[:, 3] / 3, np.float32)


PIPELINES: dict[str, Any] = {
    "ridge": lambda: make_pipeline(SimpleImputer(), Ridge()),
    "median and scaler": lambda: make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), Ridge()),
    "scaler first": lambda: make_pipeline(StandardScaler(), SimpleImputer(), Ridge()),
    "constant": lambda: make_pipeline(SimpleImputer(strategy="constant", fill_value=-7.0), MinMaxScaler(), Ridge()),
    "network": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), MLPRegressor(hidden_layer_sizes=(8,), max_iter=40, random_state=0, tol=1e9)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_filled_rows_are_the_pipelines(name: str) -> None:
    x, fresh = rows(1), rows(2)
    fitted = PIPELINES[name]().fit(x, target(x))
    model = lanner.compile(fitted, x)
    exact = fitted.predict(fresh).ravel()
    assert np.abs(model.predict_fixed(fresh).ravel() - exact).max() < 0.01 * np.ptp(exact)


def test_a_secure_run_of_a_row_that_lacks_numbers_is_right() -> None:
    x = rows(1)
    fitted = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(x, target(x) > 0)
    # The option publishes nothing here: what fills and scales stays in the network.
    model = lanner.compile(fitted, x, public_preprocessing=True)
    fresh = rows(3)
    lacking = int(np.flatnonzero(np.isnan(fresh).sum(1) == 2)[0])
    assert lanner.run(model, fresh[lacking]).label == int(fitted.predict(fresh[lacking : lacking + 1])[0])


def test_a_column_that_no_sample_lacks_may_not_be_missing() -> None:
    x = rows(1)
    model = lanner.compile(make_pipeline(SimpleImputer(), Ridge()).fit(x, target(x)), x)
    other = rows(2)[:1]
    other[0, -1] = np.nan
    with pytest.raises(InputError, match="is missing, but no calibration sample lacked it"):
        model.predict_fixed(other)


def test_a_column_may_be_missing_where_its_owner_says_so() -> None:
    x = np.nan_to_num(rows(1))
    fitted = make_pipeline(SimpleImputer(), Ridge()).fit(rows(1), target(x))
    columns = [{"name": name, "missing": name == "rate"} for name in ("age", "dose", "rate", "score")]
    model = lanner.compile(fitted, x, columns=columns)
    row = x[:1].copy()
    row[0, 2] = np.nan
    assert np.abs(model.predict_fixed(row).ravel() - fitted.predict(row)).max() < 0.01 * np.ptp(target(x))
    row[0, 1] = np.nan
    with pytest.raises(InputError, match="is missing, but no calibration sample lacked it"):
        model.predict_fixed(row)


def test_a_file_with_named_columns_reads_empty_cells(tmp_path: Path) -> None:
    x = rows(1)
    fitted = make_pipeline(SimpleImputer(), Ridge()).fit(x, target(x))
    (tmp_path / "risk.onnx").write_bytes(to_onnx(fitted, x[:1]).SerializeToString())
    header = "age,dose,rate,score"
    lines = [",".join("" if np.isnan(each) else f"{each:.4f}" for each in row) for row in x]
    (tmp_path / "x.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    compiled = run_lanner(
        *("compile", tmp_path / "risk.onnx", "-o", tmp_path / "risk.lanner", "--calibration", tmp_path / "x.csv"),
        *("--columns", header, "--output", "value"),
    )
    assert compiled.code == 0, compiled.errors
    (tmp_path / "one.csv").write_text(f"{header}\n1.5,,1.0,2\n", encoding="utf-8")
    ran = run_lanner("run", tmp_path / "risk.lanner", tmp_path / "one.csv")
    assert ran.code == 0, ran.errors
    exact = fitted.predict(np.array([[1.5, np.nan, 1.0, 2.0]], np.float32))[0]
    assert abs(ran.document["predictions"][0]["values"][0] - exact) < 0.02 * np.ptp(target(x))


def test_a_number_out_of_range_is_named_by_its_column() -> None:
    x = rows(1)
    model = lanner.compile(make_pipeline(SimpleImputer(), Ridge()).fit(x, target(x)), x)
    for column in range(COLUMNS):
        row = np.array([[0.0, 5.0, 1.0, 0.0]], np.float32)
        row[0, column] = 1e6
        with pytest.raises(InputError, match=rf"element \[0, {column}\] is outside the accepted range"):
            model.predict_fixed(row)


def test_filled_numbers_are_not_rounded_unseen() -> None:
    """Behind an Imputer a cast to integers rounds, and is refused as elsewhere."""
    nodes = [
        helper.make_node(
            "Imputer", ["x"], ["f"], domain="ai.onnx.ml", imputed_value_floats=[1.0], replaced_value_float=np.nan
        ),
        helper.make_node("Cast", ["f"], ["i"], to=TensorProto.INT64),
        helper.make_node("Cast", ["i"], ["g"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["g", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(np.ones((COLUMNS, 2), np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    with pytest.raises(UnsupportedOpError, match="would round the values"):
        lanner.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8), rows(1))


def test_a_column_keeps_its_name_beside_a_tensor_of_that_name() -> None:
    pandas = pytest.importorskip("pandas")
    x = rows(1)
    frame = pandas.DataFrame(x, columns=["X", "b", "c", "d"])
    fitted = make_pipeline(SimpleImputer(), Ridge()).fit(x, target(x))
    model = lanner.compile(fitted, frame)
    assert np.array_equal(model.predict_fixed(frame), model.predict_fixed(x))
    with pytest.raises(MisuseError, match="has the name of an output"):
        lanner.compile(fitted, pandas.DataFrame(x, columns=["variable", "b", "c", "d"]))
