"""The rule for every network that a user brings: it agrees with onnxruntime, or it is refused with every reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import lanner
from lanner.errors import ModelError
from lanner.inputs import as_batch
from lanner.onnx import ImportedModel, import_model
from lanner.onnx.ending import ENDINGS
from lanner.onnx.registry import supported_operators
from lanner.reference import open_exactly

#: How far float results may be from onnxruntime's, of their range: what another order of sums leaves.
FLOAT_TOLERANCE = 1e-4

#: Modes that a network is compiled for.
MODES = ("gazelle", "falcon", "cheetah")

#: As many samples as the largest batch that a file here fixes.
SAMPLES = 8


@dataclass(frozen=True)
class Brought:
    """A network as a user brings it.

    Attributes:
        name: What a test calls it.
        make: Gives the network, or the path of its file.
        tolerance: How far float results may be from onnxruntime's, of their range.
    """

    name: str
    make: Callable[[], onnx.ModelProto | Path]
    tolerance: float = FLOAT_TOLERANCE

    def load(self) -> onnx.ModelProto:
        """The network as it is in its file."""
        made = self.make()
        return onnx.load(str(made)) if isinstance(made, Path) else made


def compiled(brought: Brought, mode: str = "auto") -> tuple[lanner.Model, NDArray[np.float32]] | None:
    """The compiled network with samples, after checking the float half of the rule; None where it is refused.

    A test of integers or of secure runs goes on from here.
    """
    proto = brought.load()
    try:
        imported = import_model(proto, "logits")
        drawn = _drawn(imported, proto.graph)
        model = lanner.compile(proto, drawn, mode=mode, output="logits", name=brought.name)
        samples = as_batch(drawn, model.manifest.input)
    except ModelError as error:
        check_refusal(proto, error)
        return None
    expected = _run(proto, drawn)
    spread = float(np.ptp(expected)) or 1.0
    given = [ended for ended in _endings(model.native.float(samples)) if ended.shape == expected.shape]
    apart = min(float(np.abs(ended - expected).max()) for ended in given) / spread
    assert apart <= brought.tolerance, f"{brought.name} is {apart:.2g} of the range {spread:.3g} from onnxruntime"
    return model, samples


def check_modes(brought: Brought, *, secure: bool) -> None:
    """Check that a network that is taken is as precise as asked in each mode; if wanted, a secure run too."""
    for mode in MODES:
        taken = compiled(brought, mode)
        if taken is None:
            return
        model, samples = taken
        assert model.precision is not None
        assert model.precision.is_met, f"{brought.name} in mode {mode} is off by {model.precision.reached}"
        assert np.isclose(_error(model, samples), model.precision.logit_error, rtol=1e-3, atol=1e-6)
        if secure:
            (expected,), _ = model.predict_integers(samples[:1])
            assert lanner.run(model, samples[:1]).integers == expected.tolist(), f"{brought.name} in mode {mode}"


def _error(model: lanner.Model, samples: NDArray[np.float32]) -> float:
    """The largest error of a score of its sample's range or the median one's, or, of one score, of all samples'."""
    exact, fixed = model.native.float(samples).astype(np.float64), model.predict_fixed(samples)
    ranges = np.ptp(exact, axis=1) if exact.shape[1] > 1 else np.full(len(exact), np.ptp(exact))
    usual = np.sort(ranges)[len(ranges) // 2] or np.ptp(exact) or np.abs(exact).max() or 1.0
    return float((np.abs(fixed - exact).max(1) / np.maximum(ranges, usual)).max())


def check_refusal(proto: onnx.ModelProto, error: ModelError) -> None:
    """Check that a refusal says what, where and what to do of each reason, and that none is missing."""
    if "scores are off by" in error.what or "there is no model to protect" in error.what:
        # It is a question of precision, or of the whole network, and no operator's fault.
        return
    assert error.nodes, f"no list: {error!r}"
    assert str(error).startswith(str(error.nodes[0]).partition("; ")[0].partition(" (and ")[0][:40])
    others = len(error.nodes) - 1
    assert (f"(and {others} more" in error.what) == (others > 0)
    for reason in error.nodes:
        assert reason.what
        assert reason.fix, f"no remedy: {reason}"
    if len(proto.graph.output) == 1:
        missing = _unlowered(proto) - {reason.node for reason in error.nodes}
        assert not missing, f"not told: {missing}"


def _unlowered(proto: onnx.ModelProto) -> set[str]:
    """The nodes between input and output whose operator no lowering takes, apart from those that follow from shapes."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    secret = {entry.name for entry in proto.graph.input} - constants
    reached = []
    for node in proto.graph.node:
        if node.op_type not in ("Shape", "Size") and secret.intersection(node.input):
            secret.update(node.output)
            reached.append(node)
    needed, unlowered = {proto.graph.output[0].name}, set()
    known = {*supported_operators(), *ENDINGS}
    for node in reversed(reached):
        if needed.intersection(node.output):
            needed.update(node.input)
            domain = node.domain if node.domain not in ("", "ai.onnx") else ""
            if ".".join(filter(None, (domain, node.op_type))) not in known:
                unlowered.add(node.name or node.output[0])
    return unlowered


def _drawn(imported: ImportedModel, graph: onnx.GraphProto) -> dict[str, NDArray[np.float32]]:
    """Samples by input as the file has them: standard normal numbers, or whole ones, as a type holds them."""
    rng = np.random.default_rng(1)
    kinds = {entry.name: entry.type.tensor_type.elem_type for entry in graph.input}
    drawn = {}
    for entry in imported.entries:
        named, dtype = entry.named, onnx.helper.tensor_dtype_to_np_dtype(kinds[entry.named.name])
        size = (SAMPLES, *named.shape)
        values = rng.standard_normal(size) if dtype.kind == "f" else rng.integers(0, named.choices or 100, size)
        drawn[named.name] = values.astype(dtype).astype(np.float32)
    return drawn


def _run(proto: onnx.ModelProto, samples: dict[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    """What onnxruntime makes of the samples, one row each, in batches that the file takes."""
    session = open_exactly(proto)
    inputs = [entry for entry in session.get_inputs() if entry.name in samples]
    given = {entry.name: samples[entry.name].astype(_TYPES[entry.type]) for entry in inputs}
    batch = inputs[0].shape[0]
    size = batch if isinstance(batch, int) else SAMPLES
    # Labels stand beside scores, and before them.
    scores = [output.name for output in session.get_outputs() if output.type in _FLOATS] or None
    parts = []
    for at in range(0, SAMPLES, size):
        fed = {name: values[at : at + size] for name, values in given.items()}
        parts.append(_numbers(session.run(scores, fed)[-1]))
    return np.asarray(np.concatenate(parts).reshape(SAMPLES, -1), np.float64)


#: Types by onnxruntime's names.
_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int64)": np.int64,
}
_FLOATS = ("tensor(float)", "tensor(float16)")


def _numbers(value: Any) -> NDArray[Any]:  # noqa: ANN401 - of onnxruntime
    """A tensor, or the numbers of a list of numbers by class."""
    return np.array([list(entry.values()) for entry in value]) if isinstance(value, list) else np.asarray(value)


def _endings(logits: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """What an operator at the end, which lanner leaves to the output policy, may make of logits."""
    scores: NDArray[np.float64] = logits.astype(np.float64)
    shifted: NDArray[np.float64] = scores - scores.max(1, keepdims=True)
    logarithms: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    probabilities: NDArray[np.float64] = np.exp(logarithms)
    labels: NDArray[np.float64] = scores.argmax(1, keepdims=True).astype(np.float64)
    likely: NDArray[np.float64] = 1 / (1 + np.exp(-scores))
    # A sigmoid is the probability of the second of two classes.
    both = np.concatenate([1 - likely, likely], 1)
    return [scores, probabilities, probabilities[:, 1:], likely, both, logarithms, labels]
