"""One classifier at every opset from 7 on, and with initializers listed as inputs."""

import numpy as np
import onnx
import onnxruntime
import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from helpers.opset_writer import OpsetWriter

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


@pytest.mark.parametrize("scales", [(2.0, 3.0), (1.4, 2.5), (0.4, 0.7), (0.5, 2.0)], ids=str)
@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11])
def test_nearest_elements_are_those_of_the_opset(opset: int, scales: tuple[float, float]) -> None:
    if opset < 10 and min(scales) < 1:
        pytest.skip("Upsample has no scales below 1")
    write = OpsetWriter(opset)
    resized = write.upsample("x", [1.0, 1.0, *scales])
    output = write.node("Conv", resized, write.floats([[[[0.5]], [[-1.0]]]]))
    model = write.model(["n", 2, 5, 6], output, listed=False)
    x = np.random.default_rng(0).standard_normal((8, 2, 5, 6)).astype(np.float32)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0].reshape(8, -1)
    compiled = lanner.compile(model, x, output="logits")
    assert np.allclose(compiled.native.float(x), expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(compiled.predict_float(x), expected, rtol=1e-4, atol=1e-5)


def test_a_resize_that_no_attributes_say_is_refused() -> None:
    write = OpsetWriter(10)
    resized = write.upsample("x", [1.0, 1.0, 0.7, 2.0])
    with pytest.raises(lanner.UnsupportedOpError, match="scales of Resize shrink one axis and let another one grow"):
        lanner.compile(write.model(["n", 2, 5, 6], resized, listed=False), np.zeros((8, 2, 5, 6)))
