"""Predictions and the manifest keep the documented JSON form."""

from dataclasses import replace
from pathlib import Path

import pytest

from lanner.errors import ModelError
from lanner.manifest import Manifest
from lanner.prediction import Phase, Prediction

COST = {"seconds": 0.5, "bytes_sent": 10, "bytes_received": 20, "rounds": 3}
DOCUMENT = {
    "input": "a.png",
    "index": 0,
    "label": 7,
    "class_name": "7",
    "labels": None,
    "tokens": None,
    "class_names": None,
    "probability": None,
    "digits": None,
    "top": None,
    "logits": None,
    "values": None,
    "saturated": None,
    "shape": None,
    "mode": "gazelle",
    "model": "mnist_d",
    "phases": {"setup": COST, "offline": COST, "online": COST},
    "layers": [
        {
            "name": "conv1",
            "protocol": "gazelle.conv",
            "phase": "online",
            "seconds": 0.1,
            "computing": 0.05,
            "bytes": 5,
            "bytes_sent": 2,
            "rounds": 1,
        }
    ],
}


def test_document_survives_the_types() -> None:
    assert Prediction.from_document(DOCUMENT).document() == DOCUMENT
    assert list(Prediction.from_document(DOCUMENT).document()) == list(DOCUMENT)


def test_a_prediction_is_short_in_a_line_and_a_table_in_a_notebook() -> None:
    prediction = replace(Prediction.from_document(DOCUMENT), class_name="<7>", logits=[float(i) for i in range(1000)])
    text, html = repr(prediction), prediction._repr_html_()
    assert text.startswith("Prediction(label=7, class_name='<7>', logits='[0, 1, 2, 3, 4, 5, ... 1000 numbers]'; mode")
    assert len(text) < 250
    assert "<td>&lt;7&gt;</td>" in html
    assert "<th>probability" not in html


@pytest.mark.parametrize(
    ("probability", "digits", "shown"), [(1.0, 2, "1.00"), (0.5, 1, "0.5"), (0.999, 3, "0.999"), (1.0, None, "1.00")]
)
def test_a_probability_has_all_its_digits(probability: float, digits: int | None, shown: str) -> None:
    prediction = replace(Prediction.from_document(DOCUMENT), probability=probability, digits=digits)
    assert f"probability={shown};" in repr(prediction)
    assert f"<td>{shown}</td>" in prediction._repr_html_()
    assert prediction.document()["probability"] == probability


def test_long_lists_of_names_are_cut_short() -> None:
    names = [f"class {i}" for i in range(1000)]
    text = repr(replace(Prediction.from_document(DOCUMENT), class_names=names))
    assert "class_names='[class 0, class 1, class 2, class 3, class 4, class 5, ... 1000 names]'" in text


def test_phase_sums_both_directions() -> None:
    assert Phase(**COST).bytes == 30  # type: ignore[arg-type]


def test_prediction_is_placed_at_its_source() -> None:
    placed = Prediction.from_document(DOCUMENT).placed("b.npy", 4)
    assert (placed.input, placed.index, placed.label) == ("b.npy", 4, 7)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "net"}', "null"])
def test_what_is_no_manifest_is_a_model_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.public"
    path.write_text(text)
    with pytest.raises(ModelError, match=r"net\.public"):
        Manifest.read(path)
    with pytest.raises(ModelError, match="absent"):
        Manifest.read(tmp_path / "absent")
