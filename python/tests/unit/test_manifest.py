"""A model's public half: what no compiler wrote is refused in one sentence."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from lanner.errors import ModelError
from lanner.manifest import Manifest

FEATURES = {"axis": 0, "exponents": [0, 1], "centres": [0, 5], "preprocessing": {"factors": [1.0, 2], "terms": [0, 0]}}
DOCUMENT: dict[str, Any] = {
    "name": "net",
    "mode": "gazelle",
    "output": "label",
    "commitment": "00",
    "plan": {},
    "network": {
        "input": {
            "name": "x",
            "shape": [2],
            "scale": {"grid": 0},
            "low": -4,
            "high": 4,
            "features": FEATURES,
            "modulus": 114_689,
        },
    },
}
STATED = {"low": -1.0, "high": 1.0, "steps": 255}
PLAIN = {"name": "x", "shape": [2], "scale": {"stated": STATED}, "low": -128, "high": 128, "modulus": 114_689}
IMAGE = {"channels": 1, "size": [8, 8]}


def text_with(path: str, value: object) -> str:
    """The document with one member, named by its place in the input, replaced."""
    document = copy.deepcopy(DOCUMENT)
    *way, last = path.split(".")
    place = document["network"]["input"]
    for name in way:
        place = place[name]
    place[last] = value
    return json.dumps(document)


def test_one_that_was_sent_to_another_process_draws_the_same_line() -> None:
    entry = Manifest.parse(json.dumps(DOCUMENT)).input
    sent = pickle.loads(pickle.dumps(entry))  # noqa: S301 - what this test wrote
    assert sent == entry
    for x, place in (([[0, 9.2]], None), ([[0, 9.8]], (0, 1)), ([[0, 5], [-4.7, 5]], (1, 0))):
        values = np.array(x, np.float32)
        assert sent.outside(values) == entry.outside(values) == place


def with_input(change: dict[str, Any]) -> str:
    """The document with a stated range, in which something is another."""
    return json.dumps({**DOCUMENT, "network": {"input": {**PLAIN, **change}}})


def test_a_sound_one_is_read() -> None:
    features = Manifest.parse(json.dumps(DOCUMENT)).input.features
    assert features is not None
    assert (features.low, features.high, features.unit) == ((-4.0, 1.0), (4.0, 9.0), (1.0, 1.0))
    assert Manifest.parse(with_input({})).input.low == -1.0


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("scale", {"grid": 10**6}, "a scale of 2^(1000000/8)"),
        ("scale", {"grid": 0.5}, "`0.5`, expected i32"),
        ("scale", [], "expected value"),
        ("scale", {"stated": STATED}, "its scale or its range"),
        ("low", float("-inf"), "invalid number"),
        ("low", 1, "its scale or its range"),
        ("high", 10**30, "i64"),
        ("high", 10**6, "its scale or its range"),
        ("shape", [], "empty or too large"),
        ("shape", [0], "shape"),
        ("shape", [1 << 20, 1 << 20], "empty or too large"),
        ("shape", [2] + [1] * 8, "empty or too large"),
        ("features.axis", 9, "`axis`"),
        ("features.axis", -1, "`-1`, expected usize"),
        ("features.exponents", [5000, 0], "`exponents`"),
        ("features.exponents", [0], "each of 2"),
        ("features.centres", [0, 10**9], "`centres`"),
        ("features.preprocessing.factors", [0, 1], "`factors`"),
        ("features.preprocessing.factors", [1e31, 1], "`factors`"),
        ("features.preprocessing.factors", [float("nan"), 1], "expected value"),
        ("features.preprocessing.terms", [1e31, 1], "`terms`"),
        ("features.preprocessing.terms", [float("inf"), 1], "expected value"),
    ],
)
def test_what_no_compiler_writes_is_refused(path: str, value: object, named: str) -> None:
    with pytest.raises(ModelError, match="not a model's public half") as caught:
        Manifest.parse(text_with(path, value), "net.public")
    assert named in str(caught.value)
    assert str(caught.value).startswith("net.public: ")


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"steps": 0}, "range is not usable"),
        ({"high": float("nan")}, "expected value"),
        ({"low": 0.5}, "range is not usable"),
        ({"high": 2.0}, "range is not usable"),
    ],
)
def test_a_stated_range_that_is_none_is_refused(stated: dict[str, float], named: str) -> None:
    with pytest.raises(ModelError, match="not a model's public half") as caught:
        Manifest.parse(with_input({"scale": {"stated": {**STATED, **stated}}}))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [("[" * 200_000, "deeply"), ("{}", "'name'"), ("[]", "get"), ("not json", "Expecting"), ("9" * 10_000, "digits")],
)
def test_other_texts_are_refused(text: str, named: str) -> None:
    with pytest.raises(ModelError, match="not a model's public half") as caught:
        Manifest.parse(text)
    assert named in str(caught.value)


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(ModelError, match="image description"):
        Manifest.parse(json.dumps({**DOCUMENT, "image": IMAGE}))
