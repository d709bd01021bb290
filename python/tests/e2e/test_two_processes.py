"""Server and client as two processes over TLS: results, costs, several clients and models, shutting down."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lanner as library
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import HUNG, lanner, serving
from helpers.scraping import Scraped
from helpers.times import marked
from lanner import ImageDescription, Model, load
from lanner.datasets import load_digits
from lanner.embedded import compile_embedded
from lanner.prediction import PHASES


def check_costs(document: dict[str, object]) -> None:
    """Every phase is there and something was sent in it."""
    phases = document["phases"]
    assert isinstance(phases, dict)
    assert tuple(phases) == PHASES
    for cost in phases.values():
        assert set(cost) == {"seconds", "bytes_sent", "bytes_received", "rounds"}
        assert cost["bytes_sent"] > 0
        assert cost["rounds"] > 0
    assert document["layers"]


def test_labels_equal_the_reference(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    model, x = load(tiny_label), np.load(samples_file)["x"]
    with serving(tmp_path / "state", tiny_label) as server:
        assert server.document["models"][0]["commitment"] == model.commitment
        result = lanner("predict", server.address, samples_file, *server.pin)
    assert result.code == 0, result.errors
    predictions = result.document["predictions"]
    expected = model.predict_fixed(x).argmax(1)
    assert [prediction["label"] for prediction in predictions] == expected.tolist()
    assert [prediction["index"] for prediction in predictions] == [0, 1, 2]
    for prediction in predictions:
        assert prediction["class_name"] == ["ant", "bee", "cat", "dog"][prediction["label"]]
        assert prediction["logits"] is None
        assert prediction["values"] is None
        assert prediction["model"] == "tiny_label"
        assert prediction["input"] == str(samples_file)
        check_costs(prediction)


def test_every_output_integer_equals_the_reference(tmp_path: Path, tiny_logits: Path, samples_file: Path) -> None:
    model, x = load(tiny_logits), np.load(samples_file)["x"]
    with serving(tmp_path / "state", tiny_logits) as server:
        result = lanner("predict", server.address, samples_file, *server.pin, "--pin-model", model.commitment)
    assert result.code == 0, result.errors
    integers, overflows = model.predict_integers(x)
    assert overflows == 0
    for prediction, values in zip(result.document["predictions"], integers, strict=True):
        assert np.rint(np.array(prediction["logits"]) * model.logits_scale).tolist() == values.tolist()
        assert np.allclose(prediction["logits"], values / model.logits_scale)


def test_several_models_and_clients_at_once(
    tmp_path: Path, tiny_label: Path, tiny_logits: Path, samples_file: Path
) -> None:
    with serving(tmp_path / "state", tiny_label, f"second={tiny_logits}") as server:
        assert [model["name"] for model in server.document["models"]] == ["tiny_label", "second"]

        def predict(model: str) -> list[int]:
            result = lanner("predict", server.address, samples_file, "--model", model, *server.pin)
            assert result.code == 0, result.errors
            return [
                int(np.argmax(prediction["logits"])) if model == "second" else prediction["label"]
                for prediction in result.document["predictions"]
            ]

        with ThreadPoolExecutor(4) as pool:
            labels = list(pool.map(predict, ["tiny_label", "second"] * 2))
    assert len({tuple(row) for row in labels}) == 1


def test_certificate_stays_the_same_between_runs(tmp_path: Path, tiny_label: Path) -> None:
    fingerprints = []
    for _ in range(2):
        with serving(tmp_path / "state", tiny_label) as server:
            fingerprints.append(server.document["fingerprint"])
    assert fingerprints[0] == fingerprints[1]
    with serving(tmp_path / "other", tiny_label) as server:
        assert server.document["fingerprint"] != fingerprints[0]


def test_pictures_are_prepared_by_the_client(tmp_path: Path) -> None:
    model = picture_model()
    model.save(tmp_path / "pictures.lanner")
    Image.fromarray((tiny_samples(1)[0, 0] * 255).astype(np.uint8)).resize((40, 40)).save(tmp_path / "a.png")
    with serving(tmp_path / "state", tmp_path / "pictures.lanner") as server:
        result = lanner("predict", server.address, tmp_path / "a.png", *server.pin)
    assert result.code == 0, result.errors
    description = model.manifest.image
    assert description is not None
    pixels = description.load(tmp_path / "a.png", (1, 8, 8))
    assert result.document["predictions"][0]["label"] == int(model.predict_fixed(pixels).argmax())


def picture_model() -> Model:
    return library.compile(tiny_classifier(), tiny_samples(), image=ImageDescription(1, (8, 8)), name="pictures")


def test_plaintext_needs_both_sides(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "state", tiny_label, "--insecure-plaintext") as server:
        assert server.document["fingerprint"] is None
        result = lanner("predict", server.address, samples_file, "--insecure-plaintext")
        assert result.code == 0, result.errors
        result = lanner("predict", server.address, samples_file, "--pin", "sha256:" + "00" * 32, "--timeout", 3)
        assert result.code == 5, result.document


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0)])
def test_server_ends_on_a_signal(tmp_path: Path, tiny_label: Path, how: signal.Signals, code: int) -> None:
    with serving(tmp_path / "state", tiny_label) as server:
        assert server.end(how) == code


def test_run_is_both_parties(tiny_onnx: Path, tiny_label: Path, samples_file: Path) -> None:
    x = np.load(samples_file)["x"]
    result = lanner("run", tiny_label, samples_file)
    assert result.code == 0, result.errors
    labels = [prediction["label"] for prediction in result.document["predictions"]]
    assert labels == load(tiny_label).predict_fixed(x).argmax(1).tolist()
    result = lanner("run", tiny_onnx, samples_file, "--output", "logits")
    assert result.code == 0, result.errors
    assert "calibrated on the input" in result.errors
    assert len(result.document["predictions"][0]["logits"]) == 4


def test_probability_is_the_references_digit_for_digit(tiny_onnx: Path, samples_file: Path) -> None:
    x = np.load(samples_file)["x"]
    for digits in (1, 2, 6):
        arguments = ["--output", "probability", "--digits", digits, "--calibration", samples_file]
        result = lanner("run", tiny_onnx, samples_file, *arguments)
        assert result.code == 0, result.errors
        assert "does not end in a softmax" in result.errors
        model = library.compile(tiny_onnx, x)
        predictions = result.document["predictions"]
        assert [prediction["label"] for prediction in predictions] == model.predict_fixed(x).argmax(1).tolist()
        probabilities = np.array([prediction["probability"] for prediction in predictions])
        revealing = library.compile(tiny_onnx, x, output="probability", digits=digits)
        assert probabilities.tolist() == revealing.predict_probability(x).tolist()
        # That of a model which reveals none is the softmax itself.
        assert (np.abs(probabilities - model.predict_probability(x)) <= 10.0**-digits).all()
        assert np.allclose(probabilities * 10**digits, np.round(probabilities * 10**digits))
        assert predictions[0]["logits"] is None
        assert predictions[0]["top"] is None


def test_best_classes_come_in_order(tiny_onnx: Path, samples_file: Path) -> None:
    x = np.load(samples_file)["x"]
    arguments = ["--output", "top-k", "--k", 3, "--calibration", samples_file]
    result = lanner("run", tiny_onnx, samples_file, *arguments)
    assert result.code == 0, result.errors
    expected = np.argsort(-library.compile(tiny_onnx, x).predict_fixed(x), axis=1, kind="stable")[:, :3].tolist()
    predictions = result.document["predictions"]
    assert [prediction["top"] for prediction in predictions] == expected
    assert [prediction["label"] for prediction in predictions] == [best[0] for best in expected]


def test_evaluate_counts_what_agrees(tiny_logits: Path, samples_file: Path) -> None:
    result = lanner("evaluate", tiny_logits, "--data", samples_file, "--secure", "--limit", 2)
    assert result.code == 0, result.errors
    assert result.document["samples"] == 2
    assert result.document["float"]["accuracy"] == 1.0
    assert result.document["fixed"]["overflows"] == 0
    assert result.document["secure"]["agrees_with_reference"] == 2


@pytest.mark.parametrize(("mode", "rounding"), [("cheetah", "faithful"), ("tabula", "stochastic")])
def test_evaluate_holds_labels_that_are_not_exact_within_their_bound(
    tmp_path: Path, samples_file: Path, mode: str, rounding: str
) -> None:
    model = library.compile(tiny_classifier(), tiny_samples(), mode=mode, rounding=rounding)
    assert (model.secure_error > 0) == (rounding == "faithful")
    model.save(tmp_path / "near.lanner")
    result = lanner("evaluate", tmp_path / "near.lanner", "--data", samples_file, "--secure")
    assert result.code == 0, result.errors
    secure = result.document["secure"]
    assert secure["within_bound_of_reference"] == 3
    assert "agrees_with_reference" not in secure


def test_demo_classifies_digits_that_training_did_not_see() -> None:
    result = lanner("demo", "--images", 2)
    assert result.code == 0, result.errors
    assert len(result.document["predictions"]) == 2
    for prediction in result.document["predictions"]:
        assert prediction["agrees_with_reference"]
        assert prediction["truth"] in range(10)
        check_costs(prediction)


@pytest.mark.slow
def test_demo_rounds_as_asked() -> None:
    sent = {}
    for rounding in ("exact", "faithful"):
        result = lanner("demo", "--images", 1, "--mode", "cheetah", "--rounding", rounding)
        assert result.code == 0, result.errors
        prediction = result.document["predictions"][0]
        # Faithful rounding goes with labels alone.
        assert (prediction["probability"] is None) == (rounding == "faithful")
        assert ("agrees_with_reference" in prediction) == (rounding == "exact")
        sent[rounding] = sum(phase["bytes_sent"] + phase["bytes_received"] for phase in prediction["phases"].values())
    assert sent["faithful"] < sent["exact"]


@pytest.mark.slow
def test_demo_shows_people_labels_and_costs() -> None:
    command = [sys.executable, "-m", "lanner", "demo", "--images", "2"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=True)
    assert result.stderr == ""
    for word in ("label", "truth", "agrees", "setup", "offline", "online", "rounds"):
        assert word in result.stdout


@pytest.mark.parametrize("name", marked(["mnist_c", "mnist_d"], {"mnist_d"}))
def test_evaluate_agrees_with_the_reference_on_fifty_digits(tmp_path: Path, name: str) -> None:
    x, y = load_digits("test")
    np.savez(tmp_path / "digits.npz", x=x, y=y)
    compile_embedded(name).save(tmp_path / "net.lanner")
    result = lanner("evaluate", tmp_path / "net.lanner", "--data", tmp_path / "digits.npz", "--secure", "--limit", 50)
    assert result.code == 0, result.errors
    assert result.document["secure"]["agrees_with_reference"] == 50
    assert result.document["secure"]["accuracy"] == result.document["fixed"]["accuracy"]


def test_server_says_when_it_is_busy(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with serving(tmp_path / "state", tiny_label, "--max-sessions", 1) as server:
        with library.Client(server.address, pin=server.document["fingerprint"]) as client:
            result = lanner("predict", server.address, samples_file, *server.pin)
            assert result.code == 4, result.document
            assert result.document["error"]["kind"] == "busy"
            with pytest.raises(library.BusyError):
                library.Client(server.address, pin=server.document["fingerprint"])
            assert client.predict(tiny_samples(1)).label is not None
        result = lanner("predict", server.address, samples_file, *server.pin)
        assert result.code == 0, result.errors


def test_server_says_when_it_has_no_room_for_material(tmp_path: Path, tiny_label: Path, samples_file: Path) -> None:
    with pytest.raises(library.MisuseError, match="one session takes") as too_few:
        library.Server(load(tiny_label), state_dir=tmp_path / "state", max_material=1)
    each = re.search(r"takes (\d+) bytes", str(too_few.value))
    assert each
    with serving(tmp_path / "state", tiny_label, "--max-material", each[1]) as server:
        with library.Client(server.address, pin=server.document["fingerprint"]) as client:
            client.prepare(1)
            result = lanner("predict", server.address, samples_file, *server.pin)
            assert result.code == 4, result.document
            assert result.document["error"]["kind"] == "busy"
            assert client.predict(tiny_samples(1)).label is not None
        result = lanner("predict", server.address, samples_file, *server.pin)
        assert result.code == 0, result.errors


def test_sigterm_does_not_wait_for_idle_sessions(tmp_path: Path, tiny_label: Path) -> None:
    with (
        serving(tmp_path / "state", tiny_label) as server,
        library.Client(server.address, pin=server.document["fingerprint"]) as client,
    ):
        assert client.predict(tiny_samples(1)).label is not None
        started = time.monotonic()
        assert server.end(signal.SIGTERM) == 0
        assert time.monotonic() - started < 10
        with pytest.raises(library.TransportError):
            client.predict(tiny_samples(1))


def test_sigterm_lets_a_prediction_finish(tmp_path: Path, tiny_label: Path) -> None:
    np.save(tmp_path / "many.npy", tiny_samples(20_000))
    with serving(tmp_path / "state", tiny_label, "--metrics", "127.0.0.1:0") as server:
        command = [sys.executable, "-m", "lanner", "predict", server.address, str(tmp_path / "many.npy")]
        command += [*server.pin, "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            deadline = time.monotonic() + HUNG
            while not Scraped.of_server(server.document["metrics"]).total("lanner_predictions_total"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert server.end(signal.SIGTERM) == 0
            output, _ = process.communicate(timeout=HUNG)
    # The client is turned away between two predictions, with all that were done.
    document = json.loads(output)
    assert process.returncode in (4, 5)
    assert document["predictions"]
    assert all(prediction["label"] is not None for prediction in document["predictions"])
