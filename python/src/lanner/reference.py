"""The float reference: onnxruntime on the imported ONNX model, up to its logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanner.extras import is_installed

if TYPE_CHECKING:
    import onnx

    from lanner.onnx import ImportedModel


class OnnxReference:
    """Runs an imported model with onnxruntime.

    Args:
        model: The model; its final softmax, sigmoid or arg-max is left out, so that the outputs are logits.
    """

    def __init__(self, model: ImportedModel) -> None:
        self._model = model
        self._session = _open(model)

    def logits(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """The logits of samples.

        Args:
            x: Shape (n, *input shape).

        Returns:
            Shape (n, outputs), with the score 0 before the one of a model of two classes.
        """
        try:
            outputs = self._run(x) if self._model.batched else self._run_singly(x)
        except Exception:  # noqa: BLE001 - onnxruntime raises errors of many kinds
            # A file may promise any batch and then reshape to a batch of one.
            outputs = self._run_singly(x)
        if outputs.shape[:1] != x.shape[:1]:
            # Or resize it to one.
            outputs = self._run_singly(x)
        scores = outputs.reshape(len(x), -1).astype(np.float32, copy=False)
        return np.pad(scores, ((0, 0), (1, 0))) if self._model.policy.two_classes else scores

    def _run_singly(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.concatenate([self._run(sample[np.newaxis]) for sample in x])

    def _run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self._session.run([self._model.logits], {self._model.input_name: x})[0])


def reference_of(model: ImportedModel) -> OnnxReference | None:
    """The reference of a model, or None where onnxruntime is absent or does not take the model's opset yet."""
    if not is_installed("onnxruntime"):
        return None
    try:
        return OnnxReference(model)
    except Exception:  # noqa: BLE001 - onnxruntime raises errors of many kinds
        return None


def _open(model: ImportedModel) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    import onnx

    truncated = onnx.ModelProto()
    truncated.CopyFrom(model.proto)
    del truncated.graph.output[:]
    truncated.graph.output.append(onnx.ValueInfoProto(name=model.logits))
    return open_exactly(truncated)


def open_exactly(model: onnx.ModelProto) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """A session of onnxruntime whose results are the same on every processor.

    Without instructions for products of bytes (VNNI), onnxruntime multiplies quantised layers by one that saturates in
    16 bits, unless it is asked not to: scores are then off by several steps of the quantiser.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
