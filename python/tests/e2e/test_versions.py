"""Files that other versions wrote are read, or refused in a sentence that says what to do.

What is read, what is refused, and by which numbers that is decided: docs/reference/versions.md.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.peers import HELLO, MAGIC, REFUSAL, answers_to_wire_version, of_wire_version, peer
from lanner.cli import main
from lanner.cli.build import build_facts
from lanner.manifest import Manifest
from lanner.pairings import pairings

WRITTEN = sorted(path for path in (Path(__file__).parents[1] / "data" / "versions").iterdir() if path.is_dir())

#: What is added to a version for the one before it, and for one that does not come soon.
OTHERS = (-1, 1000)

KEYS = b"lanner keys\r\n"


@dataclass(frozen=True, slots=True)
class Written:
    """What a version wrote, in a folder of the test's own.

    Attributes:
        folder: The folder.
        expected: What reading the files gives.
    """

    folder: Path
    expected: dict[str, Any]

    @property
    def is_of_this_file_version(self) -> bool:
        """Whether this build must read the model."""
        return bool(self.expected["file_version"] == build_facts()["file_version"])

    @property
    def sample(self) -> Any:  # noqa: ANN401 - an array
        """A sample."""
        return np.array(self.expected["sample"], np.float32)

    @property
    def model(self) -> Path:
        """The compiled model."""
        return self.folder / "tiny.lanner"

    @property
    def public(self) -> Path:
        """Its public half."""
        return self.folder / "tiny.public"

    @property
    def keys(self) -> Path:
        """A client's keys."""
        return self.folder / "tiny.keys"

    def read(self, reading: Callable[[], None]) -> None:
        """Read something; a version that this build does not read may be refused instead, in words."""
        try:
            reading()
        except lanner.LannerError as error:
            if self.is_of_this_file_version:
                raise
            check_sentence(error)


@pytest.fixture(params=WRITTEN, ids=lambda path: path.name)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    folder = tmp_path / "written"
    # As they were before git: for their owner alone.
    shutil.copytree(request.param, folder)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return Written(folder, json.loads((folder / "expected.json").read_text()))


def check_sentence(error: lanner.LannerError) -> None:
    """Check that an error is one sentence with what to do."""
    assert error.fix
    assert "\n" not in str(error)


def refused(reading: Callable[[], object]) -> lanner.LannerError:
    with pytest.raises(lanner.LannerError) as caught:
        reading()
    check_sentence(caught.value)
    return caught.value


def test_every_folder_says_how_it_was_made() -> None:
    for folder in WRITTEN:
        text = (folder / "README.md").read_text()
        expected = json.loads((folder / "expected.json").read_text())
        assert folder.name == expected["version"]
        assert f"version {expected['version']}: wire version {expected['wire_version']}, file version" in text
        assert "of no use" in text


def test_some_folder_has_the_present_file_version() -> None:
    versions = {json.loads((folder / "expected.json").read_text())["file_version"] for folder in WRITTEN}
    assert build_facts()["file_version"] in versions, "run tools/version_files.py for this version"


def test_model_of_a_version_is_read(written: Written) -> None:
    def reading() -> None:
        model = lanner.load(written.model)
        assert model.commitment == written.expected["commitment"]
        assert model.predict_integers(written.sample)[0].tolist() == [written.expected["integers"]]
        assert lanner.run(model, written.sample).integers == written.expected["integers"]

    written.read(reading)


def test_public_half_of_a_version_is_read(written: Written) -> None:
    def reading() -> None:
        assert Manifest.read(written.public).commitment == written.expected["commitment"]
        assert lanner.keygen(written.public, written.folder / "new.keys").keys_bytes > 0

    written.read(reading)


def test_keys_of_a_version_are_read(written: Written) -> None:
    def reading() -> None:
        with (
            lanner.Server(written.model) as server,
            lanner.Client(server.address, pin=server.fingerprint, keys=written.keys) as client,
        ):
            assert client.predict(written.sample).integers == written.expected["integers"]

    written.read(reading)


def test_material_of_a_version_is_used(written: Written) -> None:
    def reading() -> None:
        states = {party: written.folder / party for party in ("server", "client")}
        for party, state in states.items():
            (pairing,) = pairings(state)
            assert (pairing["party"], pairing["predictions"]) == (party, 1)
        with lanner.Server(written.model, state_dir=states["server"]) as server:
            assert server.fingerprint == written.expected["fingerprint"]
            with lanner.Client(server.address, pin=server.fingerprint, state_dir=states["client"]) as client:
                assert client.stock == 1
                prediction = client.predict(written.sample)
                assert client.stock == 0
        assert prediction.integers == written.expected["integers"]
        assert prediction.phases["offline"].bytes_sent == 0

    written.read(reading)


def test_kernel_times_of_a_version_are_read(written: Written) -> None:
    def reading() -> None:
        estimated = lanner.load(written.model).estimate(kernel_times=written.folder / "kernels.json")
        assert estimated.machine == "a machine of the tests"

    written.read(reading)


