"""The light models of the onnx package: networks of ImageNet's size with one number for all weights.

Each is compiled, which plans it too, or refused in a sentence that names what is missing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest

import lanner
from lanner.errors import LannerError

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"

#: Of each model what is missing for it; None for nothing.
MISSING = {
    "bvlc_alexnet": "operator LRN",
    "densenet121": None,
    "inception_v1": "operator LRN",
    "inception_v2": None,
    "resnet50": None,
    # Its made-up weights make one branch three million times smaller than the other.
    "shufflenet": "Concat with scales",
    "squeezenet": None,
    "vgg19": None,
    "zfnet512": "operator LRN",
}


def test_every_light_model_is_listed() -> None:
    assert sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")) == sorted(MISSING)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISSING)
def test_light_models_are_planned_or_refused_by_what_is_missing(name: str) -> None:
    samples = np.random.default_rng(1).random((2, 3, 224, 224), dtype=np.float32)

    def compiled() -> lanner.Model:
        return lanner.compile(
            FOLDER / f"light_{name}.onnx",
            samples,
            mode="cheetah",
            output="logits",
            precision=8,
            input_range=(0, 1),
            max_memory="16GB",
            max_seconds=7200,
        )

    missing = MISSING[name]
    if missing is None:
        assert compiled().manifest.input.shape == (3, 224, 224)
        return
    with pytest.raises(LannerError) as refusal:
        compiled()
    assert missing in str(refusal.value)
    assert refusal.value.fix
