"""A gateway in front of a server, each a process: every route of the Open Inference Protocol, and its errors."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.callers import OCTETS, Caller, request_of
from helpers.digits import NAMES, DigitModels
from lanner import __version__
from lanner.datasets import load_digits
from lanner.prediction import PHASES

X = load_digits("test")[0]


def outputs(document: dict[str, Any]) -> dict[str, Any]:
    """The outputs of an answer by name."""
    return {output["name"]: output for output in document["outputs"]}


def test_server_metadata_and_health(call: Caller) -> None:
    assert call.get("/v2").document == {
        "name": "lanner",
        "version": __version__,
        "extensions": ["classification", "binary_tensor_data"],
    }
    assert call.get("/v2/health/live").document == {"live": True}
    assert call.get("/v2/health/ready").document == {"ready": True}


@pytest.mark.parametrize("path", ["/v2/models/digits", "/v2/models/digits/versions/1"])
def test_model_metadata(call: Caller, path: str) -> None:
    assert call.get(path).document == {
        "name": "digits",
        "versions": ["1"],
        "platform": "lanner_auto",
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 28, 28]}],
        "outputs": [
            {"name": "probability", "datatype": "FP64", "shape": [-1]},
            {"name": "label", "datatype": "INT64", "shape": [-1]},
            {"name": "class_name", "datatype": "BYTES", "shape": [-1]},
        ],
    }
    assert call.get(f"{path}/ready").document == {"name": "digits", "ready": True}


def test_metadata_tells_what_each_policy_reveals(call: Caller) -> None:
    told = {
        name: {output["name"]: output["shape"] for output in call.get(f"/v2/models/{name}").document["outputs"]}
        for name in ("best", "scores", "plain")
    }
    assert told == {
        "best": {"top": [-1, 3], "label": [-1]},
        "scores": {"logits": [-1, 10], "label": [-1]},
        "plain": {"label": [-1]},
    }


@pytest.mark.parametrize("path", ["digits", "digits/versions/1"])
def test_label_and_probability_equal_the_reference(call: Caller, digit_models: DigitModels, path: str) -> None:
    answer = call.infer(path, request_of(X[:3], id="mine"))
    assert answer.status == 200
    document = answer.document
    assert (document["model_name"], document["model_version"], document["id"]) == ("digits", "1", "mine")
    found = outputs(document)
    model = digit_models.models["digits"]
    labels = model.predict_fixed(X[:3]).argmax(1).tolist()
    assert found["label"] == {"name": "label", "datatype": "INT64", "shape": [3], "data": labels}
    assert found["class_name"]["data"] == [NAMES[label] for label in labels]
    assert found["probability"]["shape"] == [3]
    assert all(0 <= value <= 1 for value in found["probability"]["data"])


def test_costs_are_told_by_phase(call: Caller) -> None:
    one, two = (call.infer("plain", request_of(X[:count])).document["parameters"] for count in (1, 2))
    for name in PHASES:
        assert one[f"{name}_bytes_sent"] > 0
        assert one[f"{name}_rounds"] > 0
        assert one[f"{name}_seconds"] > 0
    # Of two requests the second is prepared while the first runs: what frames both on their connection is of neither.
    assert two["online_bytes_sent"] == pytest.approx(2 * one["online_bytes_sent"], rel=0.01)
    assert two["setup_bytes_sent"] == one["setup_bytes_sent"]
    assert not one["new_session"]
    # The protocol's parameters are single values.
    assert all(isinstance(value, str | int | float | bool) for value in one.values())


def test_scores_equal_the_reference(call: Caller, digit_models: DigitModels) -> None:
    answer = outputs(call.infer("scores", request_of(X[:2])).document)
    logits = np.array(answer["logits"]["data"]).reshape(answer["logits"]["shape"])
    model = digit_models.models["scores"]
    integers, _ = model.predict_integers(X[:2])
    assert np.rint(logits * model.logits_scale).tolist() == integers.tolist()
    assert answer["label"]["data"] == integers.argmax(1).tolist()


def test_sample_without_a_batch_axis(call: Caller) -> None:
    alone, batched = (outputs(call.infer("plain", request_of(x)).document)["label"] for x in (X[0], X[:1]))
    assert alone == batched


@pytest.mark.parametrize(("datatype", "numpy"), [("FP64", "<f8"), ("FP16", "<f2"), ("UINT8", "u1"), ("BOOL", "?")])
def test_numeric_types_are_converted(call: Caller, datatype: str, numpy: str) -> None:
    ink = (X[:1] > 0.5).astype(numpy)
    body = request_of(X[:1])
    body["inputs"][0] |= {"datatype": datatype, "data": ink.tolist()}
    expected = outputs(call.infer("plain", request_of(ink.astype(np.float32))).document)
    assert outputs(call.infer("plain", body).document) == expected
    text, data = binary_request(body, ink.tobytes())
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(text))}
    answer = call("POST", "/v2/models/plain/infer", text + data, headers)
    assert outputs(answer.document) == expected


def binary_request(body: dict[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """A request whose input follows its JSON."""
    entry = {**body["inputs"][0], "parameters": {"binary_data_size": len(data)}}
    del entry["data"]
    return json.dumps({**body, "inputs": [entry]}).encode(), data


def test_binary_tensors_both_ways(call: Caller) -> None:
    wanted = [
        {"name": "label", "parameters": {"binary_data": True}},
        {"name": "class_name", "parameters": {"binary_data": True}},
        {"name": "probability"},
    ]
    text, data = binary_request(request_of(X[:2], outputs=wanted), X[:2].tobytes())
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(text))}
    answer = call("POST", "/v2/models/digits/infer", text + data, headers)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers["inference-header-content-length"])
    document, rest = json.loads(answer.body[:length]), answer.body[length:]
    found = outputs(document)
    plain = outputs(call.infer("digits", request_of(X[:2])).document)
    assert found["label"]["parameters"] == {"binary_data_size": 16}
    assert list(struct.unpack("<2q", rest[:16])) == plain["label"]["data"]
    names = b"".join(struct.pack("<I", len(name)) + name.encode() for name in plain["class_name"]["data"])
    assert rest[16:] == names
    assert found["class_name"]["parameters"] == {"binary_data_size": len(names)}
    assert found["probability"] == plain["probability"]


def test_all_outputs_binary_by_one_parameter(call: Caller) -> None:
    answer = call.infer("scores", request_of(X[:1], parameters={"binary_data_output": True}))
    length = int(answer.headers["inference-header-content-length"])
    expected = outputs(call.infer("scores", request_of(X[:1])).document)["logits"]["data"]
    assert np.frombuffer(answer.body[length : length + 80], "<f8").tolist() == expected


@pytest.mark.parametrize(
    ("model", "output", "count"), [("digits", "probability", 1), ("scores", "logits", 4), ("best", "top", 2)]
)
def test_classification(call: Caller, model: str, output: str, count: int) -> None:
    wanted = [{"name": output, "parameters": {"classification": count}}]
    found = outputs(call.infer(model, request_of(X[:2], outputs=wanted)).document)
    assert set(found) == {output}
    assert (found[output]["datatype"], found[output]["shape"]) == ("BYTES", [2, count])
    raw = outputs(call.infer(model, request_of(X[:2])).document)
    for row, text in enumerate(found[output]["data"][::count]):
        value, index, *name = text.split(":")
        assert int(index) == raw["label"]["data"][row]
        assert name == ([NAMES[int(index)]] if model == "digits" else [])
        if model == "best":
            assert value == "nan"
        else:
            best = np.array(raw[output]["data"]).reshape(2, -1).max(1)
            assert float(value) == pytest.approx(best[row], abs=1e-6)


def test_classification_ranks_scores(call: Caller) -> None:
    wanted = [{"name": "logits", "parameters": {"classification": 10}}]
    texts = outputs(call.infer("scores", request_of(X[:1], outputs=wanted)).document)["logits"]["data"]
    values = [float(text.split(":")[0]) for text in texts]
    assert values == sorted(values, reverse=True)
    assert sorted(int(text.split(":")[1]) for text in texts) == list(range(10))


def test_classification_tells_no_more_than_the_policy(call: Caller) -> None:
    wanted = [{"name": "label", "parameters": {"classification": 5}}]
    found = outputs(call.infer("plain", request_of(X[:1], outputs=wanted)).document)["label"]
    label = outputs(call.infer("plain", request_of(X[:1])).document)["label"]["data"][0]
    assert (found["shape"], found["data"]) == ([1, 1], [f"nan:{label}"])


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_bodies(call: Caller, encoding: str) -> None:
    plain = json.dumps(request_of(X[:1])).encode()
    body = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    assert outputs(call("POST", "/v2/models/plain/infer", body, headers).document)["label"]["shape"] == [1]
    cut = call("POST", "/v2/models/plain/infer", body[:-5], headers)
    assert (cut.status, cut.error) == (400, "the compressed body is cut off, or something follows it")
    wrong = call("POST", "/v2/models/plain/infer", plain, headers)
    assert (wrong.status, wrong.error) == (400, "the body is not compressed as its content encoding says")


WRONG_INPUTS: list[tuple[dict[str, Any], str]] = [
    ({"name": "y"}, "the model has no input 'y' but 'image'"),
    ({"datatype": "BYTES"}, "is of type 'BYTES'"),
    ({"datatype": ["FP32"]}, "is of type ['FP32']"),
    ({"shape": [1, 28, 29]}, "has 784 values, and its shape is [1, 28, 29]"),
    ({"shape": [28, 28]}, "the shape is (28, 28)"),
    ({"shape": [-1, 1, 28, 28]}, "has no shape of 1 to 9 positive whole numbers"),
    ({"shape": "all"}, "has no shape of 1 to 9 positive whole numbers"),
    ({"data": ["a"] * 784}, "must be numbers alone"),
    (
        {"datatype": "INT32", "data": [1, 0.5, *[0] * 782]},
        "element [1] of input 'image' is no INT32; send whole numbers",
    ),
    ({"data": [[1, 2], [3]]}, "not of equal length"),
    ({"data": None}, "has no `data`"),
    ({"data": [2.0] * 784}, "outside the accepted range"),
    ({"data": [float("nan")] * 784}, "give finite numbers"),
    ({"parameters": {"binary_data_size": 8}}, "0 bytes follow the JSON"),
    ({"parameters": []}, "must be a JSON object"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG_INPUTS)
def test_wrong_input_is_told(call: Caller, change: dict[str, Any], sentence: str) -> None:
    body = request_of(X[:1])
    body["inputs"][0] |= change
    answer = call.infer("plain", body)
    assert answer.status == 400
    assert sentence in answer.error


WRONG_REQUESTS: list[tuple[object, str]] = [
    ([], "the request must be a JSON object"),
    ({}, "`inputs` must be a list"),
    ({"inputs": []}, "there are no inputs"),
    ({"inputs": [{}, {}]}, "input 'None' is of type None"),
    (request_of(X[0], id=3), "`id` must be text"),
    (request_of(X[0], outputs=[{"name": "logits"}]), "reveals no output 'logits' but label"),
    (request_of(X[0], outputs=[{"name": "label"}] * 2), "asked for twice"),
    (request_of(X[0], outputs=[{}]), "has no `name`"),
    (request_of(X[0], outputs=[{"name": "label", "parameters": {"classification": -1}}]), "number of classes"),
    (request_of(X[0], outputs=[{"name": "label", "parameters": {"binary_data": 1}}]), "must be true or false"),
]


@pytest.mark.parametrize(("body", "sentence"), WRONG_REQUESTS)
def test_wrong_request_is_told(call: Caller, body: object, sentence: str) -> None:
    answer = call.infer("plain", body)
    assert answer.status == 400
    assert sentence in answer.error


@pytest.mark.parametrize(
    ("body", "length", "sentence"),
    [
        (b"{", None, "the body is not JSON"),
        (b"[" * 50_000, None, "the body is not JSON"),
        (b"\xff\xfe", None, "the body is not JSON"),
        (b"{}", "3", "must be the bytes of JSON"),
        (b"{}", "-1", "must be the bytes of JSON"),
        (b"{}", "two", "must be the bytes of JSON"),
    ],
)
def test_damaged_body_is_told(call: Caller, body: bytes, length: str | None, sentence: str) -> None:
    headers = {**OCTETS, **({} if length is None else {"Inference-Header-Content-Length": length})}
    answer = call("POST", "/v2/models/plain/infer", body, headers)
    assert answer.status == 400
    assert sentence in answer.error


def test_binary_data_that_does_not_fit_is_told(call: Caller) -> None:
    text, data = binary_request(request_of(X[:1]), X[:1].tobytes())
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(text))}
    answer = call("POST", "/v2/models/plain/infer", text + data[:-1], headers)
    assert (answer.status, "3135 bytes follow the JSON" in answer.error) == (400, True)
    unnamed = json.dumps(request_of(X[:1])).encode()
    headers["Inference-Header-Content-Length"] = str(len(unnamed))
    answer = call("POST", "/v2/models/plain/infer", unnamed + b"1234", headers)
    assert (answer.status, "whose it is" in answer.error) == (400, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/other/ready", 404),
        ("GET", "/v2/models/digits/versions/2", 404),
        ("POST", "/v2/models/other/infer", 404),
        ("POST", "/v2/models/digits/versions/2/infer", 404),
        ("GET", "/v2/models/digits/infer", 405),
        ("POST", "/v2", 405),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/ui/../page.js", 404),
        ("POST", "/ui/predict?model=other", 404),
    ],
)
def test_what_is_not_there_is_told(call: Caller, method: str, path: str, status: int) -> None:
    answer = call(method, path, b"{}" if method == "POST" else None, OCTETS)
    assert answer.status == status
    assert answer.error


def test_page_and_its_files_come_from_the_gateway_alone(call: Caller) -> None:
    page = call.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert page.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/ui/page.css", "/ui/page.js", "/ui/drawing.js", "/ui/result.js"):
        text = call.get(path).body.decode()
        assert "http:" not in text
        assert "https:" not in text
        assert "style=" not in text
    assert call.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_page_is_told_what_each_model_takes(call: Caller, digit_models: DigitModels) -> None:
    digits, *_, plain = call.get("/ui/models").document["models"]
    assert digits["image"] == {"height": 28, "width": 28, "invert": True}
    assert (plain["name"], plain["image"], plain["values"]) == ("plain", None, 784)
    assert plain["commitment"] == digit_models.models["plain"].commitment


def test_page_takes_pictures_rows_and_arrays(call: Caller, digit_models: DigitModels, tmp_path: Path) -> None:
    from helpers.digits import save_picture

    expected = int(digit_models.models["digits"].predict_fixed(X[0]).argmax())
    picture = save_picture(tmp_path / "digit.png", X[0]).read_bytes()
    np.save(tmp_path / "digit.npy", X[0])
    row = ",".join(map(str, X[0].ravel().tolist())).encode()
    for content in (picture, row, (tmp_path / "digit.npy").read_bytes()):
        answer = call("POST", "/ui/predict?model=digits", content, OCTETS)
        assert answer.status == 200, answer.body
        prediction = answer.document["prediction"]
        assert (prediction["label"], prediction["class_name"]) == (expected, NAMES[expected])
        assert set(answer.document["costs"]) == set(PHASES)
        assert prediction["layers"]


def test_page_says_of_the_first_line_of_csv_that_it_is_a_header(call: Caller, digit_models: DigitModels) -> None:
    row = ",".join(map(str, X[0].ravel().tolist()))
    for header in (",".join(map(str, range(784))), ",".join(f"pixel {place}" for place in range(784))):
        content = f"{header}\n{row}\n".encode()
        told = call("POST", "/ui/predict?model=digits&csv_header=true", content, OCTETS)
        assert told.document["prediction"]["label"] == digit_models.models["digits"].predict_fixed(X[0]).argmax()


@pytest.mark.parametrize(
    ("model", "content", "sentence"),
    [
        ("digits", b"1,2,3", "a row has 3 values"),
        ("digits", b"", "there are no rows"),
        ("digits", b"one,2", "field 1 is no number"),
        ("digits", b"a,b\n1,2", "this is a header; leave this line out, or say that the first line is a header"),
        ("digits", b"0,1,2\n0.5,0.0,1.0", "this line may be a header of numbers; say that the first line is a header"),
        ("digits", b"1_0,2", "field 1 has an underscore"),
        ("digits", b"\x00\xff", "nor rows of numbers; give a whole PNG, JPEG, .npy, .npz, JSON or CSV file"),
        ("digits", b"no picture at all", "nor rows of numbers; give a whole PNG, JPEG, .npy, .npz, JSON or CSV file"),
        ("plain", b"import numpy as np\n\nprint(1)\n", "rows of numbers; give a whole .npy, .npz, JSON or CSV file"),
        ("digits", b"\x89PNG\r\n\x1a\nrubbish", "this is not a PNG or JPEG picture"),
        ("digits", b"\x93NUMPYrubbish", "cannot be read as a NumPy array"),
        ("plain", b"\x89PNG\r\n\x1a\nrubbish", "does not describe images"),
        ("plain", b"\n".join([b",".join([b"0"] * 784)] * 2), "the page accepts one at a time"),
        ("plain", b",".join([b"7"] * 784), "outside the accepted range"),
    ],
)
def test_page_is_told_of_wrong_inputs(call: Caller, model: str, content: bytes, sentence: str) -> None:
    answer = call("POST", f"/ui/predict?model={model}", content, OCTETS)
    assert answer.status == 400
    assert sentence in answer.error
