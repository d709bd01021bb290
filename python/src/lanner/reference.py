"""The float reference: onnxruntime on the imported ONNX model, up to its logits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanner.extras import is_installed
from lanner.named import decode_inputs, factor_for, largest

if TYPE_CHECKING:
    import onnx

    from lanner.onnx import Frame, ImportedModel


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
            Shape (n, outputs), with the score 0 before the one of a model of two classes; of several outputs one after
            another, and of a map with a label at each place the scores of one place after another.
        """
        scores = np.concatenate(self._by_output(x), axis=1)
        policy = self._model.policy
        if policy.class_axis is not None:
            places = list(self._model.graph.output_shape)
            places.insert(policy.class_axis, places.pop())
            return np.moveaxis(scores.reshape(len(x), *places), policy.class_axis + 1, -1).reshape(len(x), -1)
        return np.pad(scores, ((0, 0), (1, 0))) if policy.two_classes else scores

    def largest(self, x: NDArray[np.float32]) -> list[float]:
        """The largest magnitude of each output on samples."""
        return [largest(values) for values in self._by_output(x)]

    def _by_output(self, x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Each output's values, shape (n, size)."""
        try:
            outputs = self._run(x) if self._model.batched else self._run_singly(x)
        except Exception:  # noqa: BLE001 - onnxruntime raises errors of many kinds
            # A file may promise any batch and then reshape to a batch of one.
            outputs = self._run_singly(x)
        if any(output.shape[:1] != x.shape[:1] for output in outputs):
            # Or resize it to one.
            outputs = self._run_singly(x)
        return [output.reshape(len(x), -1).astype(np.float32, copy=False) for output in outputs]

    def _run_singly(self, x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        each = [self._run(sample[np.newaxis]) for sample in x]
        # An output may have its samples elsewhere than first, or no axis for the only one.
        return [np.concatenate([output.reshape(1, -1) for output in outputs]) for outputs in zip(*each, strict=True)]

    def _run(self, x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        return [np.asarray(output) for output in self._session.run(list(self._model.logits), self._feed(x))]

    def _feed(self, x: NDArray[np.float32]) -> dict[str, NDArray[np.generic]]:
        """Samples as the file has them."""
        entries = self._model.entries
        if not self._model.named:
            return {entries[0].named.name: x}
        arrays = decode_inputs(self._model.named, x)
        return {entry.named.name: entry.with_batch(arrays[entry.named.name]) for entry in entries}


def measure(model: ImportedModel, frame: Frame, samples: NDArray[np.float32]) -> Frame:
    """What the samples say of several outputs, which share one unit, and of scores that a private mask is added to.

    Returns:
        The same frame where nothing is asked, or there is no onnxruntime.
    """
    if len(model.outputs) > 1 and (reference := reference_of(model)) is not None:
        frame = replace(frame, gains=dict(zip(frame.outputs, map(factor_for, reference.largest(samples)), strict=True)))
    if model.masked and (reference := reference_of(replace(model, logits=model.masked))) is not None:
        # A position that is masked must weigh nothing beside any other, whatever its score.
        bounds = {
            name: 4.0 * most + _HIDDEN for name, most in zip(model.masked, reference.largest(samples), strict=True)
        }
        frame = replace(frame, bounds=bounds)
    return frame


def outvoted(model: ImportedModel, samples: NDArray[np.float32]) -> int:
    """Of how many samples the nearest neighbours elect another class than in the file, which stops among equals.

    0 where the model has none, or there is no onnxruntime.
    """
    if model.voted is None or not is_installed("onnxruntime"):
        return 0
    elected = []
    for proto in (model.voted.proto, model.proto):
        votes = OnnxReference(replace(model, proto=proto, logits=model.voted.votes))._by_output(samples)
        elected.append(np.concatenate(votes, axis=1).argmax(1))
    return int((elected[0] != elected[1]).sum())


#: Exponentials this far below the largest are less than a unit of any output: 2^-28.
_HIDDEN = 20.0


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

    from lanner.onnx.unused import leave_out_unused

    truncated = onnx.ModelProto()
    truncated.CopyFrom(model.proto)
    del truncated.graph.output[:]
    truncated.graph.output.extend(onnx.ValueInfoProto(name=name) for name in model.logits)
    read = {entry.named.name for entry in model.entries} | {tensor.name for tensor in truncated.graph.initializer}
    inputs = [entry for entry in truncated.graph.input if entry.name in read]
    del truncated.graph.input[:]
    truncated.graph.input.extend(inputs)
    leave_out_unused(truncated.graph)
    return open_exactly(truncated)


def open_exactly(model: onnx.ModelProto) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """A session of onnxruntime whose results are the same on every processor.

    Without instructions for products of bytes (VNNI), onnxruntime multiplies quantised layers by one that saturates in
    16 bits, unless it is asked not to: scores are then off by several steps of the quantiser.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # What it logs as an error it raises, too.
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
