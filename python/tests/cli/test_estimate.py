"""``lanner estimate`` as people and programs call it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanner as library
from helpers.models import save_model, tiny_classifier, tiny_samples
from helpers.processes import lanner, serving
from lanner.network import measure_network, read_network
from lanner.trust import Trust


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    return save_model(tmp_path / "tiny.onnx", tiny_classifier())


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", tiny_samples())
    return tmp_path / "x.npy"


def test_a_compiled_model_and_its_public_half_are_estimated_alike(tmp_path: Path) -> None:
    model = library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode="gazelle")
    model.save(tmp_path / "tiny.lanner")
    model.export_public(tmp_path / "tiny.public")
    found = [lanner("estimate", tmp_path / name, "--network", "lan") for name in ("tiny.lanner", "tiny.public")]
    assert [one.code for one in found] == [0, 0]
    document = found[0].document
    assert found[1].document == document
    assert (document["mode"], document["network"]) == ("gazelle", "lan")
    for layer in document["layers"]:
        assert {"name", "protocol", "reason", "seconds", "bytes", "rounds"} <= layer.keys()
    for phase in ("offline", "online"):
        assert document["phases"][phase]["bytes"] == sum(
            layer["phases"][phase]["bytes"] for layer in document["layers"]
        )


def test_the_network_to_a_server_is_measured(tmp_path: Path, onnx_file: Path, samples: Path) -> None:
    model = library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode="cheetah")
    model.save(tmp_path / "tiny.lanner")
    with serving(tmp_path / "state", tmp_path / "tiny.lanner") as server:
        # As over a network whose figures are known.
        with read_network("wan").between(server.address) as address:
            measured = ("--network", f"measure:{address}")
            found = lanner("estimate", tmp_path / "tiny.lanner", *measured, *server.pin)
            stranger = lanner("estimate", tmp_path / "tiny.lanner", *measured, "--pin", f"sha256:{'0' * 64}")
            untrusted = lanner("estimate", tmp_path / "tiny.lanner", *measured)
            compiled = lanner("estimate", onnx_file, "--calibration", samples, *measured, *server.pin)
        network = measure_network(server.address, Trust(pin=server.pin[1]), 10.0)
    assert found.code == 0, found.errors
    over_wan = lanner("estimate", tmp_path / "tiny.lanner", "--network", "wan").document["phases"]["online"]
    online = found.document["phases"]["online"]
    assert (online["bytes"], online["rounds"]) == (over_wan["bytes"], over_wan["rounds"])
    assert over_wan["seconds"] < online["seconds"] < 1.5 * over_wan["seconds"]
    assert (stranger.code, untrusted.code, compiled.code) == (5, 2, 0)
    assert network.profile is not None
    assert network.profile[1] < 0.02


def test_whom_to_trust_says_nothing_where_no_server_is_asked(tmp_path: Path) -> None:
    library.compile(tiny_classifier(), tiny_samples(), mode="gazelle").save(tmp_path / "tiny.lanner")
    found = lanner("estimate", tmp_path / "tiny.lanner", "--network", "lan", "--insecure-plaintext")
    assert found.code == 2
    assert "measure:HOST" in found.errors


def test_all_modes_of_a_file_are_compared(onnx_file: Path, samples: Path) -> None:
    found = lanner("estimate", onnx_file, "--mode", "all", "--calibration", samples)
    assert found.code == 0, found.errors
    assert {*found.document["modes"], *found.document["refused"]} == {
        "gazelle",
        "falcon",
        "cheetah",
        "tabula",
        "spectral",
        "auto",
        "hardened",
    }
    assert "spectral" in found.document["refused"]


def test_one_mode_of_a_file_is_estimated(onnx_file: Path, samples: Path) -> None:
    found = lanner("estimate", onnx_file, "--mode", "falcon", "--calibration", samples)
    assert (found.code, found.document["mode"]) == (0, "falcon")


def test_nothing_changes_a_compiled_model(tmp_path: Path) -> None:
    library.compile(tiny_classifier(), tiny_samples(), mode="falcon").save(tmp_path / "tiny.lanner")
    for options in (("--precision", "9"), ("--mode", "all"), ("--kept-bits", "9")):
        found = lanner("estimate", tmp_path / "tiny.lanner", *options)
        assert found.code == 2
        assert f"{options[0]} cannot change" in found.errors


def test_samples_that_do_not_fit_are_no_matter_of_the_mode(tmp_path: Path, onnx_file: Path) -> None:
    np.save(tmp_path / "odd.npy", np.zeros((4, 3), np.float32))
    found = lanner("estimate", onnx_file, "--mode", "all", "--calibration", tmp_path / "odd.npy")
    assert (found.code, found.document["error"]["kind"]) == (6, "input")


def test_what_is_missing_is_said(tmp_path: Path, onnx_file: Path, samples: Path) -> None:
    for arguments, code, what in (
        ((onnx_file,), 2, "--calibration"),
        ((tmp_path / "none.lanner",), 3, "none.lanner"),
        ((onnx_file, "--calibration", samples, "--network", "moon"), 2, "moon"),
    ):
        found = lanner("estimate", *arguments)
        assert found.code == code, found.errors
        assert what in found.errors
