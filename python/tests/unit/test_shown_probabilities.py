"""Probabilities and names of classes in tables of predictions."""

from __future__ import annotations

from typing import Any

import pytest

from lanner.cli.output import Output
from lanner.cli.predict import show_predictions
from lanner.prediction import Phase, Prediction

PHASES = {name: Phase(0.1, 10, 20, 1) for name in ("setup", "offline", "online")}


def shown(capsys: pytest.CaptureFixture[str], *members: dict[str, Any]) -> list[str]:
    """The lines of a table of predictions with these members."""
    document: dict[str, Any] = {
        "mode": "auto",
        "model": "net",
        "layers": [],
        "phases": {name: dict.fromkeys(("seconds", "bytes_sent", "bytes_received", "rounds"), 1) for name in PHASES},
    }
    show_predictions([Prediction.from_document({**document, **each}) for each in members], Output(json=False))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()[: len(members) + 1]]


@pytest.mark.parametrize(
    ("probability", "digits", "text"),
    [(0.99, 2, "0.99"), (1.0, 2, "1.00"), (0.0, 2, "0.00"), (0.9, 1, "0.9"), (0.5, 6, "0.500000"), (1.0, None, "1.00")],
)
def test_probabilities_have_all_their_digits(
    capsys: pytest.CaptureFixture[str], probability: float, digits: int | None, text: str
) -> None:
    lines = shown(capsys, {"label": 1, "probability": probability, "digits": digits})
    assert [line.split() for line in lines] == [["label", "probability"], ["1", text]]


@pytest.mark.parametrize(
    ("members", "column", "text"),
    [
        ({"top": [2, 0], "class_names": ["cat", "ant"]}, "best", "2 cat, 0 ant"),
        ({"top": [2, 0], "class_names": ["2", "0"]}, "best", "2, 0"),
        ({"top": [2, 0], "class_names": None}, "best", "2 0"),
        ({"logits": [-1.5, 3.0], "class_names": ["ant", "black bee"]}, "logits", "ant -1.5, black bee 3"),
        ({"logits": [-1.5, 3.0], "class_names": None}, "logits", "-1.5 3"),
        ({"labels": [0, 2], "class_names": ["ant", "cat"]}, "classes", "ant cat"),
    ],
)
def test_names_stand_beside_indices_and_scores(
    capsys: pytest.CaptureFixture[str], members: dict[str, Any], column: str, text: str
) -> None:
    header, row = shown(capsys, members)
    assert header.endswith(column)
    assert row.endswith(text)
