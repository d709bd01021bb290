"""Texts to a server in another process: on the command line, by the library, and through the gateway."""

from __future__ import annotations

import json
import struct
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

import lanner
from helpers.callers import JSON, OCTETS, Caller
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import Serving, gateway, serving
from helpers.processes import lanner as command
from helpers.texts import SENTENCES, reader, save_tokenizer, tagger
from lanner.cli import main
from lanner.cli.predict import read_given
from lanner.inputs import fit_sources

LONG = "film " * 7


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> lanner.Model:
    folder = tmp_path_factory.mktemp("reader")
    text = f"{save_tokenizer(folder)},length=8"
    return lanner.compile(reader(), SENTENCES * 4, text=text, mode="cheetah", precision=11, name="reader")


@pytest.fixture(scope="module")
def server(model: lanner.Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("served")
    model.save(folder / "reader.lanner")
    with serving(folder, folder / "reader.lanner") as server:
        yield server


@pytest.fixture(scope="module")
def call(server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with gateway(tmp_path_factory.mktemp("gate"), server.address, *server.pin) as process:
        yield Caller(process.document["url"])


def label(model: lanner.Model, text: str) -> int:
    return int(model.predict_fixed(text)[0].argmax())


def test_a_command_line_gives_texts_and_files(model: lanner.Model, server: Serving, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("the bad film\nnot bad\n")
    given = ("A good film", str(tmp_path / "some.txt"), "zebra")
    done = command("predict", server.address, *given, *server.pin)
    predictions = done.document["predictions"]
    texts = ("A good film", "the bad film", "not bad", "zebra")
    assert [each["label"] for each in predictions] == [label(model, text) for text in texts]
    assert [each["input"] for each in predictions] == ["text", *[str(tmp_path / "some.txt")] * 2, "text"]
    # One word may be the name of a file, mistyped.
    assert "zebra" in done.errors
    assert "A good film" not in done.errors


def test_a_text_that_is_too_long_needs_truncate(model: lanner.Model, server: Serving) -> None:
    refused = command("predict", server.address, LONG, *server.pin)
    assert refused.code == 6
    assert "more than the 8 tokens" in refused.errors
    cut = command("predict", server.address, LONG, *server.pin, "--truncate")
    assert cut.document["predictions"][0]["label"] == label(model, "film " * 6)
    assert "cut to the 8 tokens" in cut.errors


def test_what_is_named_as_a_file_must_be_one(server: Serving) -> None:
    refused = command("predict", server.address, "none.txt", *server.pin)
    assert refused.code == 6
    assert "none.txt" in refused.errors


def test_a_word_is_a_missing_file_to_a_model_that_reads_no_texts() -> None:
    manifest = lanner.compile(tiny_classifier(), tiny_samples()).manifest
    for given, where in (("xrayz", "xrayz"), ("a picture", "text")):
        with pytest.raises(lanner.InputError) as refused:
            fit_sources(read_given([given], Namespace(csv_header=None)), manifest)
        assert refused.value.where == where


def test_the_library_takes_texts(model: lanner.Model, server: Serving) -> None:
    with lanner.Client(server.address, pin=server.pin[1], truncate=True) as client:
        assert client.predict("not a good film").label == label(model, "not a good film")
        assert [each.label for each in client.predict_batch(["a", ""])] == [label(model, "a"), label(model, "")]
        with pytest.warns(lanner.TextWarning):
            client.predict(LONG)


def test_each_token_has_a_label_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, names = f"{save_tokenizer(tmp_path)},length=8", ["O", "THING", "WORD"]
    tags = lanner.compile(
        tagger(), SENTENCES * 4, text=text, mode="cheetah", output="label", classes=names, name="tags"
    )
    tags.save(tmp_path / "tags.lanner")
    expected = tags.predict_integers("A good zebra")[0].reshape(8, 3).argmax(1).tolist()
    tokens = ["[CLS]", "a", "good", "[UNK]", "[SEP]", None, None, None]
    with serving(tmp_path, tmp_path / "tags.lanner") as server:
        with lanner.Client(server.address, pin=server.pin[1]) as client:
            told = client.predict("A good zebra")
        assert (told.labels, told.tokens, told.shape) == (expected, tokens, [8])
        done = command("predict", server.address, "A good zebra", *server.pin)
        (document,) = done.document["predictions"]
        assert (document["labels"], document["tokens"]) == (expected, tokens)
        assert main(["predict", server.address, "A good zebra", *map(str, server.pin)]) == 0
    pairs = [f"{token} {names[label]}" for token, label in zip(tokens, expected, strict=True) if token is not None]
    assert ", ".join(pairs) in capsys.readouterr().out


def test_protocol_v2_takes_bytes(model: lanner.Model, call: Caller) -> None:
    texts = ["A good film", "é \U0001f600"]
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2], "data": texts}
    expected = [label(model, text) for text in texts]
    answer = call.infer("reader", {"inputs": [tensor]})
    assert answer.status == 200
    assert answer.document["outputs"][0]["data"] == expected
    data = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
    header = {**tensor, "parameters": {"binary_data_size": len(data)}}
    del header["data"]
    content = json.dumps({"inputs": [header]}).encode()
    headers = {**OCTETS, "Inference-Header-Content-Length": str(len(content))}
    binary = call("POST", "/v2/models/reader/infer", content + data, headers)
    assert binary.document["outputs"][0]["data"] == expected
    assert call.get("/v2/models/reader").document["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": [2]}, "has 1 texts"),
        ({"shape": [1, 2]}, "has the shape"),
        ({"data": [1]}, "must be texts"),
        ({"data": "a"}, "no list of texts"),
        ({"name": "words"}, "must be called"),
        ({"data": [LONG]}, "more than the 8 tokens"),
        ({"parameters": {"binary_data_size": 3}}, "binary_data_size"),
    ],
)
def test_other_bytes_are_refused(call: Caller, change: dict[str, object], said: str) -> None:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"], **change}
    answer = call.infer("reader", {"inputs": [tensor]})
    assert answer.status == 400
    assert said in answer.document["error"]


def test_protocol_v1_takes_strings(model: lanner.Model, call: Caller) -> None:
    for document in (
        {"instances": ["not bad", "film"]},
        {"instances": [{"text": "not bad"}, {"text": "film"}]},
        {"inputs": {"text": ["not bad", "film"]}},
    ):
        answer = call("POST", "/v1/models/reader:predict", json.dumps(document).encode(), JSON)
        assert answer.status == 200
        assert next(iter(answer.document.values())) == [label(model, "not bad"), label(model, "film")]


def test_the_page_takes_a_text(model: lanner.Model, call: Caller) -> None:
    assert call.get("/ui/models").document["models"][0]["text"] == {"length": 8}
    answer = call("POST", "/ui/predict?model=reader&text=true", b"[1, 2]", OCTETS)
    assert answer.status == 200
    assert answer.document["prediction"]["label"] == label(model, "[1, 2]")
    assert call("POST", "/ui/predict?model=reader&text=true", b"\xff", OCTETS).status == 400
