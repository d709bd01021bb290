"""The embedded networks: accuracy of float and fixed point, and the secure run against the reference."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import lanner
from helpers.times import marked
from lanner.datasets import load_digits
from lanner.embedded import compile_embedded

#: Where trained networks and data lie that are not part of the project; tests that want them skip without.
DATA = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data")


@pytest.mark.parametrize("name", ["mnist_c", "mnist_d"])
def test_digits_are_classified_alike_by_float_and_fixed_point(name: str) -> None:
    model = compile_embedded(name, output="logits")
    x, y = load_digits("test")
    exact, (integers, overflows) = model.predict_float(x), model.predict_integers(x)
    assert overflows == 0
    assert (exact.argmax(1) == y).mean() > 0.97
    assert (exact.argmax(1) == integers.argmax(1)).mean() > 0.99
    assert np.allclose(model.native.float(x), exact, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["auto", "falcon", "cheetah"])
@pytest.mark.parametrize("name", marked(["mnist_c", "mnist_d"], {"mnist_d"}))
def test_every_integer_of_the_secure_run_equals_the_reference(name: str, mode: str) -> None:
    model = compile_embedded(name, mode=mode, output="logits", rounding="exact")
    x = load_digits("test")[0][:5]
    integers, _ = model.predict_integers(x)
    for sample, expected in zip(x, integers, strict=True):
        assert lanner.run(model, sample).integers == expected.tolist()


@pytest.mark.parametrize("name", marked(["mnist_c", "mnist_d"], {"mnist_d"}))
def test_label_policy_reveals_the_label_alone(name: str) -> None:
    model = compile_embedded(name)
    x = load_digits("test")[0][:5]
    for sample, expected in zip(x, model.predict_integers(x)[0].argmax(1), strict=True):
        prediction = lanner.run(model, sample)
        assert prediction.label == expected
        assert prediction.class_name == str(expected)
        assert (prediction.logits, prediction.values, prediction.probability, prediction.top) == (None,) * 4


@pytest.mark.parametrize(("name", "least"), [("mnist_c", 0.98), pytest.param("mnist_d", 0.99, marks=pytest.mark.slow)])
def test_accuracy_on_mnist(name: str, least: float) -> None:
    x, y = mnist("t10k")
    calibration = mnist("train")[0][:256]
    with_network = Path(lanner.__file__).parent / "networks" / f"{name}.onnx"
    model = lanner.compile(with_network, calibration)
    exact = (model.predict_float(x).argmax(1) == y).mean()
    integers, overflows = model.predict_integers(x)
    fixed = (integers.argmax(1) == y).mean()
    assert overflows == 0
    assert abs(exact - fixed) <= 0.002
    assert fixed >= least


def mnist(part: str) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """The official files of MNIST."""
    images, labels = (DATA / "mnist" / f"{part}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
    if not images.is_file():
        pytest.skip(f"MNIST is not in {DATA}; set LANNER_DATA to a folder that holds it")
    with gzip.open(images) as file:
        x = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(labels) as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return (x / 255).astype(np.float32), y


PICTURES = Path(__file__).parents[3] / "examples" / "pneumonia"


def x_rays(split: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A split of PneumoniaMNIST."""
    path = DATA / "medmnist" / "pneumoniamnist.npz"
    if not path.is_file():
        pytest.skip(f"PneumoniaMNIST is not in {DATA}; set LANNER_DATA to a folder that holds it")
    with np.load(path) as file:
        x, y = file[f"{split}_images"], file[f"{split}_labels"]
    return (x[:, np.newaxis] / np.float32(255)).astype(np.float32), y.reshape(-1).astype(np.int64)


def pictures() -> tuple[lanner.ImageDescription, NDArray[np.float32]]:
    """The example's ten pictures, five of each class, and their description."""
    description = lanner.ImageDescription.read(PICTURES / "image.toml")
    return description, np.stack([description.load(path, (1, 28, 28)) for path in sorted(PICTURES.glob("*.png"))])


def pneumonia(calibration: NDArray[np.float32], **options: Any) -> lanner.Model:  # noqa: ANN401 - those of compile
    """The embedded network for chest X-rays."""
    return lanner.compile(Path(lanner.__file__).parent / "networks" / "pneumonia.onnx", calibration, **options)


def test_secure_scores_of_an_x_ray_equal_the_reference() -> None:
    description, x = pictures()
    model = pneumonia(x, image=description, output="logits")
    integers, overflows = model.predict_integers(x)
    assert overflows == 0
    for index in (0, 9):
        assert lanner.run(model, x[index]).integers == integers[index].tolist()


def test_pictures_are_the_first_of_each_class() -> None:
    x, y = x_rays("test")
    assert np.array_equal(pictures()[1], np.concatenate([x[y == label][:5] for label in (0, 1)]))


@pytest.mark.parametrize(("mode", "most"), [("gazelle", 0.0), ("cheetah", 0.005)])
def test_accuracy_on_chest_x_rays(mode: str, most: float) -> None:
    x, y = x_rays("test")
    model = pneumonia(x_rays("train")[0][:256], mode=mode)
    exact = model.predict_float(x)
    integers, overflows = model.predict_integers(x)
    assert overflows == 0
    # Of 624 images, three in mode cheetah.
    assert abs((exact.argmax(1) == y).mean() - (integers.argmax(1) == y).mean()) <= most
    assert (exact.argmax(1) != integers.argmax(1)).mean() <= most
    assert (integers.argmax(1) == y).mean() >= 0.87
    assert roc_auc_score(y, integers[:, 1] - integers[:, 0]) >= 0.95


def test_no_temperature_improves_probabilities_of_validation_x_rays() -> None:
    x, y = x_rays("val")
    exact = pneumonia(x).predict_float(x).astype(np.float64)
    margin = exact[:, 1] - exact[:, 0]
    # The derivative of the cross entropy of softmax(logits / T) by 1 / T, at T = 1.
    assert abs(((1 / (1 + np.exp(-margin)) - y) * margin).mean()) < 1e-4


TRAINED = {
    "mnist_crypten_tfe_a": (1, 28, 28),
    "mnist_crypten_tfe_b": (1, 28, 28),
    "mnist_cryptonets": (1, 28, 28),
    "kws_mlperf_dscnn": (1, 49, 10),
    "cifar10_delphi_minionn_relu": (3, 32, 32),
    "cifar10_resnet20": (3, 32, 32),
    "cifar100_delphi_resnet32": (3, 32, 32),
}


@pytest.mark.parametrize("name", TRAINED)
def test_trained_networks_of_others_import(name: str) -> None:
    import onnxruntime

    from lanner.onnx import import_model
    from lanner.reference import OnnxReference

    path = DATA / "models" / name / "model.onnx"
    if not path.is_file():
        pytest.skip(f"{name} is not in {DATA}; set LANNER_DATA to a folder that holds it")
    model = import_model(path)
    assert model.input_shape == TRAINED[name]
    x = np.random.default_rng(0).random((2, *model.input_shape), dtype=np.float32)
    expected = onnxruntime.InferenceSession(str(path)).run(None, {model.input_name: x})[0]
    logits = OnnxReference(model).logits(x)
    if "Softmax" in model.operators:
        exponentials = np.exp(logits - logits.max(1, keepdims=True))
        logits = exponentials / exponentials.sum(1, keepdims=True)
    assert np.allclose(logits, expected, rtol=1e-4, atol=1e-5)
