"""ImageNet's architectures on small images: float against onnxruntime, fixed point within its precision, and secure."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import lanner
from bench.imagenet import NETWORKS, imagenet_model
from helpers.times import marked

#: The smallest images that each network's pools leave something of.
SIDES = {"alexnet": 64}

CLASSES = 10


@pytest.mark.parametrize("name", marked(NETWORKS, set(NETWORKS) - {"squeezenet"}))
def test_small_images_are_classified_as_onnxruntime_does_and_in_private_alike(name: str) -> None:
    side = SIDES.get(name, 32)
    proto = imagenet_model(name, side, CLASSES)
    x = np.random.default_rng(3).random((4, 3, side, side), dtype=np.float32)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    model = lanner.compile(
        proto, x, mode="cheetah", output="logits", precision=10, input_range=(0, 1), name=name, allow_imprecise=True
    )
    spread = np.ptp(expected, axis=1, keepdims=True)
    assert np.allclose(model.native.float(x), expected, rtol=0, atol=1e-4 * spread.max())
    integers, overflows = model.predict_integers(x)
    assert overflows == 0
    # Ten bits are rough for seventeen blocks without a ReLU between them.
    assert model.precision is not None
    assert model.precision.logit_error < 0.05
    # Errors are relative to the range of the sample's scores, or of the median sample's.
    usual = np.maximum(spread, np.sort(spread, axis=0)[len(spread) // 2])
    off = np.abs(integers / model.logits_scale - expected) / usual
    assert off.max() <= 1.01 * model.precision.logit_error
    assert lanner.run(model, x[0]).integers == integers[0].tolist()


def test_parameters_are_those_of_the_published_networks() -> None:
    counts = {
        "resnet18": 11_689_512,
        "resnet50": 25_557_032,
        "mobilenet_v2": 3_504_872,
        "squeezenet": 1_248_424,
        "densenet121": 7_978_856,
        "alexnet": 61_100_840,
    }
    for name, expected in counts.items():
        weights = imagenet_model(name).graph.initializer
        # Means and variances are no parameters, nor are the bounds of a clip.
        learned = (tensor for tensor in weights if tensor.dims and not tensor.name.endswith((".mean", ".var")))
        assert sum(int(np.prod(tensor.dims)) for tensor in learned) == expected
