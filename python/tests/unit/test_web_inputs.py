"""What the client for browsers makes of pictures and rows is what `lanner predict` makes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lanner
from lanner.columns import Coding, Column, StatedColumn, encode
from lanner.images import ImageDescription

NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no Node to run the client's scripts")

INPUTS = Path(lanner.__file__).parent / "web" / "client" / "inputs.js"

RNG = np.random.default_rng(7)


def run(script: str, given: object) -> Any:  # noqa: ANN401 - what the script says
    """What a script says of a JSON document that it finds as `given`."""
    source = (
        f"import * as inputs from {json.dumps(INPUTS.as_uri())};\n"
        "let text = ''; for await (const part of process.stdin) text += part;\n"
        f"const given = JSON.parse(text);\n{script}"
    )
    command = [str(NODE), "--input-type=module", "-e", source]
    ran = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("resize", ["stretch", "crop", "pad"])
def test_pictures_are_the_same_to_the_last_bit(resize: str) -> None:
    cases = []
    for channels, (height, width), size, last in [
        (1, (280, 280), (28, 28), False),
        (1, (31, 57), (28, 28), False),
        (3, (64, 48), (32, 32), False),
        (3, (20, 90), (32, 16), True),
        (3, (9, 7), (24, 40), False),
        (1, (28, 28), (28, 28), False),
    ]:
        pixels = RNG.integers(0, 256, (height, width, 3), np.uint8)
        if channels == 1:
            pixels[: height // 2] //= 9
        mean, std = tuple([0.25] * channels), tuple([0.5] * channels)
        description = ImageDescription(channels, size, resize=resize, mean=mean, std=std, invert=channels == 1)
        shape = (*size, channels) if last else (channels, *size)
        expected = description.convert(Image.fromarray(pixels), shape)
        rgba = np.dstack([pixels, np.full((height, width), 255, np.uint8)])
        model = {"image": description.document(), "input": {"shape": shape}}
        cases.append((model, rgba.ravel().tolist(), height, width, expected))
    script = """console.log(JSON.stringify(given.map(([model, data, height, width]) =>
        Array.from(inputs.pictureValues(model, { data, height, width })))));"""
    made = run(script, [case[:4] for case in cases])
    for values, case in zip(made, cases, strict=True):
        assert np.array_equal(np.array(values, np.float32).reshape(case[4].shape), case[4]), case[2:4]


def test_rows_of_a_table_become_the_same_codes() -> None:
    columns = (
        Column(unit=0.5, offset=-4, high=20, missing=True),
        Column(unit=1.0, offset=0, high=3, missing=False),
        Column(unit=0.25, offset=10, high=1000, missing=False),
    )
    rows = np.array([[1.25, 2, 3.125], [np.nan, 0, 1e9], [-1e9, 3, -5], [0.75, 1, 2.625]], np.float32)
    entry = {"name": "x", "shape": [3], "choices": None, "factor": 1, "columns": [one.document() for one in columns]}
    model = {"inputs": [entry], "input": {"shape": [4]}}
    given = [[None if np.isnan(value) else float(value) for value in row] for row in rows]
    script = """console.log(JSON.stringify(given.rows.map((row) => Array.from(inputs.valuesOf(given.model, row)))));"""
    made = run(script, {"model": model, "rows": given})
    assert np.array_equal(np.array(made, np.float32), encode(columns, rows))


def test_rows_of_numbers_and_words_become_the_same_elements() -> None:
    columns = (
        Column.plain(StatedColumn("age"), Coding.NUMBER, missing=True),
        Column.plain(StatedColumn("job", categories=("a", "b", "c"), others=True), Coding.CHOICE, missing=False),
        Column.plain(StatedColumn("city", categories=("A", "B")), Coding.NUMBER, missing=False),
    )
    rows = np.array([[1.25, 2, 1], [np.nan, 3, 0]], np.float32)
    entry = {"name": "x", "shape": [3], "choices": None, "factor": 1, "columns": [one.document() for one in columns]}
    model = {"inputs": [entry], "input": {"shape": [1, 7]}}
    given: list[list[float | None]] = [[None if np.isnan(value) else float(value) for value in row] for row in rows]
    wrong: list[list[float | None]] = [[1.0, 4.0, 0.0], [1.0, 0.0, 2.0], [1.0, None, 0.0], [1.0, 0.5, 0.0]]
    script = """console.log(JSON.stringify(given.rows.map((row) => {
        try { return Array.from(inputs.valuesOf(given.model, row)); } catch (error) { return error.message; } })));"""
    made = run(script, {"model": model, "rows": [*given, *wrong]})
    assert np.array_equal(np.array(made[:2], np.float32), encode(columns, rows))
    assert made[2:] == [
        "job is none of its 4 categories",
        "city is none of its 2 categories",
        "job is empty",
        "job is none of its 4 categories",
    ]


def test_inputs_by_name_are_joined_and_checked() -> None:
    entries = [
        {"name": "a", "shape": [2], "choices": None, "factor": 0.5},
        {"name": "b", "shape": [2], "choices": 3, "factor": 1},
        {"name": "c", "shape": [1], "choices": 2, "factor": 1},
    ]
    model = {"inputs": entries, "input": {"shape": [9]}}
    given: list[dict[str, object]] = [
        {"a": [1, 2], "b": [2, 0], "c": [1]},
        {"a": [1, 2], "b": [2, 0]},
        {"a": [1], "b": [0, 0], "c": [0]},
    ]
    given += [{"a": [1, 2], "b": [3, 0], "c": [0]}, {"a": [1, 2], "b": [0, 0], "c": [0], "d": 1}]
    script = """console.log(JSON.stringify(given.given.map((one) => {
        try { return Array.from(inputs.valuesOf(given.model, one)); }
        catch (error) { return `${error.kind}: ${error.message}`; }
    })));"""
    assert run(script, {"model": model, "given": given}) == [
        [0.5, 1, 0, 0, 1, 1, 0, 0, 1],
        "input: input c is missing",
        "input: input a has 1 values and should have 2",
        "input: input b has no whole number from 0 to 2 in place 0",
        "input: input d is not an input of the model",
    ]
