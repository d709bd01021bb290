"""The float reference: onnxruntime on the imported ONNX model, up to its logits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lanner.onnx import ImportedModel


class OnnxReference:
    """Runs an imported model with onnxruntime.

    Args:
        model: The model; its final softmax or arg-max is left out, so that the outputs are logits.
    """

    def __init__(self, model: ImportedModel) -> None:
        self._model = model

    def logits(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """The logits of samples.

        Args:
            x: Shape (n, *input shape).

        Returns:
            Shape (n, outputs).
        """
        batches = [x] if self._model.batched else [sample[np.newaxis] for sample in x]
        outputs = [self._session.run([self._model.logits], {self._model.input_name: batch})[0] for batch in batches]
        return np.concatenate(outputs).reshape(len(x), -1).astype(np.float32, copy=False)

    @cached_property
    def _session(self) -> Any:  # noqa: ANN401 - onnxruntime is untyped
        import onnx
        import onnxruntime

        truncated = onnx.ModelProto()
        truncated.CopyFrom(self._model.proto)
        del truncated.graph.output[:]
        truncated.graph.output.append(onnx.ValueInfoProto(name=self._model.logits))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(truncated.SerializeToString(), options, providers=["CPUExecutionProvider"])
