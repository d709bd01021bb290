"""The light models of the onnx package: networks of ImageNet's size with one number for all weights.

Each is compiled, which plans it too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest

import lanner

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"

MODELS = [
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19"),
    "zfnet512",
]


def test_every_light_model_is_listed() -> None:
    assert sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")) == sorted(MODELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_light_models_are_planned(name: str) -> None:
    samples = np.random.default_rng(1).random((2, 3, 224, 224), dtype=np.float32)

    model = lanner.compile(
        FOLDER / f"light_{name}.onnx",
        samples,
        mode="cheetah",
        output="logits",
        precision=8,
        input_range=(0, 1),
        max_memory="16GB",
        max_seconds=7200,
    )
    assert model.manifest.input.shape == (3, 224, 224)
