"""Models whose clients may be anybody: what is predicted, who is let in, and who is not any more."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner
from helpers.authority import make_authority, openssl
from helpers.models import tiny_classifier, tiny_resnet, tiny_samples
from helpers.processes import lanner as command
from helpers.processes import serving
from lanner.errors import MisuseError, ModelError

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny_classifier` in mode hardened, with scores."""
    path = tmp_path_factory.mktemp("hardened") / "tiny.lanner"
    lanner.compile(tiny_classifier(), tiny_samples(), mode="hardened", output="logits", input_range=(0.0, 1.0)).save(
        path
    )
    return path


def test_two_processes_compute_what_the_reference_does(compiled: Path, samples_file: Path) -> None:
    model, samples = lanner.load(compiled), np.load(samples_file)["x"]
    result = command("run", compiled, samples_file)
    assert result.code == 0, result.errors
    predictions = result.document["predictions"]
    expected, overflows = model.predict_integers(samples)
    assert overflows == 0
    logits = np.array([prediction["logits"] for prediction in predictions])
    assert np.rint(logits * model.logits_scale).tolist() == expected.tolist()


def test_two_processes_compute_a_residual_network(tmp_path: Path, samples_file: Path) -> None:
    path, samples = tmp_path / "resnet.lanner", np.load(samples_file)["x"][:1]
    one = tmp_path / "one.npy"
    np.save(one, samples)
    options = {"mode": "hardened", "output": "logits", "input_range": (0.0, 1.0), "precision": "2%"}
    lanner.compile(tiny_resnet(), tiny_samples(), **options).save(path)  # type: ignore[arg-type]
    model = lanner.load(path)
    result = command("run", path, one)
    assert result.code == 0, result.errors
    expected, overflows = model.predict_integers(samples)
    assert overflows == 0
    (prediction,) = result.document["predictions"]
    assert np.rint(np.array(prediction["logits"]) * model.logits_scale).tolist() == expected[0].tolist()
    assert model.report()["unproved"] == []


def test_a_probability_is_the_reference_s() -> None:
    options: dict[str, Any] = {"mode": "hardened", "input_range": (0.0, 1.0), "precision": "1%"}
    model = lanner.compile(tiny_classifier(), tiny_samples(), output="probability", digits=3, **options)
    sample = tiny_samples()[:1]
    prediction = lanner.run(model, sample)
    (scores,) = model.predict_integers(sample)[0] / model.logits_scale
    likely = np.exp(scores - scores.max())
    assert prediction.label == scores.argmax()
    assert prediction.probability == pytest.approx(1 / likely.sum(), abs=1e-3)


def test_the_report_says_who_learns_what(compiled: Path) -> None:
    report = lanner.load(compiled).report()
    leakage = report["leakage"]
    assert "one accepted input, or nothing" in leakage["cheating"]
    assert "nobody outside it has reviewed" in leakage["assumed"]
    assert "deviates" not in leakage["not_protected"].split(";")[0]
    assert "masked uniformly" in leakage["ciphertexts"]
    assert {"name": "encryption", "bits": 128} in report["security"]
    assert report["unproved"] == []


@needs_openssl
def test_clients_show_certificates_and_one_that_cheated_is_not_served(
    tmp_path: Path, compiled: Path, samples_file: Path
) -> None:
    refused = command("serve", compiled, "--listen", "127.0.0.1:0", "--state-dir", tmp_path / "none")
    assert refused.code == 2
    assert "--client-ca" in refused.errors
    authority = make_authority(tmp_path / "ca")
    certificate, key = authority.issue("client", "clientAuth")
    state = tmp_path / "state"
    for convicted in (False, True):
        with serving(state, compiled, "--client-ca", authority.certificate, "--log-format", "json") as server:
            shown = ("--cert", certificate, "--key", key)
            result = command("predict", server.address, samples_file, *server.pin, *shown)
            assert (result.code == 0) is not convicted, result.errors
            server.process.terminate()
            server.process.wait(60)
            events = [json.loads(line) for line in server.log().splitlines()]
        (ended,) = [event for event in events if event["event"] == "session_ended"]
        assert ended.get("cause") == ("cheating" if convicted else None)
        (file,) = (state / "convictions").iterdir()
        # Its name is the hash of the public key, as openssl prints it.
        public = openssl("x509", "-in", certificate, "-noout", "-pubkey")
        info = base64.b64decode("".join(line for line in public.splitlines() if not line.startswith("-")))
        assert file.name == f"sha256-{hashlib.sha256(info).hexdigest()}"
        # As the server writes it down.
        file.write_text(f"1764270000 {ended['certificate']}\n")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch": 2}, "one by one"),
        ({"output": "logits", "reveal_saturation": True}, "no more than the result"),
    ],
)
def test_what_the_mode_does_not_take_is_refused(options: dict[str, object], match: str) -> None:
    with pytest.raises((MisuseError, ModelError), match=match):
        lanner.compile(tiny_classifier(), tiny_samples(), mode="hardened", **options)  # type: ignore[arg-type]


def test_mode_auto_is_against_cheating_clients_where_it_is_asked_to() -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples(), against="cheating-clients", input_range=(0.0, 1.0))
    assert model.manifest.mode == "hardened"
    with pytest.raises(MisuseError, match="hardened alone"):
        lanner.compile(tiny_classifier(), tiny_samples(), mode="falcon", against="cheating-clients")
    with pytest.raises(MisuseError, match="cheating-clients"):
        lanner.compile(tiny_classifier(), tiny_samples(), against="servers")


def test_a_range_that_is_not_stated_is_widened_to_bits() -> None:
    x = np.random.default_rng(3).normal(0.1, 0.7, (32, 1, 8, 8)).astype(np.float32)
    model = lanner.compile(tiny_classifier(), x, mode="hardened")
    (expected,), _ = model.predict_integers(x[:1])
    assert lanner.run(model, x[0]).label == int(expected.argmax())
