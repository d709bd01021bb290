"""A gateway to a model of trees over a table whose columns have names: both protocols, and what the page asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.callers import JSON, OCTETS, Caller, Reply
from helpers.models import tiny_classifier, tiny_samples
from helpers.named_tables import STATED, as_csv, samples, tree_model
from helpers.processes import Serving, gateway, serving
from lanner.reference import open_exactly

#: A row with a missing number of each kind, and one without.
ROWS = np.array([[41, np.nan, np.nan], [30, 1, 170.5]], np.float32)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("tables")
    trees = lanner.compile(tree_model(), samples(), columns=STATED, mode="cheetah", name="trees")
    plain = lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah", name="plain")
    for model in (trees, plain):
        model.save(folder / f"{model.name}.lanner")
    names = ("--model", "trees", "--model", "plain")
    with (
        serving(folder, folder / "trees.lanner", folder / "plain.lanner") as server,
        gateway(folder / "gate", server.address, *server.pin, *names) as process,
    ):
        yield process


@pytest.fixture(scope="module")
def call(process: Serving) -> Caller:
    return Caller(process.document["url"])


@pytest.fixture(scope="module")
def scores() -> list[float]:
    """What onnxruntime gives for `ROWS`."""
    found: list[float] = open_exactly(tree_model()).run(["y"], {"x": ROWS})[0].ravel().tolist()
    return found


def holes(rows: np.ndarray) -> list[Any]:
    """Rows as JSON has them, which has no NaN."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in rows]


def infer(call: Caller, data: list[Any], datatype: str, model: str = "trees") -> Reply:
    tensor = {"name": "x", "datatype": datatype, "shape": [len(data), len(data[0])], "data": data}
    return call.infer(model, {"inputs": [tensor]})


@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_protocol_v2_takes_null_for_a_missing_number(call: Caller, scores: list[float], datatype: str) -> None:
    answer = infer(call, holes(ROWS), datatype)
    assert answer.status == 200
    assert np.allclose(answer.document["outputs"][0]["data"], scores, atol=1e-5)


def test_protocol_v2_takes_nan_in_binary_data(call: Caller, scores: list[float]) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": ROWS.nbytes}}
    text = json.dumps({"inputs": [tensor]}).encode()
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(text))}
    answer = call("POST", "/v2/models/trees/infer", text + ROWS.tobytes(), headers)
    assert answer.status == 200
    assert np.allclose(answer.document["outputs"][0]["data"], scores, atol=1e-5)


def test_missing_numbers_stay_refused_where_there_is_no_table_or_no_float(call: Caller) -> None:
    assert "must be numbers alone" in infer(call, holes(ROWS), "INT64").error
    assert "must be numbers alone" in infer(call, [[41, "no", None]], "FP32").error
    assert "(column age) is missing" in infer(call, [[None, 0, 170]], "FP32").error
    pixels = [[[None] * 8] * 8]
    tensor = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": pixels}
    name = call.get("/v2/models/plain").document["inputs"][0]["name"]
    assert "must be numbers alone" in call.infer("plain", {"inputs": [{**tensor, "name": name}]}).error


def test_protocol_v1_takes_null_and_objects_by_name(call: Caller, scores: list[float]) -> None:
    objects = [{"height": 170.5, "smokes": "yes", "age": 30}]
    for document, expected in (
        ({"instances": holes(ROWS)}, scores),
        ({"inputs": {"x": holes(ROWS)}}, scores),
        ({"instances": objects}, scores[1:]),
        ({"inputs": {"age": [41, 30], "smokes": [None, "yes"], "height": [None, 170.5]}}, scores),
    ):
        answer = call("POST", "/v1/models/trees:predict", json.dumps(document).encode(), JSON)
        assert answer.status == 200, answer.body
        assert np.allclose(next(iter(answer.document.values())), np.reshape(expected, (-1, 1)), atol=1e-5)
    objects[0]["smokes"] = "maybe"
    answer = call("POST", "/v1/models/trees:predict", json.dumps({"instances": objects}).encode(), JSON)
    assert "row 1: column smokes has a field that is none of its categories" in answer.error


def test_the_page_is_told_of_columns_and_takes_a_row(call: Caller, process: Serving, scores: list[float]) -> None:
    (trees, plain) = call.get("/ui/models").document["models"]
    told = [(each["name"], each.get("categories"), each["missing"]) for each in trees["inputs"][0]["columns"]]
    assert told == [(each["name"], each.get("categories"), each.get("missing", False)) for each in STATED]
    assert all("columns" not in entry for entry in plain["inputs"])
    form = json.dumps(holes(ROWS[:1])).encode()
    for content, notes in (
        (form, []),
        (as_csv(ROWS[:1]).encode(), []),
        (as_csv(ROWS[:1], header="").encode(), []),
        (b"id,height,smokes,age\n7,,?,41\n", ["column id is left out: the model does not read it"]),
    ):
        answer = call("POST", "/ui/predict?model=trees", content, OCTETS)
        assert answer.status == 200, answer.body
        assert np.allclose(answer.document["prediction"]["values"], scores[0], atol=1e-5)
        assert answer.document["notes"] == notes
    answer = call("POST", "/ui/predict?model=trees", b"1382,no,170\n", OCTETS)
    sentence = "1 value is beyond its column's range and counts as the end: row 1 (column age)"
    assert answer.document["notes"] == [sentence]
    assert "beyond" not in process.log()
    assert call("POST", "/ui/predict?model=trees", b"1,maybe,170\n", OCTETS).status == 400


def test_metadata_is_that_of_an_array(call: Caller) -> None:
    assert call.get("/v2/models/trees").document["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