def with_version(path: Path, member: tuple[str, ...], change: int) -> Path:
    """The file of a model with another version in its manifest."""
    other = path.with_name("other.lanner")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == "manifest.json":
                content = json.dumps(changed(json.loads(content), member, change)).encode()
            new.writestr(entry, content)
    return other


def changed(document: dict[str, Any], member: tuple[str, ...], change: int) -> dict[str, Any]:
    """A document whose member has another number."""
    inner = document
    for name in member[:-1]:
        inner = inner[name]
    inner[member[-1]] += change
    return document


MEMBERS = [
    ("format_version",),
    ("public", "format_version"),
    ("public", "network", "format_version"),
    ("network", "format_version"),
]


@pytest.mark.parametrize("member", MEMBERS, ids="/".join)
@pytest.mark.parametrize("change", OTHERS)
def test_model_of_another_version_is_refused_in_words(written: Written, member: tuple[str, ...], change: int) -> None:
    other = with_version(written.model, member, change)
    error = refused(lambda: lanner.load(other))
    assert isinstance(error, lanner.ModelError)
    assert error.where == str(other)
    assert "compile" in error.fix
    assert len(re.findall(r"\d+", error.what)) >= 2, f"both versions are to be named: {error.what}"


@pytest.mark.parametrize("change", OTHERS)
def test_float_graph_of_another_version_is_refused_in_words(written: Written, change: int) -> None:
    other = with_version(written.model, ("graph", "format_version"), change)
    error = refused(lambda: lanner.load(other).predict_float(written.sample))
    assert "graph" in error.what
    assert "compile" in error.fix


@pytest.mark.parametrize("change", OTHERS)
def test_public_half_of_another_version_is_refused_in_words(written: Written, change: int) -> None:
    other = written.folder / "other.public"
    document = changed(json.loads(written.public.read_text()), ("format_version",), change)
    other.write_text(json.dumps(document))
    numbers = [str(document["format_version"]), str(build_facts()["file_version"])]
    assert re.findall(r"\d+", refused(lambda: Manifest.read(other)).what) == numbers
    assert re.findall(r"\d+", refused(lambda: lanner.keygen(other, written.folder / "new.keys")).what) == numbers


@pytest.mark.parametrize("change", [1, 1000])
def test_keys_of_another_version_are_refused_in_words(written: Written, change: int) -> None:
    content = written.keys.read_bytes()
    version = int.from_bytes(content[len(KEYS) : len(KEYS) + 4], "little") + change
    written.keys.write_bytes(KEYS + version.to_bytes(4, "little") + content[len(KEYS) + 4 :])
    error = refused(lambda: lanner.Client("127.0.0.1:1", pin="sha256:" + "0" * 64, keys=written.keys))
    assert re.findall(r"\d+", error.what) == [str(version), str(version - change)]
    assert "lanner keygen" in error.fix


@pytest.mark.parametrize("change", OTHERS)
def test_server_of_another_wire_version_is_refused_in_words(change: int) -> None:
    ours = build_facts()["wire_version"]
    with peer(of_wire_version(ours + change)) as address:
        error = refused(lambda: lanner.Client(address, insecure_plaintext=True))
    assert isinstance(error, lanner.PeerError)
    assert {str(ours), str(ours + change)} <= set(re.findall(r"\d+", error.what))
    assert error.fix == "use the same release on both sides"


@pytest.mark.parametrize("change", OTHERS)
def test_client_of_another_wire_version_is_told_why(tiny_label: Path, change: int) -> None:
    ours = build_facts()["wire_version"]
    with lanner.Server(tiny_label, insecure_plaintext=True) as server:
        (kind, hello), *refusals = answers_to_wire_version(server.address, ours + change)
        assert (kind, hello[: len(MAGIC) + 4]) == (HELLO, MAGIC + ours.to_bytes(4, "little"))
        assert refusals == [(REFUSAL, b"\x01")]
    (entry,), _ = server.journal()
    assert entry["cause"] == "version"
    assert entry["reason"] == f"this side speaks wire version {ours}, the peer {ours + change}"


@pytest.mark.parametrize("party", ["server", "client"])
@pytest.mark.parametrize("version", [2, 1000])
def test_store_of_another_version_is_refused_in_words(written: Written, party: str, version: int) -> None:
    state = written.folder / party
    with sqlite3.connect(state / "material" / "index") as index:
        index.execute(f"PRAGMA user_version = {version}")
    index.close()
    error = refused(lambda: pairings(state))
    assert f"version {version}" in error.what
    assert "remove the folder" in error.fix


def test_kernel_times_with_what_this_version_does_not_know_are_refused_in_words(written: Written) -> None:
    table = written.folder / "kernels.json"
    table.write_text(json.dumps({**json.loads(table.read_text()), "unit": "second"}))
    error = refused(lambda: lanner.load(written.model).estimate(kernel_times=table))
    assert "lanner doctor --calibrate" in error.fix


def test_command_line_tells_of_another_version_with_exit_code_3(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(with_version(written.model, ("format_version",), 1)), "--json"]) == 3
    assert "format version" in json.loads(capsys.readouterr().out)["error"]["what"]
