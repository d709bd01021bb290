"""Secure runs of networks in mode spectral, on ciphertexts alone, against the fixed-point reference."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

import lanner
from bench.accuracy import accuracies, on_both_parties
from helpers.data import DATA
from helpers.models import make_model, save_model
from lanner.errors import InputError

#: Scores of more than 64 bits.
BITS = 7


def squares(path: Path) -> Path:
    """A convolution, squares, a dense layer, squares, a dense layer."""
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> NDArray[np.float32]:
        scaled: NDArray[np.float32] = (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        return scaled

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[5, 5], strides=[2, 2], pads=[1, 1, 0, 0]),
        helper.make_node("Mul", ["a", "a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "w2", "b2"], ["d"], transB=1),
        helper.make_node("Mul", ["d", "d"], ["e"]),
        helper.make_node("Gemm", ["e", "w3", "b3"], ["y"], transB=1),
    ]
    tensors = {
        "w1": normal(3, 1, 5, 5),
        "b1": normal(3, 1)[:, 0],
        "w2": normal(20, 75),
        "b2": normal(20, 1)[:, 0],
        "w3": normal(4, 20),
        "b3": normal(4, 1)[:, 0],
    }
    return save_model(path, make_model(nodes, (1, 1, 12, 12), tensors))


def test_every_score_of_a_network_on_ciphertexts_equals_the_reference(tmp_path: Path) -> None:
    x = np.random.default_rng(5).random((40, 1, 12, 12), dtype=np.float32)
    path = squares(tmp_path / "squares.onnx")
    model = lanner.compile(path, x, mode="spectral", output="logits", precision=BITS, allow_imprecise=True)
    integers, overflows = model.predict_integers(x[:3])
    assert overflows == 0
    assert max(abs(int(score)) for score in integers.ravel()) > 2**63
    assert on_both_parties(model, x[:3]) == {"images": 3, "equal": 3}
    prediction = lanner.run(model, x[0])
    assert prediction.phases["online"].rounds == 1
    assert prediction.phases["offline"].rounds == 0
    assert prediction.logits == pytest.approx(
        model.predict_float(x[:1])[0], abs=0.1 * float(np.ptp(model.predict_float(x)))
    )


@pytest.mark.slow
def test_samples_of_one_request_have_scores_of_their_own(tmp_path: Path) -> None:
    x = np.random.default_rng(5).random((40, 1, 12, 12), dtype=np.float32)
    model = lanner.compile(squares(tmp_path / "squares.onnx"), x, mode="spectral", output="logits", batch=8)
    assert model.manifest.batch == 8
    # Two requests, of which the second has room to spare.
    assert on_both_parties(model, x[:11]) == {"images": 11, "equal": 11}
    alone = lanner.run(model, x[9])
    assert alone.integers == model.predict_integers(x[9:10])[0][0].tolist()
    with lanner.Server(model, "127.0.0.1:0") as server, lanner.Client(server.address, pin=server.fingerprint) as client:
        predictions = client.predict_batch(x[:3])
        with pytest.raises(InputError, match="predict_batch"):
            client.predict(x[:2])
    assert [prediction.index for prediction in predictions] == [0, 1, 2]
    assert sum(prediction.phases["online"].rounds for prediction in predictions) == 1
    shares = [prediction.phases["online"].bytes for prediction in predictions]
    assert max(shares) - min(shares) <= 2
    # TLS adds a little.
    assert sum(shares) == pytest.approx(alone.phases["online"].bytes, rel=0.01)


@pytest.mark.parametrize("output", ["label", "top-k", "probability"])
def test_scores_are_told_or_the_mode_is_another(tmp_path: Path, output: str) -> None:
    x = np.random.default_rng(5).random((8, 1, 12, 12), dtype=np.float32)
    with pytest.raises(lanner.LannerError, match="every score"):
        lanner.compile(squares(tmp_path / "squares.onnx"), x, mode="spectral", output=output, precision=6)


def with_relus(path: Path, pool: str, **padding: Any) -> Path:  # noqa: ANN401 - an operator's attributes
    """A convolution, ReLU, a pool of 2x2, a padded convolution, ReLU, a dense layer."""
    sides = 6 if padding else 5
    rng = np.random.default_rng(7)

    def normal(*shape: int) -> NDArray[np.float32]:
        scaled: NDArray[np.float32] = (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        return scaled

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="first"),
        helper.make_node(pool, ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2], **padding),
        helper.make_node("Conv", ["c", "w2"], ["d"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["d"], ["e"], name="second"),
        helper.make_node("Transpose", ["e"], ["f"], perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "w3", "b3"], ["y"], transB=1),
    ]
    tensors = {"w1": normal(3, 1, 3, 3), "b1": normal(3, 1)[:, 0], "w2": normal(4, 3, 3, 3)}
    tensors |= {"w3": normal(5, 4 * sides**2), "b3": normal(5, 1)[:, 0]}
    return save_model(path, make_model(nodes, (1, 1, 10, 10), tensors))


@pytest.mark.slow
def test_relus_give_way_to_quadratics_where_that_is_asked(tmp_path: Path) -> None:
    x = np.random.default_rng(5).normal(size=(60, 1, 10, 10)).astype(np.float32)
    path = with_relus(tmp_path / "relus.onnx", "AveragePool")
    with pytest.raises(lanner.UnsupportedOpError, match="mode spectral cannot compute Relu") as refused:
        lanner.compile(path, x, mode="spectral", output="logits")
    (kept,) = re.findall(r"keep the label of (\d+) of 60 samples", str(refused.value))
    assert "replace_relu=" in str(refused.value)
    model = lanner.compile(path, x, mode="spectral", output="logits", precision="2%", replace_relu=True)
    float_labels, fixed_labels = (scores.argmax(axis=1) for scores in (model.predict_float(x), model.predict_fixed(x)))
    # What the integers round away changes few of them.
    assert abs(int((float_labels == fixed_labels).sum()) - int(kept)) <= 2
    assert int(kept) > 30
    assert on_both_parties(model, x[:2]) == {"images": 2, "equal": 2}


@pytest.mark.slow
def test_a_quadratic_goes_through_a_mean_that_counts_padding(tmp_path: Path) -> None:
    x = np.random.default_rng(5).normal(size=(60, 1, 10, 10)).astype(np.float32)
    path = with_relus(tmp_path / "padded.onnx", "AveragePool", pads=[1, 1, 1, 1], count_include_pad=1)
    model = lanner.compile(path, x, mode="spectral", output="logits", precision="2%", replace_relu=True)
    labels = [scores.argmax(axis=1) for scores in (model.predict_float(x), model.predict_fixed(x))]
    assert int((labels[0] == labels[1]).sum()) > 30


def test_what_no_quadratic_replaces_is_named(tmp_path: Path) -> None:
    x = np.random.default_rng(5).normal(size=(20, 1, 10, 10)).astype(np.float32)
    path = with_relus(tmp_path / "maxima.onnx", "MaxPool")
    with pytest.raises(lanner.UnsupportedOpError, match=r"MaxPool.*AveragePool"):
        lanner.compile(path, x, mode="spectral", output="logits", replace_relu=True)
    with pytest.raises(lanner.MisuseError, match="mode spectral"):
        lanner.compile(path, x, mode="gazelle", output="logits", replace_relu=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "accuracy", "images"), [("mnist_cryptonets", 0.989, 100), ("mnist_lola", 0.96, 20)])
def test_networks_of_lola_keep_their_accuracy(name: str, accuracy: float, images: int) -> None:
    if not (DATA / "models").is_dir():
        pytest.skip(f"there are no trained networks in {DATA}; set LANNER_DATA to a folder that holds models/")
    (document,) = accuracies("spectral", DATA, None, secure=images, only=(name,))
    assert document["overflows"] == 0
    assert document["fixed"] >= accuracy
    assert document["secure"] == {"images": images, "equal": images}
