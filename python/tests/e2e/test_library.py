"""The Python API: both parties in one process, and a server and clients in threads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from helpers.models import make_model, save_model, tiny_classifier, tiny_samples


def test_paths_stand_for_the_models_in_them(tiny_label: Path, tiny_logits: Path) -> None:
    assert lanner.run(tiny_label, tiny_samples(1)).label is not None
    for models in (tiny_label, str(tiny_label), [tiny_label], {"tiny_label": tiny_label}):
        assert list(lanner.Server(models).models) == ["tiny_label"]
    assert list(lanner.Server([tiny_label, lanner.load(tiny_logits)]).models) == ["tiny_label", "tiny_logits"]
    with lanner.Server(tiny_label) as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        assert client.manifest.name == "tiny_label"
    with lanner.Server({"offered": tiny_label}) as server:
        for name, known in (("offered", "offered"), (None, "tiny_label")):
            with lanner.Client(server.address, pin=server.fingerprint, model=name) as client:
                assert client.manifest.name == known
                assert client.predict(tiny_samples(1)).model == known


def test_a_server_lists_its_models(tiny_label: Path, tiny_logits: Path) -> None:
    with lanner.Server([tiny_label, tiny_logits]) as server:
        listed = lanner.list_models(server.address, pin=server.fingerprint)
        expected = [(name, model.manifest.commitment) for name, model in server.models.items()]
        assert [(model.name, model.commitment) for model in listed] == expected
        with pytest.raises(lanner.TransportError, match="certificate"):
            lanner.list_models(server.address, pin="sha256:" + 64 * "0")
    with pytest.raises(lanner.TransportError):
        lanner.list_models(server.address, pin=server.fingerprint)
    with pytest.raises(lanner.MisuseError, match="no server is trusted"):
        lanner.list_models(server.address)


def test_what_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(lanner.MisuseError, match="a int is not a compiled model"):
        lanner.Server(7)  # type: ignore[arg-type]
    with pytest.raises(lanner.MisuseError, match="a dict is not a compiled model"):
        lanner.Server([{}])  # type: ignore[list-item]
    with pytest.raises(lanner.MisuseError, match="a ModelProto is not a compiled model"):
        lanner.run(tiny_classifier(), tiny_samples(1))
    with pytest.raises(lanner.ModelError, match="no such file"):
        lanner.Server(tmp_path / "absent.lanner")


@pytest.mark.parametrize("limit", ["max_sessions", "max_material", "timeout"])
def test_a_limit_that_is_not_positive_is_named(tiny_label: Path, limit: str) -> None:
    with pytest.raises(lanner.MisuseError, match=f"^{limit} is 0; give a positive number"):
        lanner.Server(tiny_label, **{limit: 0})  # type: ignore[arg-type]


def test_run_in_memory_equals_the_reference(tiny_logits: Path) -> None:
    model, x = lanner.load(tiny_logits), tiny_samples(3, seed=9)
    integers, _ = model.predict_integers(x)
    for sample, values in zip(x, integers, strict=True):
        prediction = lanner.run(model, sample)
        assert prediction.integers == values.tolist()
        assert set(prediction.phases) == {"setup", "offline", "online"}


def score_model(path: Path, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> Path:
    """A network of one layer, ``scores``: weight (outputs, 8), bias (outputs,)."""
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="scores", transB=1)
    return save_model(path, make_model([node], ["n", 8], {"w": weight, "b": bias}))


def test_equal_scores_share_the_probability_and_the_first_wins(tmp_path: Path) -> None:
    rows = np.tile(np.linspace(-1, 1, 8, dtype=np.float32), (4, 1))
    x = np.random.default_rng(5).random((32, 8), dtype=np.float32)
    path = score_model(tmp_path / "equal.onnx", rows, np.zeros(4, np.float32))
    model = lanner.compile(path, x, mode="falcon", output="probability", digits=2)
    prediction = lanner.run(model, x[0])
    assert prediction.label == 0
    assert prediction.probability == pytest.approx(0.25, abs=0.01)


def test_the_probability_of_one_score_is_its_sigmoid(tmp_path: Path) -> None:
    path = score_model(tmp_path / "one.onnx", np.full((1, 8), 0.25, np.float32), np.zeros(1, np.float32))
    model = lanner.compile(path, np.ones((32, 8), np.float32), mode="falcon", output="probability")
    prediction = lanner.run(model, np.ones(8, np.float32))
    assert prediction.label == 1
    assert prediction.probability == pytest.approx(1 / (1 + np.exp(-2)), abs=0.01)


def test_a_layer_that_no_ring_holds_is_named(tmp_path: Path) -> None:
    bias = np.array([1e15, 0], np.float32)
    path = score_model(tmp_path / "wide.onnx", np.eye(2, 8, dtype=np.float32), bias)
    with pytest.raises(lanner.LannerError, match=r"scores.*sums reach \d+ units; the largest ring allows") as caught:
        lanner.compile(path, np.ones((32, 8), np.float32), mode="falcon", output="probability")
    assert caught.value.where == "scores"


@pytest.mark.parametrize("mode", ["gazelle", "falcon", "cheetah", "tabula"])
def test_many_samples_of_a_session_run_together(tmp_path: Path, mode: str) -> None:
    model, x = lanner.compile(tiny_classifier(), tiny_samples(), mode=mode, output="logits"), tiny_samples(21, seed=3)
    expected = model.predict_integers(x)[0].tolist()
    server = lanner.Server(model, insecure_plaintext=True, state_dir=tmp_path / "state")
    with server, lanner.Client(server.address, insecure_plaintext=True) as client:
        # Keys, and room for what the client sends ahead.
        idle = server.stats()["material"]
        each = client.predict_each(x)
        assert [prediction.integers for prediction in each] == expected
        # The server counts when a client has its result already. Nothing is left that was prepared for nothing.
        deadline = time.monotonic() + 10
        while (counted := server.stats())["predictions"] != len(x) or counted["material"] != idle:
            assert time.monotonic() < deadline, counted
            time.sleep(0.01)
        # What was given is given, and what was prepared for the others serves these.
        some = client.predict_each(x)
        assert [next(some).integers for _ in range(3)] == expected[:3]
        assert [prediction.index for prediction in client.predict_batch(x)] == list(range(len(x)))
        assert client.predict(x[5]).integers == expected[5]


def test_server_and_client_in_one_process(tmp_path: Path, tiny_label: Path) -> None:
    model, x = lanner.load(tiny_label), tiny_samples(4, seed=3)
    expected = model.predict_fixed(x).argmax(1).tolist()
    with lanner.Server(model, "127.0.0.1:0", state_dir=tmp_path / "state") as server:
        with lanner.Client(server.address, pin=server.fingerprint) as client:
            client.prepare(2)
            assert [client.predict(sample).label for sample in x] == expected
            assert client.predict(x[:1]).class_name in ("ant", "bee", "cat", "dog")
            assert [prediction.label for prediction in client.predict_batch(x)] == expected

        def predict(sample: np.ndarray) -> int | None:
            with lanner.Client(server.address, pin=server.fingerprint, pin_model=model.commitment) as client:
                return client.predict(sample).label

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(predict, x)) == expected
        assert isinstance(server.stats(), dict)


def test_what_the_server_got_can_be_looked_at_and_is_never_twice_the_same(tiny_label: Path) -> None:
    x = tiny_samples(1)[0]
    with lanner.Server(tiny_label) as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        assert client.longest_sent == lanner.SentMessage(0, b"")
        told = []
        for _ in range(3):
            took = client.predict(x).phases
            told.append(client.longest_sent)
            assert 0 < told[-1].length < took["offline"].bytes_sent + took["online"].bytes_sent
            assert len(told[-1].beginning) == min(64, told[-1].length)
        assert len({message.length for message in told}) == 1
        assert len({message.beginning for message in told}) == 3
    with pytest.raises(lanner.MisuseError, match="closed"):
        _ = client.longest_sent


def test_closed_client_and_wrong_input_are_refused(tmp_path: Path, tiny_label: Path) -> None:
    model = lanner.load(tiny_label)
    with lanner.Server(model, state_dir=tmp_path / "state") as server:
        client = lanner.Client(server.address, pin=server.fingerprint)
        with pytest.raises(lanner.InputError, match=r"\(8, 8\)"):
            client.predict(np.zeros((8, 8)))
        with pytest.raises(lanner.InputError, match="predict_batch"):
            client.predict(tiny_samples(2))
        with pytest.raises(lanner.MisuseError):
            client.prepare(0)
        assert client.predict(tiny_samples(1)).label is not None
        client.close()
        client.close()
        with pytest.raises(lanner.MisuseError, match="closed"):
            client.predict(tiny_samples(1))


def test_names_of_models_are_unique(tiny_label: Path) -> None:
    model = lanner.load(tiny_label)
    with pytest.raises(lanner.MisuseError, match="one name"):
        lanner.Server([model, model])
    with pytest.raises(lanner.MisuseError, match="no model"):
        lanner.Server([])


def test_pinned_commitment_must_match(tmp_path: Path, tiny_label: Path) -> None:
    with lanner.Server(lanner.load(tiny_label), state_dir=tmp_path / "state") as server:
        with pytest.raises(lanner.PeerError):
            lanner.Client(server.address, pin=server.fingerprint, pin_model="34" * 32)
        with pytest.raises(lanner.TransportError):
            lanner.Client(server.address, pin="sha256:" + "00" * 32)


def test_compile_checks_its_arguments() -> None:
    x = tiny_samples()
    with pytest.raises(lanner.MisuseError, match="4 classes"):
        lanner.compile(tiny_classifier(), x, classes=["a"])
    with pytest.raises(lanner.MisuseError, match="not a model"):
        lanner.compile(42, x)
    with pytest.raises(lanner.InputError, match="calibration"):
        lanner.compile(tiny_classifier(), x[:, :, 1:])
    with pytest.raises(lanner.InputError, match="calibration"):
        lanner.compile(tiny_classifier(), x[:0])
    with pytest.raises(lanner.MisuseError, match="image description"):
        lanner.compile(tiny_classifier(), x, image=lanner.ImageDescription(3, (8, 8)))


def test_a_stated_range_is_what_clients_see() -> None:
    x = tiny_samples()
    limits = (min(0.0, float(x.min())), float(x.max()) + 0.25)
    model = lanner.compile(tiny_classifier(), x, output="logits", input_range=limits)
    assert (model.manifest.input.low, model.manifest.input.high) == limits
    assert "as its owner states it" in model.report()["leakage"]["client"]
    largest = np.full(x[0].shape, limits[1], np.float32)
    assert lanner.run(model, largest).integers == model.predict_integers(largest)[0][0].tolist()
    with pytest.raises(lanner.InputError, match="outside the accepted range"):
        lanner.run(model, largest * 1.1)
    with pytest.raises(lanner.InputError, match=r"sample \d+.*outside"):
        lanner.compile(tiny_classifier(), x, input_range=(limits[0], limits[1] / 4))
    assert "rounded up" in lanner.compile(tiny_classifier(), x).report()["leakage"]["client"]


def test_saved_model_predicts_as_before(tmp_path: Path) -> None:
    model, x = lanner.compile(tiny_classifier(), tiny_samples(), output="logits"), tiny_samples(5, seed=2)
    model.save(tmp_path / "net.lanner")
    loaded = lanner.load(tmp_path / "net.lanner")
    assert np.array_equal(loaded.predict_integers(x)[0], model.predict_integers(x)[0])
    assert loaded.logits_scale == model.logits_scale
    assert loaded.commitment == model.commitment
    assert np.allclose(loaded.predict_float(x), model.predict_float(x), rtol=1e-4, atol=1e-5)
