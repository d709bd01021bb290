"""A gateway to a model with several inputs and outputs, and to one of tokens, by both of KServe's protocols."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.callers import JSON, OCTETS, Caller, Reply
from helpers.processes import Serving, gateway, serving
from helpers.processes import lanner as command
from helpers.several import Arrays, attention, first, tokens, two_floats


@pytest.fixture(scope="module")
def models() -> dict[str, lanner.Model]:
    floats, arrays = two_floats()
    words = lanner.compile(attention(), tokens(32), shape="sequence=6", output="label", precision=10, name="words")
    return {"floats": lanner.compile(floats, arrays, output_name="y,z", precision=10, name="floats"), "words": words}


@pytest.fixture(scope="module")
def server(models: dict[str, lanner.Model], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("several")
    for name, model in models.items():
        model.save(folder / f"{name}.lanner")
    with serving(folder, *(folder / f"{name}.lanner" for name in models)) as process:
        yield process


@pytest.fixture(scope="module")
def several(server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    names = ("--model", "floats", "--model", "words")
    with gateway(tmp_path_factory.mktemp("gate"), server.address, *server.pin, *names) as process:
        yield Caller(process.document["url"])


def tensors(arrays: Arrays) -> list[dict[str, Any]]:
    """The inputs of a request in protocol v2."""
    kinds = {"f": "FP32", "i": "INT64"}
    return [
        {"name": name, "datatype": kinds[each.dtype.kind], "shape": list(each.shape), "data": each.ravel().tolist()}
        for name, each in arrays.items()
    ]


def post(call: Caller, model: str, document: object) -> Reply:
    return call("POST", f"/v1/models/{model}:predict", json.dumps(document).encode(), JSON)


def test_metadata_names_every_input_and_output(several: Caller) -> None:
    told = several.get("/v2/models/floats").document
    assert told["inputs"] == [
        {"name": "a", "datatype": "FP32", "shape": [-1, 6]},
        {"name": "b", "datatype": "FP32", "shape": [-1, 2, 2]},
    ]
    assert told["outputs"] == [
        {"name": "y", "datatype": "FP64", "shape": [-1, 3]},
        {"name": "z", "datatype": "FP64", "shape": [-1, 5]},
    ]
    told = several.get("/v2/models/words").document
    assert [(entry["name"], entry["datatype"]) for entry in told["inputs"]] == [
        ("ids", "INT64"),
        ("mask", "INT64"),
        ("kinds", "INT64"),
    ]


def test_tensors_of_a_request_go_by_name_in_any_order(several: Caller, models: dict[str, lanner.Model]) -> None:
    arrays = first(two_floats()[1], 2)
    answer = several.infer("floats", {"inputs": tensors(arrays)[::-1]})
    assert answer.status == 200
    outputs = {each["name"]: each for each in answer.document["outputs"]}
    assert outputs["y"]["shape"] == [2, 3]
    found = np.concatenate([np.reshape(outputs[name]["data"], (2, -1)) for name in ("y", "z")], axis=1)
    assert np.allclose(found, models["floats"].predict_fixed(arrays))


def test_binary_data_follows_in_the_order_of_the_inputs(several: Caller, models: dict[str, lanner.Model]) -> None:
    arrays = first(tokens(3, seed=9), 3)
    entries = tensors(arrays)
    for entry, values in zip(entries, arrays.values(), strict=True):
        del entry["data"]
        entry["parameters"] = {"binary_data_size": values.nbytes}
    text = json.dumps({"inputs": entries}).encode()
    body = text + b"".join(values.astype("<i8").tobytes() for values in arrays.values())
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(text))}
    answer = several("POST", "/v2/models/words/infer", body, headers)
    assert answer.status == 200
    labels = models["words"].predict_integers(arrays)[0].argmax(1)
    assert answer.document["outputs"][0]["data"] == labels.tolist()
    assert "1 bytes of data follow" in several("POST", "/v2/models/words/infer", body + b"x", headers).error


def test_protocol_v1_takes_instances_and_columns(several: Caller, models: dict[str, lanner.Model]) -> None:
    assert several.get("/v1/models").document == {"models": ["floats", "words"]}
    assert several.get("/v1/models/words").document == {"name": "words", "ready": True}
    arrays = tokens(20, seed=10)
    labels = models["words"].predict_integers(arrays)[0].argmax(1).tolist()
    rows = [{name: values[index].tolist() for name, values in arrays.items()} for index in range(20)]
    # The names of an object are in no order.
    rows[1] = dict(reversed(rows[1].items()))
    # More than one turn's.
    assert post(several, "words", {"instances": rows}).document == {"predictions": labels}
    columns = {name: values.tolist() for name, values in first(arrays, 2).items()}
    assert post(several, "words", {"inputs": columns}).document == {"outputs": labels[:2]}
    floats = first(two_floats()[1], 1)
    (row,) = post(
        several, "floats", {"instances": [{name: each[0].tolist() for name, each in floats.items()}]}
    ).document["predictions"]
    assert np.allclose([*row["y"], *row["z"]], models["floats"].predict_fixed(floats)[0])


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "must have `instances`"),
        ({"instances": []}, "must be a list of samples"),
        ({"instances": [[1, 2]]}, "each of the instances must be an object of ids, mask, kinds"),
        ({"instances": [{"ids": [0] * 6, "mask": [1] * 6}]}, "input kinds is missing"),
        ({"inputs": {"ids": [[0] * 6], "other": [[0]]}}, "has no input 'other'"),
        ({"inputs": {"ids": [[20] * 6], "mask": [[1] * 6], "kinds": [[0] * 6]}}, "is no whole number from 0 to 19"),
        ({"inputs": {"ids": [[1, [2]]]}}, "numbers in lists of equal length"),
        (
            {"inputs": dict.fromkeys(("ids", "mask", "kinds"), [[0] * 6] * 1025)},
            "there are 1025 samples; send at most 1024",
        ),
    ],
)
def test_wrong_requests_of_protocol_v1_are_told(several: Caller, document: object, sentence: str) -> None:
    answer = post(several, "words", document)
    assert answer.status == 400
    assert sentence in answer.error


def test_a_name_that_is_twice_in_a_request_is_refused(several: Caller) -> None:
    twice = b'{"instances": [{"ids": [1], "ids": [2], "mask": [1], "kinds": [0]}]}'
    answer = several("POST", "/v1/models/words:predict", twice, JSON)
    assert answer.status == 400
    assert "the name ids is there twice" in answer.error


def test_the_page_takes_arrays_by_name(several: Caller, models: dict[str, lanner.Model]) -> None:
    arrays, packed = first(two_floats()[1]), io.BytesIO()
    np.savez(packed, a=arrays["a"][0], b=arrays["b"][0])
    listed = json.dumps({name: values[0].tolist() for name, values in arrays.items()}).encode()
    for content in (packed.getvalue(), listed):
        values = several("POST", "/ui/predict?model=floats", content, OCTETS).document["prediction"]["values"]
        assert np.allclose([*values["y"], *values["z"]], models["floats"].predict_fixed(arrays)[0])


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_files_of_arrays_by_name_are_inputs(
    server: Serving, models: dict[str, lanner.Model], tmp_path: Path, suffix: str
) -> None:
    arrays, path = first(tokens(2, seed=11), 2), tmp_path / f"words{suffix}"
    if suffix == ".npz":
        np.savez(path, ids=arrays["ids"], mask=arrays["mask"], kinds=arrays["kinds"])
    else:
        path.write_text(json.dumps({name: values.tolist() for name, values in arrays.items()}))
    told = command("predict", server.address, path, *server.pin, "--model", "words").document
    labels = models["words"].predict_integers(arrays)[0].argmax(1)
    assert [each["label"] for each in told["predictions"]] == labels.tolist()
