"""A title and a note of the model's owner: in the public half, and wherever people read results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.callers import Caller
from helpers.models import tiny_samples
from helpers.processes import HUNG, gateway, lanner, serving
from lanner import load
from lanner.manifest import Manifest

TITLE, NOTE = "Ants and bees", "Not for use in kitchens <b>"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory, tiny_onnx: Path) -> Path:
    """`tiny_classifier` with a title and a note, compiled by the command."""
    folder = tmp_path_factory.mktemp("described")
    np.save(folder / "x.npy", tiny_samples())
    path = folder / "tiny.lanner"
    asked = ("compile", tiny_onnx, "-o", path, "--calibration", folder / "x.npy", "--title", TITLE, "--note", NOTE)
    result = lanner(*asked, "--output", "top-k", "--k", 2)
    assert result.code == 0, result.errors
    return path


def printed(*arguments: object) -> str:
    """What a command prints for people."""
    command = [sys.executable, "-m", "lanner", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=True).stdout


def test_inspect_and_the_exported_half_have_them(described: Path, tmp_path: Path) -> None:
    manifest = lanner("inspect", described).document["manifest"]
    assert (manifest["title"], manifest["note"], manifest["format_version"]) == (TITLE, NOTE, 7)
    shown = printed("inspect", described)
    assert TITLE in shown
    assert NOTE in shown
    assert lanner("export", described, "-o", tmp_path / "tiny.public").code == 0
    read = Manifest.read(tmp_path / "tiny.public")
    assert (read.title, read.note) == (TITLE, NOTE)
    assert (load(described).manifest.title, load(described).commitment) == (TITLE, read.commitment)


def test_a_public_half_of_another_version_names_both(described: Path, tmp_path: Path) -> None:
    document = dict(load(described).manifest.document)
    (tmp_path / "other.public").write_text(json.dumps({**document, "format_version": 4}))
    with pytest.raises(library.ModelError, match="format version 4; this build reads 7"):
        Manifest.read(tmp_path / "other.public")


def test_clients_get_them_beside_results(described: Path, tmp_path: Path, samples_file: Path) -> None:
    with serving(tmp_path / "state", described) as server:
        document = lanner("predict", server.address, samples_file, *server.pin).document
        lines = printed("predict", server.address, samples_file, *server.pin).splitlines()
        with library.Client(server.address, pin=server.document["fingerprint"]) as client:
            assert (client.manifest.title, client.manifest.note) == (TITLE, NOTE)
        with gateway(tmp_path / "gate", server.address, *server.pin) as gate:
            (model,) = Caller(gate.document["url"])("GET", "/ui/models").document["models"]
    assert (document["title"], document["note"]) == (TITLE, NOTE)
    assert lines[:2] == [TITLE, NOTE]
    assert lines[2].split()[0] == "input"
    assert (model["title"], model["note"]) == (TITLE, NOTE)


def test_models_without_them_are_as_they_were(tiny_label: Path, tmp_path: Path, samples_file: Path) -> None:
    manifest = load(tiny_label).manifest
    assert "title" not in manifest.document
    assert "note" not in manifest.document
    assert (manifest.title, manifest.note, manifest.document["format_version"]) == (None, None, 4)
    with serving(tmp_path / "state", tiny_label) as server:
        assert set(lanner("predict", server.address, samples_file, *server.pin).document) == {"predictions"}


@pytest.mark.parametrize(
    ("option", "text"), [("--title", ""), ("--title", "x" * 81), ("--note", "a\nb"), ("--note", "x" * 501)]
)
def test_what_cannot_be_shown_exits_2(tiny_onnx: Path, tmp_path: Path, option: str, text: str) -> None:
    np.save(tmp_path / "x.npy", tiny_samples())
    asked = ("compile", tiny_onnx, "-o", tmp_path / "t.lanner", "--calibration", tmp_path / "x.npy", option, text)
    result = lanner(*asked)
    assert result.code == 2
    error = result.document["error"]
    assert option.removeprefix("--") in error["what"]
    assert "on one line" in error["fix"]
