"""Encoded weights that several servers map: the same results, made once; damaged ones refused with a sentence."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import lanner as library
from helpers.models import make_model, random_weights, tiny_classifier, tiny_samples
from helpers.processes import Serving, lanner, serving

MODES = ("gazelle", "falcon", "cheetah", "tabula")


def compiled(folder: Path, mode: str) -> Path:
    """A model in a mode, which tells its logits."""
    path = folder / f"{mode}.lanner"
    library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode=mode, output="logits").save(path)
    return path


def logits(server: Serving, samples: Path) -> list[list[float]]:
    """What a server's model makes of samples."""
    finished = lanner("predict", server.address, samples, *server.pin)
    assert finished.code == 0, finished.errors
    return [prediction["logits"] for prediction in finished.document["predictions"]]


def weights(directory: Path) -> Path:
    """The one file of weights that is there."""
    (path,) = directory.glob("*.weights")
    return path


@pytest.mark.parametrize("mode", MODES)
def test_two_servers_with_one_file_predict_what_one_with_its_own_weights_does(mode: str, tmp_path: Path) -> None:
    model, shared, samples = compiled(tmp_path, mode), tmp_path / "shared", tmp_path / "x.npy"
    np.save(samples, tiny_samples()[:2])
    with serving(tmp_path / "own", model) as own:
        expected = logits(own, samples)
    options = ("--share-weights", shared)
    with serving(tmp_path / "first", model, *options) as first:
        file = weights(shared)
        written = file.stat()
        with serving(tmp_path / "second", model, *options) as second:
            assert logits(first, samples) == logits(second, samples) == expected
    assert weights(shared) == file
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (written.st_mtime_ns, written.st_ino)
    assert stat.S_IMODE(written.st_mode) == 0o600
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700


def test_what_cannot_be_shared_is_said_in_a_sentence(tmp_path: Path) -> None:
    model, shared = compiled(tmp_path, "gazelle"), tmp_path / "shared"
    words = ("serve", model, "--listen", "127.0.0.1:0", "--state-dir", tmp_path / "state", "--share-weights", shared)
    with serving(tmp_path / "state", model, "--share-weights", shared):
        pass
    file = weights(shared)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    damaged = lanner(*words)
    assert (damaged.code, damaged.document["error"]["kind"]) == (3, "model")
    assert "damaged" in damaged.errors
    assert "remove it" in damaged.errors
    file.unlink()
    with serving(tmp_path / "state", model, "--share-weights", shared):
        assert weights(shared) == file
    file.chmod(0o644)
    assert lanner(*words).code == 2
    shared.chmod(0o755)
    readable = lanner(*words)
    assert readable.code == 2
    assert "chmod 700" in readable.errors


@pytest.mark.slow
def test_a_library_server_shares_what_it_multiplies_ciphertexts_with(tmp_path: Path) -> None:
    tensors = random_weights(5, conv=(3, 1, 3, 3), fc=(4, 108))
    nodes = [
        helper.make_node("Conv", ["x", "conv"], ["a"], kernel_shape=[3, 3]),
        helper.make_node("Mul", ["a", "a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "fc"], ["y"], transB=1),
    ]
    network, x = make_model(nodes, ["n", 1, 8, 8], tensors), tiny_samples()
    model = library.compile(network, x, name="squares", mode="spectral", output="logits")

    def predicted(name: str, share_weights: Path | None) -> list[int] | None:
        server = library.Server(
            model,
            "127.0.0.1:0",
            state_dir=tmp_path / name,
            share_weights=share_weights,
            insecure_plaintext=True,
        )
        with server, library.Client(server.address, insecure_plaintext=True) as client:
            return client.predict(x[0]).integers

    shared = tmp_path / "shared"
    results = [predicted("own", None), predicted("first", shared), predicted("second", shared)]
    assert results[0] is not None
    assert results[0] == results[1] == results[2]
    assert weights(shared).stat().st_size > 100_000
