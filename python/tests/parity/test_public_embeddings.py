"""Tables of embeddings that their owner publishes: the client looks its indices up by itself."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import lanner
from helpers.models import save_model
from helpers.processes import gateway, serving
from helpers.processes import lanner as command
from helpers.several import Arrays, attention, drawn, expected, first, model_of, node, off_by, tokens
from lanner.cli import main
from lanner.embeddings import beside, write_tables
from lanner.errors import InputError, MisuseError, ModelError
from lanner.manifest import Manifest
from lanner.named import decode_inputs, encode_inputs

OPTIONS: dict[str, Any] = {"mode": "cheetah", "shape": "sequence=6", "output": "logits", "precision": 11}


def bag(*, tied: str = "", sized: bool = False) -> onnx.ModelProto:
    """A network of the mean of six words, which are rows of a table, repeated ones and ones far from others too.

    With `sized` their sum, as some exporters write it: the mean times how many there are, which the ids' shape has.
    """
    nodes = [
        node("Cast", ["ids"], "narrow", to=TensorProto.INT32),
        node("Unsqueeze", ["narrow", "one"], "wide"),
        node("Squeeze", ["wide", "one"], "plain"),
        node("Gather", ["words", "plain"], "word"),
        node("Mul", ["word", "two"], "scaled"),
        node("Relu", ["scaled"], "relu"),
        node("ReduceMean", ["relu"], "mean", axes=[1], keepdims=0),
    ]
    if sized:
        nodes += [
            node("Shape", ["ids"], "sizes"),
            node("Gather", ["sizes", "one"], "length"),
            node("Cast", ["length"], "many", to=TensorProto.FLOAT),
            node("Mul", ["mean", "many"], "total"),
        ]
    words = drawn(30, 4)
    words[7], words[8], words[9] = words[3], 9 * words[8], 0
    weights: Arrays = {"words": words, "one": np.array([1]), "two": np.float32(2).reshape(1)}
    if tied == "transposed":
        nodes += [node("Transpose", ["words"], "turned", perm=[1, 0]), node("MatMul", ["mean", "turned"], "y")]
    elif tied == "copied":
        nodes.append(node("MatMul", ["mean", "head"], "y"))
        weights["head"] = np.ascontiguousarray(words.T)
    else:
        nodes.append(node("MatMul", ["total" if sized else "mean", "head"], "y"))
        weights["head"] = drawn(4, 30)
    return model_of(nodes, {"ids": (TensorProto.INT64, ["n", 6])}, {"y": ["n", 30]}, **weights)


def ids(count: int, seed: int = 5) -> NDArray[np.int64]:
    """Of few words, so that other samples have ones that no calibration saw."""
    return np.random.default_rng(seed).integers(0, 8, (count, 6))


@pytest.fixture(scope="module")
def published() -> lanner.Model:
    return lanner.compile(bag(), ids(32), public_embeddings=True, name="bag", **{**OPTIONS, "shape": None})


def test_the_shape_of_what_is_looked_up_is_known() -> None:
    proto = bag(sized=True)
    model = lanner.compile(proto, ids(32), public_embeddings=True, **{**OPTIONS, "shape": None})
    assert off_by(model.predict_fixed(ids(20, 6)), expected(proto, {"ids": ids(20, 6)}, "y")) < 0.01


def test_values_are_those_of_the_network_that_looks_up_in_secret(published: lanner.Model) -> None:
    proto, every = bag(), np.arange(30).reshape(5, 6)
    secret = lanner.compile(proto, ids(32), **{**OPTIONS, "shape": None})
    exact = expected(proto, {"ids": ids(20, 6)}, "y")
    for model in (published, secret):
        found = model.predict_fixed(ids(20, 6))
        assert off_by(found, exact) < 0.01
        assert np.array_equal(found.argmax(1), exact.argmax(1))
        assert np.allclose(model.predict_float(ids(20, 6)), exact, atol=1e-5)
    # All words are accepted, whatever the samples had, and the reference gets the same words.
    assert off_by(published.predict_float(every), expected(proto, {"ids": every}, "y")) < 1e-5
    assert np.isfinite(published.predict_fixed(every)).all()
    assert published.manifest.input.shape == (6, 4)
    # Samples cover little of the table's range, and nothing but its rows is ever an input.
    assert published.report()["calibration"]["inputs_made"] == 0
    prediction = lanner.run(published, every[:1])
    assert prediction.integers == published.predict_integers(every[:1])[0][0].tolist()
    # There is no product with the table.
    layers = [{step["protocol"] for step in each.report()["steps"]} for each in (published, secret)]
    assert ["cheetah.conv" in each for each in layers] == [False, True]


def test_several_inputs_have_the_tables_of_each() -> None:
    proto, arrays = attention(), tokens(40)
    model = lanner.compile(proto, arrays, public_embeddings="all", **OPTIONS)
    named = model.manifest.input.named
    assert [entry.embeddings is not None and entry.embeddings.rows for entry in named] == [20, False, 2]
    others = tokens(12, seed=4)
    assert off_by(model.predict_fixed(others), expected(proto, others, "y")) < 0.02
    prediction = lanner.run(model, first(others))
    assert prediction.integers == model.predict_integers(first(others))[0][0].tolist()
    floats = {name: values.astype(np.float32) for name, values in others.items()}
    back = decode_inputs(named, encode_inputs(named, floats, "input"))
    assert all(np.array_equal(back[name], values) and back[name].dtype == np.int64 for name, values in others.items())
    one = lanner.compile(proto, arrays, public_embeddings="words", **OPTIONS)
    assert [entry.embeddings is not None for entry in one.manifest.input.named] == [True, False, False]
    assert off_by(one.predict_fixed(others), expected(proto, others, "y")) < 0.02


def test_indices_outside_the_table_are_refused(published: lanner.Model) -> None:
    for wrong in (30, -1, 0.5):
        with pytest.raises(InputError, match=r"element \[0, 2\] is no whole number from 0 to 29"):
            lanner.run(published, np.array([[0, 1, wrong, 3, 4, 5]]))
    with pytest.raises(InputError, match="none of the public table's"):
        published.predict_float(np.full((1, 6, 4), 0.25, np.float32))


@pytest.mark.parametrize(
    ("tied", "reader"), [("transposed", "Transpose turned reads words"), ("copied", "MatMul y reads head")]
)
def test_a_table_that_something_else_reads_is_published_on_confirmation_alone(tied: str, reader: str) -> None:
    with pytest.raises(ModelError, match=f"{reader}, too") as refused:
        lanner.compile(bag(tied=tied), ids(32), public_embeddings=True)
    assert 'public_embeddings="words"' in refused.value.fix
    model = lanner.compile(bag(tied=tied), ids(32), public_embeddings="words", **{**OPTIONS, "shape": None})
    assert off_by(model.predict_fixed(ids(9)), expected(bag(tied=tied), {"ids": ids(9)}, "y")) < 0.01


def test_what_is_not_looked_up_by_the_client_is_refused() -> None:
    proto = attention()
    proto.graph.node[0].input[1] = "kinds"
    for wanted, sentence in (
        ("all", "Gather word reads words, too|looked up in 2 tables"),
        ("others", "in a table others"),
    ):
        with pytest.raises((ModelError, MisuseError), match=sentence):
            lanner.compile(
                proto, {name: tokens(32)[name] for name in ("mask", "kinds")}, public_embeddings=wanted, **OPTIONS
            )
    floats = model_of([node("Relu", ["x"], "y")], {"x": (TensorProto.FLOAT, ["n", 6])}, {"y": ["n", 6]})
    with pytest.raises(ModelError, match="no input is looked up in a table that the file holds"):
        lanner.compile(floats, drawn(32, 6), public_embeddings=True)
    compared = bag()
    compared.graph.node.insert(0, node("Max", ["ids", "one"], "most"))
    compared.graph.node[1].input[0] = "most"
    with pytest.raises(ModelError, match="no input is looked up in a table"):
        lanner.compile(compared, ids(32), public_embeddings=True)
    with pytest.raises(MisuseError, match="only ids of 30 choices"):
        lanner.compile(bag(), ids(32), public_embeddings=True, input_range=(-1, 1))


def test_a_file_holds_the_table_and_the_public_half_its_hash_alone(published: lanner.Model, tmp_path: Path) -> None:
    published.save(tmp_path / "bag.lanner")
    loaded = lanner.load(tmp_path / "bag.lanner")
    assert np.array_equal(loaded.predict_integers(ids(5))[0], published.predict_integers(ids(5))[0])
    assert loaded.manifest.input.named == published.manifest.input.named
    public = tmp_path / "bag.public"
    loaded.export_public(public)
    with np.load(beside(public)) as tables:
        assert tables.files == ["ids"]
        assert np.array_equal(tables["ids"], published.published["ids"])
    manifest = Manifest.read(public)
    (entry,) = json.loads(public.read_text())["inputs"]
    assert set(entry) == {"name", "datatype", "shape", "choices", "factor", "embeddings"}
    assert set(entry["embeddings"]) == {"rows", "width", "sha256"}
    with pytest.raises(ModelError, match="and the model's is 30 x 4"):
        manifest.holding({"ids": published.published["ids"] + 1})
    with pytest.raises(MisuseError, match="public table of 30 x 4 numbers, which is not here"):
        manifest.input.named[0].encode(np.zeros((1, 6), np.float32), "input")
    report = loaded.report()
    assert report["embeddings"] == [{"input": "ids", "rows": 30, "width": 4, "weights": 120}]
    assert "embedding tables are public" in report["leakage"]["embeddings"]
    # A model without the option says nothing of it.
    plain = lanner.compile(bag(), ids(32), **{**OPTIONS, "shape": None})
    plain.export_public(tmp_path / "plain.public")
    assert "embeddings" not in (tmp_path / "plain.public").read_text()
    assert not beside(tmp_path / "plain.public").exists()


def test_a_file_with_another_table_is_refused(published: lanner.Model, tmp_path: Path) -> None:
    path, changed = tmp_path / "bag.lanner", tmp_path / "changed.lanner"
    published.save(path)
    table = published.published["ids"].tobytes()
    with zipfile.ZipFile(path) as held, zipfile.ZipFile(changed, "w") as made:
        for entry in held.infolist():
            content = held.read(entry)
            # The last row is equal to none.
            made.writestr(entry, content.replace(table, table[:-16] + table[16:32]))
    with pytest.raises(ModelError, match="the table of embeddings for ids is not the one that the model publishes"):
        lanner.load(changed)


def test_commands_take_the_table_from_beside_the_public_half(published: lanner.Model, tmp_path: Path) -> None:
    model, public, inputs = tmp_path / "bag.lanner", tmp_path / "bag.public", tmp_path / "x.npy"
    published.save(model)
    np.save(inputs, np.arange(6).reshape(1, 6))
    exported = command("export", model, "-o", public)
    assert exported.document["embeddings"] == str(beside(public))
    with serving(tmp_path / "server", model) as server:
        asking = ("predict", server.address, inputs, *server.pin)
        done = command(*asking, "--pin-model", public)
        assert done.code == 0, done.errors
        assert np.allclose(done.document["predictions"][0]["logits"], published.predict_fixed(np.arange(6))[0])
        lacking = command(*asking)
        assert (lacking.code, "public table of 30 x 4 numbers" in lacking.errors) == (2, True)
        np.save(inputs, np.full((1, 6), 30))
        assert command(*asking, "--pin-model", public).code == 6
        lacking = command("gateway", server.address, *server.pin, "--listen", "127.0.0.1:0")
        assert (lacking.code, "public table of 30 x 4 numbers" in lacking.errors) == (2, True)
        write_tables(beside(public), {"ids": published.published["ids"] + 1})
        refused = command(*asking, "--pin-model", public)
        assert (refused.code, "and the model's is 30 x 4" in refused.errors) == (3, True)


@pytest.mark.slow
def test_a_gateway_and_a_client_of_python_take_the_table(published: lanner.Model, tmp_path: Path) -> None:
    model, public = tmp_path / "bag.lanner", tmp_path / "bag.public"
    published.save(model)
    published.export_public(public)
    with serving(tmp_path / "server", model) as server:
        with gateway(tmp_path / "gate", server.address, *server.pin, "--pin-model", public) as process:
            assert process.document["models"] == ["bag"]
        with lanner.Client(server.address, pin=server.pin[1], embeddings=beside(public)) as client:
            logits = np.array(client.predict(np.arange(6)).logits)
        assert np.allclose(logits, published.predict_fixed(np.arange(6))[0])
        write_tables(beside(public), {"ids": published.published["ids"] + 1})
        with pytest.raises(ModelError, match="and the model's is 30 x 4"):
            lanner.Client(server.address, pin=server.pin[1], embeddings=beside(public))


def test_inspect_says_how_many_weights_are_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_model(tmp_path / "bag.onnx", bag())
    shown = command("inspect", path, "--public-embeddings", "all")
    assert shown.code == 0
    assert shown.document["inputs"][0]["embeddings"]["rows"] == 30
    assert main(["inspect", str(path), "--public-embeddings", "all"]) == 0
    assert "looked up by the client in a public table of 30 x 4 = 120 weights" in " ".join(
        capsys.readouterr().out.split()
    )
    path = save_model(tmp_path / "tied.onnx", bag(tied="transposed"))
    tied = command("inspect", path, "--public-embeddings", "all")
    assert tied.code == 3
    assert "Transpose turned reads words, too" in tied.document["refusals"][0]["reason"]
    assert command("inspect", path, "--public-embeddings", "words").code == 0
