"""Texts as inputs: tokens as the library of Hugging Face gives them, of one length, and networks that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import lanner
from helpers.several import expected
from helpers.texts import SENTENCES, WORDS, reader, save_tokenizer, tokenizer_of
from lanner import _native
from lanner.cli import main
from lanner.errors import InputError, MisuseError, ModelError, native_errors
from lanner.manifest import Manifest
from lanner.texts import TextChoice, TextDescription, describe_texts, read_lines, texts_of

NAMES = ("input_ids", "attention_mask", "token_type_ids")
OPTIONS: dict[str, Any] = {"mode": "cheetah", "output": "logits", "precision": 11, "name": "reader"}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def model(tokenizer: Path) -> lanner.Model:
    return lanner.compile(reader(), SENTENCES * 4, text=f"{tokenizer},length=8", public_embeddings="words", **OPTIONS)


def described(tokenizer: Path, length: int = 8) -> TextDescription:
    return describe_texts(TextChoice(tokenizer, length), NAMES)


def test_a_text_is_tokens_mask_and_types(tokenizer: Path) -> None:
    arrays = described(tokenizer).arrays(["Not the FILMS!", ""])
    assert arrays["input_ids"].tolist() == [[2, 10, 11, 8, 9, 1, 3, 0], [2, 3, 0, 0, 0, 0, 0, 0]]
    assert arrays["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0, 0, 0]]
    assert not arrays["token_type_ids"].any()


def test_special_tokens_that_are_typed_are_text(tokenizer: Path) -> None:
    ids = described(tokenizer).arrays(["a [MASK]"])["input_ids"][0].tolist()
    assert ids == [2, 5, 12, 14, 13, 3, 0, 0]


def test_tokens_are_those_of_the_original_library(tokenizer: Path) -> None:
    library = pytest.importorskip("tokenizers")
    original = library.Tokenizer.from_file(str(tokenizer))
    original.encode_special_tokens = True
    original.enable_padding(length=40)
    original.enable_truncation(40)
    texts = ["", "a\x00b\x07", "the 日本 films", "\U0001f600 good", "é" * 300, "[CLS] a </s>", "a\u200bgood", " \t\n "]
    found = described(tokenizer, 40).arrays(texts)
    for index, text in enumerate(texts):
        encoded = original.encode(text)
        assert found["input_ids"][index].tolist() == encoded.ids
        assert found["attention_mask"][index].tolist() == encoded.attention_mask


def test_scores_are_those_of_the_network(model: lanner.Model, tokenizer: Path) -> None:
    texts = ["the good film", "bad", "not a bad film"]
    ids = {name: values.astype(np.int64) for name, values in described(tokenizer).arrays(texts).items()}
    exact = expected(reader(), ids, "logits")
    assert np.allclose(model.predict_float(texts), exact, atol=1e-5)
    assert np.abs(model.predict_fixed(texts) - exact).max() < 0.02 * np.ptp(exact)
    prediction = lanner.run(model, texts[0])
    assert prediction.integers == model.predict_integers(texts[:1])[0][0].tolist()
    assert np.array_equal(model.predict_float(np.array(texts)), model.predict_float(tuple(texts)))


def test_a_saved_model_reads_texts(model: lanner.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "reader.lanner")
    again = lanner.load(tmp_path / "reader.lanner", commitment=model.commitment)
    assert np.array_equal(again.predict_fixed("a film"), model.predict_fixed("a film"))
    document = json.loads(json.dumps(dict(again.manifest.document)))
    assert document["format_version"] == 6
    assert document["text"]["length"] == 8
    again.export_public(tmp_path / "public")
    assert Manifest.read(tmp_path / "public").input.text == model.manifest.input.text


@pytest.mark.parametrize("change", ["length", "pad", "ids", "mask"])
def test_a_public_half_with_another_description_is_refused(model: lanner.Model, change: str) -> None:
    text = dict(model.manifest.document["text"])
    text[change] = {"length": 9, "pad": 14, "ids": "token_type_ids", "mask": "none"}[change]
    document = {**model.manifest.document, "text": text}
    # What it says is part of the commitment.
    with pytest.raises(ModelError, match="commitment"), native_errors():
        _native.estimate(json.dumps(document))


def test_a_text_that_is_too_long_is_refused_or_cut(model: lanner.Model) -> None:
    long = "film " * 7
    with pytest.raises(InputError, match="more than the 8 tokens that the model reads") as refused:
        model.predict_fixed(long)
    assert refused.value.exit_code == 6
    with pytest.raises(InputError, match="input, text 2"):
        model.predict_fixed(["a", long])
    cutting = model.manifest.cutting().input.text
    assert cutting is not None
    with pytest.warns(lanner.TextWarning, match="1 of 2 texts were cut to the 8 tokens"):
        arrays = cutting.arrays(["a", long])
    assert arrays["input_ids"][1].tolist() == [2, 8, 8, 8, 8, 8, 8, 3]


def test_tokens_without_a_row_are_refused(tokenizer: Path) -> None:
    with pytest.raises(ModelError, match=r"tokens up to 14, and input_ids is looked up in 14 rows"):
        lanner.compile(reader(len(WORDS) - 1), SENTENCES, text=tokenizer, **OPTIONS)


def test_inputs_that_the_network_does_not_read_are_not_made(tokenizer: Path) -> None:
    proto = reader()
    del proto.graph.input[2]
    gather = next(each for each in proto.graph.node if each.name == "kind")
    gather.op_type, gather.input[:] = "Identity", ["kinds_of_all"]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "kinds_of_all"))
    made = lanner.compile(proto, SENTENCES, text=f"{tokenizer},length=6", **OPTIONS)
    assert made.manifest.input.text is not None
    assert made.manifest.input.text.names == ["input_ids", "attention_mask"]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (",length=8", "there is no tokenizer"),
        ("t.json,length=x", "no number of tokens"),
        ("t.json,width=8", "no choice"),
        ("t.json,length=8,length=9", "no choice"),
        ("none.json", "no such file"),
        ("{tokenizer},length=2", "no room for a text"),
        ("{tokenizer},pad=none", "no token"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(tokenizer: Path, written: str, reason: str) -> None:
    with pytest.raises((MisuseError, ModelError), match=reason):
        lanner.compile(reader(), SENTENCES, text=written.format(tokenizer=tokenizer), **OPTIONS)


def test_a_tokenizer_without_what_fills_up_needs_a_name(tmp_path: Path) -> None:
    words = ("none", *WORDS[1:])
    path = tmp_path / "t.json"
    path.write_text(json.dumps(tokenizer_of(words)))
    with pytest.raises(MisuseError, match="no token to fill texts up with"):
        describe_texts(str(path), NAMES)
    assert describe_texts(f"{path},pad=[MASK]", NAMES).told["pad"] == 4


@pytest.mark.parametrize("inputs", [("input_ids", "position_ids_of", "x"), ("attention_mask",), ("ids", "input_ids")])
def test_other_inputs_are_no_texts(tokenizer: Path, inputs: tuple[str, ...]) -> None:
    with pytest.raises(MisuseError):
        describe_texts(tokenizer, inputs)


def test_files_of_texts_have_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_bytes("a film\r\n\nthe\u2028end\n".encode())
    assert read_lines(path) == ("a film", "", "the\u2028end")
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_lines(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="no texts"):
        read_lines(path)


def test_what_is_a_text() -> None:
    assert texts_of("a") == ["a"]
    assert texts_of(["a", "b"]) == ["a", "b"]
    assert texts_of([]) is None
    assert texts_of(["a", 1]) is None
    assert texts_of(np.zeros(3)) is None


def test_commands_read_files_of_texts(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(reader(), tmp_path / "reader.onnx")
    (tmp_path / "calibration.txt").write_text("\n".join(SENTENCES * 4))
    (tmp_path / "texts.txt").write_text("a good film\nnot a bad film\n")
    target, flags = tmp_path / "reader.lanner", ["--mode", "cheetah", "--precision", "11"]
    text = ["--text", f"{tokenizer},length=8"]
    compiling = ["compile", str(tmp_path / "reader.onnx"), "-o", str(target)]
    assert main([*compiling, "--calibration", str(tmp_path / "calibration.txt"), *text, *flags]) == 0
    capsys.readouterr()
    assert main(["inspect", str(target)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "the client reads them in small letters by WordPiece of 15 tokens, and makes each 8 tokens long" in told
    assert "not how long they are" in told
    assert main(["debug", str(target), str(tmp_path / "texts.txt"), "--index", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["departures"] == []
    model = lanner.load(target)
    labels = model.predict_float(["a good film", "not a bad film"]).argmax(1)
    (tmp_path / "true.txt").write_text(f"{labels[0]}\ta good film\n{labels[1]}\tnot a bad film\n")
    assert main(["evaluate", str(target), "--data", str(tmp_path / "true.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["float"]["accuracy"] == 1
    assert main([*compiling, "--calibration", str(tmp_path / "calibration.txt"), *flags]) == 2
    assert "give --text" in capsys.readouterr().err
