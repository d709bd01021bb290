"""Columns of words: what encoders in front of a network make of them, for the client and in the network."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lanner
from lanner.columns import Coding, Column, StatedColumn, decode, encode, width_of
from lanner.errors import InputError, MisuseError, UnsupportedOpError
from lanner.onnx.words import words_in
from lanner.tables import read_objects

ML = "ai.onnx.ml"
RNG = np.random.default_rng(11)

JOBS, CITIES = ("clerk", "doctor", "nurse"), ("A", "B")


def one_hot(name: str, words: Sequence[str], **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - of any type
    return helper.make_node("OneHotEncoder", [name], [f"{name}_hot"], domain=ML, cats_strings=list(words), **attributes)


def ordinal(name: str, words: Sequence[str], values: Sequence[int], **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401 - of any type
    return helper.make_node(
        "LabelEncoder",
        [name],
        [f"{name}_hot"],
        domain=ML,
        keys_strings=list(words),
        values_int64s=list(values),
        **attributes,
    )


def file_of(encoders: Sequence[onnx.NodeProto], widths: Sequence[int], *, fills: bool = False) -> onnx.ModelProto:
    """Words in columns `job` and `city`, a number `age`, an encoder of each word, and a layer of three scores."""
    total = sum(widths) + 1
    weight = RNG.standard_normal((total, 3)).astype(np.float32)
    weight[-1] /= 30
    age = "filled" if fills else "age"
    nodes = list(encoders)
    if fills:
        nodes.append(
            helper.make_node(
                "Imputer",
                ["age"],
                ["filled"],
                domain=ML,
                imputed_value_floats=[41.5],
                replaced_value_float=float("nan"),
            )
        )
    for node in encoders:
        shape = f"{node.output[0]}_shape"
        nodes.append(helper.make_node("Reshape", [node.output[0], shape], [f"{node.output[0]}_flat"]))
        nodes.append(helper.make_node("Cast", [f"{node.output[0]}_flat"], [f"{node.output[0]}_float"], to=1))
    parts = [f"{node.output[0]}_float" for node in encoders]
    nodes.append(helper.make_node("Scaler", [age], ["scaled"], domain=ML, offset=[40.0], scale=[0.5]))
    nodes.append(helper.make_node("Concat", [*parts, "scaled"], ["joined"], axis=1))
    nodes.append(helper.make_node("MatMul", ["joined", "weight"], ["y"]))
    shapes = [
        numpy_helper.from_array(np.array([-1, width]), f"{node.output[0]}_shape")
        for node, width in zip(encoders, widths, strict=True)
    ]
    kinds = (("age", TensorProto.FLOAT), ("job", TensorProto.STRING), ("city", TensorProto.STRING))
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, kind, ["n", 1]) for name, kind in kinds],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [*shapes, numpy_helper.from_array(weight, "weight")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def rows_of(count: int, jobs: Sequence[str] = JOBS) -> list[dict[str, object]]:
    return [
        {"age": int(RNG.integers(18, 90)), "job": str(RNG.choice(jobs)), "city": str(RNG.choice(CITIES))}
        for _ in range(count)
    ]


def scores(proto: onnx.ModelProto, rows: Sequence[dict[str, object]]) -> NDArray[np.float32]:
    """What onnxruntime makes of rows with the file as it is."""
    runtime = pytest.importorskip("onnxruntime")
    feeds = {
        "age": np.array([[row["age"]] for row in rows], np.float32),
        "job": np.array([[row["job"]] for row in rows], object),
        "city": np.array([[row["city"]] for row in rows], object),
    }
    session = runtime.InferenceSession(proto.SerializeToString())
    return np.asarray(session.run(None, feeds)[0])


@pytest.mark.parametrize(
    ("encoders", "widths", "coded"),
    [
        ((one_hot("job", JOBS), one_hot("city", CITIES, zeros=0)), (3, 2), 1 + 4 + 2),
        ((ordinal("job", JOBS, (0, 1, 2)), ordinal("city", CITIES, (0, 1))), (1, 1), 3),
        ((ordinal("job", JOBS, (0, 1, 2), default_int64=-1), ordinal("city", CITIES, (7, -2))), (1, 1), 1 + 4 + 2),
    ],
    ids=["one hot", "ordinal", "ordinal with others"],
)
def test_scores_are_those_of_the_file(encoders: Sequence[onnx.NodeProto], widths: Sequence[int], coded: int) -> None:
    proto = file_of(encoders, widths)
    model = lanner.compile(proto, rows_of(64), output="logits", public_preprocessing=True, mode="cheetah")
    assert model.manifest.input.shape == (1, coded)
    rows = rows_of(20)
    if coded == 7:
        rows += rows_of(3, ["pilot"])
    expected = scores(proto, rows)
    with pytest.warns(match="none of its categories") if coded == 7 else nullcontext():
        assert np.allclose(model.predict_float(rows), expected, atol=1e-4)
        span = np.ptp(expected)
        assert np.abs(model.predict_fixed(rows) - expected).max() < 0.01 * span
        assert lanner.run(model, rows[-1:]).label == expected[-1].argmax()


def test_words_and_their_order_follow_from_the_encoders() -> None:
    words = words_in(file_of((one_hot("job", JOBS), ordinal("city", CITIES, (0, 1))), (3, 1)))
    assert words is not None
    assert words.columns == (
        StatedColumn("age"),
        StatedColumn("job", categories=JOBS, others=True),
        StatedColumn("city", categories=CITIES),
    )
    assert words_in("no such file.onnx") is None


def test_a_word_that_an_encoder_refuses_is_refused() -> None:
    proto = file_of((one_hot("job", JOBS, zeros=0), one_hot("city", CITIES)), (3, 2))
    model = lanner.compile(proto, rows_of(40), output="logits", public_preprocessing=True, mode="cheetah")
    with pytest.raises(InputError, match="none of its categories") as caught:
        model.predict_float(rows_of(1, ["pilot"]))
    assert "pilot" not in str(caught.value)


def test_words_are_published_only_where_the_owner_says_so() -> None:
    proto = file_of((one_hot("job", JOBS), one_hot("city", CITIES)), (3, 2))
    with pytest.raises(MisuseError, match="job, city") as caught:
        lanner.compile(proto, rows_of(40), output="logits")
    assert "public_preprocessing" in str(caught.value)


def test_numbers_that_are_missing_are_filled_in_by_the_model() -> None:
    proto = file_of((one_hot("job", JOBS), one_hot("city", CITIES)), (3, 2), fills=True)
    rows: list[dict[str, object]] = [{**row, "age": None} if at % 5 == 0 else row for at, row in enumerate(rows_of(50))]
    model = lanner.compile(proto, rows, output="logits", public_preprocessing=True, mode="cheetah")
    expected = scores(proto, [{**row, "age": np.nan if row["age"] is None else row["age"]} for row in rows])
    assert np.allclose(model.predict_float(rows), expected, atol=1e-4)
    assert np.abs(model.predict_fixed(rows) - expected).max() < 0.01 * np.ptp(expected)


def test_numbers_that_are_missing_need_somebody_who_fills_them_in() -> None:
    proto = file_of((one_hot("job", JOBS), one_hot("city", CITIES)), (3, 2))
    rows: list[dict[str, object]] = [{**row, "age": None} if at % 5 == 0 else row for at, row in enumerate(rows_of(50))]
    with pytest.raises(lanner.LannerError, match="no imputer fills them in"):
        lanner.compile(proto, rows, output="logits", public_preprocessing=True)


def test_what_else_reads_words_is_refused() -> None:
    proto = file_of((one_hot("job", JOBS), one_hot("city", CITIES)), (3, 2))
    proto.graph.node[0].op_type = "StringNormalizer"
    with pytest.raises(UnsupportedOpError, match="of words, which OneHotEncoder and LabelEncoder alone may read"):
        words_in(proto)


def test_rows_are_elements_and_back() -> None:
    columns = (
        Column.plain(StatedColumn("age"), Coding.NUMBER, missing=True),
        Column.plain(StatedColumn("job", categories=JOBS, others=True), Coding.CHOICE, missing=False),
        Column.plain(StatedColumn("city", categories=CITIES), Coding.NUMBER, missing=False),
    )
    rows = np.array([[41.5, 3, 1], [np.nan, 0, 0], [-2, 2, 1]], np.float32)
    coded = encode(columns, rows)
    assert coded.shape == (3, width_of(columns)) == (3, 2 + 4 + 1)
    assert coded[1].tolist() == [0, 1, 1, 0, 0, 0, 0]
    assert np.array_equal(decode(columns, coded), rows, equal_nan=True)
    assert [Column.from_document(column.document()) for column in columns] == list(columns)


def test_numbers_are_never_taken_for_other_words() -> None:
    columns = (StatedColumn("zip", categories=("2", "1", "7")), StatedColumn("age"))
    assert read_objects([{"zip": "1", "age": 3}], columns, "x", "rows").tolist() == [[1, 3]]  # type: ignore[union-attr]
    # 7 is a word and no place, 1 the word and its own place.
    assert read_objects([{"zip": 7, "age": 3}, {"zip": 1, "age": 4}], columns, "x", "rows").tolist() == [[2, 3], [1, 4]]  # type: ignore[union-attr]
    for wrong in (2, 5, 0.5):
        with pytest.raises(InputError, match="column zip"):
            read_objects([{"zip": wrong, "age": 3}], columns, "x", "rows")


def test_a_word_that_is_missing_may_be_a_category() -> None:
    learnt, plain = StatedColumn("job", categories=("clerk", "nan")), StatedColumn("job", categories=("clerk",))
    rows = [{"job": "clerk"}, {"job": None}, {"job": float("nan")}, {"job": "nan"}]
    assert np.ravel(read_objects(rows, [learnt], "x", "rows")).tolist() == [0, 1, 1, 1]  # type: ignore[arg-type]
    missing = np.ravel(read_objects(rows, [plain], "x", "rows"))  # type: ignore[arg-type]
    assert np.isnan(missing[1:]).all()


def test_a_word_between_blanks_is_not_taken_for_it_where_the_encoder_takes_it_for_another() -> None:
    strict = StatedColumn("job", categories=("clerk", "nurse"))
    loose = StatedColumn("job", categories=("clerk", "nurse"), others=True)
    assert np.ravel(read_objects([{"job": " nurse"}], [strict], "x", "rows")).tolist() == [1]  # type: ignore[arg-type]
    assert np.ravel(read_objects([{"job": "pilot"}], [loose], "x", "rows")).tolist() == [2]  # type: ignore[arg-type]
    with pytest.raises(InputError, match="with blanks before or behind it; leave the blanks out"):
        read_objects([{"job": " nurse"}], [loose], "x", "rows")
