"""One classifier at every opset from 7 on, and with initializers listed as inputs."""

import numpy as np
import onnx
import onnxruntime
import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples

NEWEST = onnx.defs.onnx_opset_version()


@pytest.mark.parametrize("opset", [*range(7, NEWEST + 1)])
@pytest.mark.parametrize("listed", [False, True])
def test_every_opset_imports_alike(opset: int, listed: bool) -> None:
    x = tiny_samples()
    reference = onnxruntime.InferenceSession(tiny_classifier().SerializeToString())
    expected = reference.run(None, {"x": x})[0]
    model = lanner.compile(tiny_classifier(opset, listed=listed), x)
    assert np.allclose(model.native.float(x), expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(model.predict_float(x), expected, rtol=1e-4, atol=1e-5)
