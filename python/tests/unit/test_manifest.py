"""A model's public half: what no compiler wrote is refused in one sentence."""

from __future__ import annotations

import copy
import json
from typing import Any

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
        "input": {"name": "x", "shape": [2], "scale": {"grid": 0}, "low": -4, "high": 4, "features": FEATURES},
    },
}
STATED = {"low": -1.0, "high": 1.0, "steps": 255}
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


def test_a_sound_one_is_read() -> None:
    features = Manifest.parse(json.dumps(DOCUMENT)).input.features
    assert features is not None
    assert (features.low, features.high, features.unit) == ((-4.0, 1.0), (4.0, 9.0), (1.0, 1.0))
    assert Manifest.parse(text_with("scale", {"stated": STATED})).input.low == -1.0


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("scale", {"grid": 10**6}, "`grid`"),
        ("scale", {"grid": 0.5}, "`grid`"),
        ("scale", {"stated": {**STATED, "steps": 0}}, "`steps`"),
        ("scale", {"stated": {**STATED, "high": float("nan")}}, "`high`"),
        ("scale", {"stated": {**STATED, "low": 0.5}}, "range"),
        ("scale", [], "indices"),
        ("low", float("-inf"), "`low`"),
        ("high", 10**30, "`high`"),
        ("shape", [], "axes"),
        ("shape", [0], "shape"),
        ("shape", [1 << 20, 1 << 20], "elements"),
        ("features.axis", 9, "`axis`"),
        ("features.axis", -1, "`axis`"),
        ("features.exponents", [5000, 0], "`exponents`"),
        ("features.exponents", [0], "each of 2"),
        ("features.centres", [0, 10**9], "`centres`"),
        ("features.preprocessing.factors", [0, 1], "`factors`"),
        ("features.preprocessing.factors", [float("nan"), 1], "`factors`"),
        ("features.preprocessing.terms", [float("inf"), 1], "`terms`"),
    ],
)
def test_what_no_compiler_writes_is_refused(path: str, value: object, named: str) -> None:
    with pytest.raises(ModelError, match="not a model's public half") as caught:
        Manifest.parse(text_with(path, value), "net.public")
    assert named in str(caught.value)
    assert str(caught.value).startswith("net.public: ")


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
