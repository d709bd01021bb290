"""Tables of predictions: what says nothing is left out."""

from __future__ import annotations

import pytest

from lanner.cli.output import Output
from lanner.cli.predict import show_predictions
from lanner.prediction import Phase, Prediction

PHASES = {name: Phase(0.1, 10, 20, 1) for name in ("setup", "offline", "online")}


def shown(places: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    predictions = [Prediction(4, None, None, PHASES, [], "auto", "digits", source, index) for source, index in places]
    show_predictions(predictions, Output(json=False))
    lines = capsys.readouterr().out.splitlines()
    return [line.split() for line in lines[: len(places) + 1]]


def test_files_of_one_sample_have_no_index(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown([("a.png", 0), ("b.png", 0)], capsys) == [["input", "label"], ["a.png", "4"], ["b.png", "4"]]


def test_samples_of_one_file_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    expected = [["input", "index", "label"], ["x.npy", "0", "4"], ["x.npy", "1", "4"], ["y.npy", "0", "4"]]
    assert shown([("x.npy", 0), ("x.npy", 1), ("y.npy", 0)], capsys) == expected
