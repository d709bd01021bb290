"""The tensors that a model's output policy reveals, and the answer to a request as JSON and binary data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanner.gateway.errors import Refused
from lanner.gateway.requests import InferenceRequest, WantedOutput
from lanner.gateway.sessions import Answer
from lanner.gateway.tensors import Tensor
from lanner.manifest import Manifest
from lanner.prediction import PHASES, Phase, Prediction


@dataclass(frozen=True, slots=True)
class OutputDescription:
    """An output that a policy reveals.

    Attributes:
        name: The output's name, which is that of the prediction's member.
        datatype: The type of its elements.
        shape: The shape for one sample.
        ranked: Whether it can be asked for as a list of best classes.
    """

    name: str
    datatype: str
    shape: tuple[int, ...] = ()
    ranked: bool = False

    def document(self) -> dict[str, Any]:
        """The output as the model's metadata tells it."""
        return {"name": self.name, "datatype": self.datatype, "shape": [-1, *self.shape]}


def outputs_of(manifest: Manifest) -> tuple[OutputDescription, ...]:
    """What a model's policy reveals, the most telling output first, and last whether activations saturated."""
    saturated = (OutputDescription("saturated", "BOOL"),) if manifest.reveals_saturation else ()
    return (*_results_of(manifest), *saturated)


def _results_of(manifest: Manifest) -> tuple[OutputDescription, ...]:
    label = OutputDescription("label", "INT64", ranked=True)
    named = () if manifest.classes is None else (OutputDescription("class_name", "BYTES"),)
    policy = manifest.document["policy"]

    def listed(count: int) -> tuple[OutputDescription, ...]:
        """The names of so many classes; none of what is not one for each class."""
        return () if manifest.classes is None else (OutputDescription("class_names", "BYTES", (count,)),)

    if "probability" in policy:
        return (OutputDescription("probability", "FP64", ranked=True), label, *named)
    if "top-k" in policy:
        k = int(policy["top-k"]["k"])
        return (OutputDescription("top", "INT64", (k,), ranked=True), label, *named, *listed(k))
    if manifest.outputs:
        return tuple(OutputDescription(output.name, "FP64", output.shape) for output in manifest.outputs)
    if policy in ("logits", "value") and manifest.is_map:
        return (OutputDescription("logits" if policy == "logits" else "values", "FP64", manifest.output_shape),)
    if manifest.places is not None:
        called = () if manifest.classes is None else (OutputDescription("class_names", "BYTES", manifest.places),)
        return (OutputDescription("labels", "INT64", manifest.places), *called)
    if policy == "logits":
        scores = _scores(manifest)
        # One score is that of two classes.
        names = listed(scores) if scores == len(manifest.classes or ()) else ()
        return (OutputDescription("logits", "FP64", (scores,), ranked=True), label, *named, *names)
    if policy == "value":
        return (OutputDescription("values", "FP64", (_scores(manifest),)),)
    if policy == "labels":
        return (OutputDescription("labels", "BOOL", (_scores(manifest),)), *listed(_scores(manifest)))
    return (label, *named)


def _scores(manifest: Manifest) -> int:
    """How many scores or quantities the network ends in."""
    return math.prod(manifest.document["network"]["nodes"][-1]["shape"])


def tensors(manifest: Manifest, answer: Answer) -> list[Tensor]:
    """Everything that a policy reveals of predictions."""
    wanted = (WantedOutput(each.name, None, False) for each in outputs_of(manifest))
    return [_tensor(output, manifest, answer.predictions) for output in wanted]


def check_outputs(wanted: Sequence[WantedOutput], manifest: Manifest) -> None:
    """Check, before anything is predicted, that the policy reveals what is asked for.

    Raises:
        Refused: If it does not.
    """
    revealed = {output.name: output for output in outputs_of(manifest)}
    for output in wanted:
        if output.name not in revealed:
            raise Refused(
                400, f"the model's policy {manifest.output} reveals no output {output.name!r} but {', '.join(revealed)}"
            )
        if output.classification is not None and not revealed[output.name].ranked:
            raise Refused(400, f"output {output.name!r} does not rank classes; leave `classification` out")
    if len({output.name for output in wanted}) < len(wanted):
        raise Refused(400, "an output is asked for twice")


def response(
    request: InferenceRequest, name: str, version: str, manifest: Manifest, answer: Answer
) -> tuple[bytes, int | None]:
    """The body of an answer, and the bytes of JSON in front where binary data follows."""
    wanted = request.outputs or [WantedOutput(each.name, None, request.binary) for each in outputs_of(manifest)]
    headers, parts = [], []
    for output in wanted:
        tensor = _tensor(output, manifest, answer.predictions)
        if output.binary:
            header, data = tensor.binary()
            headers.append(header)
            parts.append(data)
        else:
            headers.append(tensor.document())
    document: dict[str, Any] = {"model_name": name, "model_version": version}
    if request.identity is not None:
        document["id"] = request.identity
    document |= {"parameters": _parameters(manifest, answer), "outputs": headers}
    text = json.dumps(document, ensure_ascii=False).encode()
    return b"".join([text, *parts]), len(text) if parts else None


def costs(answer: Answer, manifest: Manifest) -> dict[str, Phase]:
    """What the predictions took by phase: the set-up once, as all of a session's predictions share it."""
    # Samples of one request have a part of its costs each, the set-up's too; and a session that began with kept
    # material is set up when that is used up. So the last request tells what the set-up took.
    count = len(answer.predictions)
    last = answer.predictions[(count - 1) // manifest.batch * manifest.batch :]
    return {
        name: sum(
            (prediction.phases[name] for prediction in (last if name == "setup" else answer.predictions)),
            start=Phase(0.0, 0, 0, 0),
        )
        for name in PHASES
    }


def _parameters(manifest: Manifest, answer: Answer) -> dict[str, Any]:
    """Policy, mode and cost, flat, since the protocol's parameters are single values."""
    told: dict[str, Any] = {
        "mode": manifest.mode,
        "output_policy": manifest.output,
        "commitment": manifest.commitment,
        "new_session": answer.opened,
        "seconds": answer.seconds,
    }
    for name, phase in costs(answer, manifest).items():
        told |= {
            f"{name}_seconds": phase.seconds,
            f"{name}_bytes_sent": phase.bytes_sent,
            f"{name}_bytes_received": phase.bytes_received,
            f"{name}_rounds": phase.rounds,
        }
    return told


def _tensor(output: WantedOutput, manifest: Manifest, predictions: Sequence[Prediction]) -> Tensor:
    if output.classification is not None:
        return _classification(output, manifest, predictions)
    datatype = next(each.datatype for each in outputs_of(manifest) if each.name == output.name)
    named = next((each for each in manifest.outputs if each.name == output.name), None)
    if named is not None:
        of_each = [each.values[output.name] for each in predictions if isinstance(each.values, dict)]
        return Tensor(output.name, datatype, np.array(of_each, np.float64).reshape(len(of_each), *named.shape))
    rows: list[object] = [getattr(prediction, output.name) for prediction in predictions]
    if manifest.places is not None:
        return Tensor(output.name, datatype, np.array(rows, _KINDS[datatype]).reshape(len(rows), *manifest.places))
    if output.name == "labels":
        rows = [[index in (each.labels or ()) for index in range(_scores(manifest))] for each in predictions]
    elif output.name == "class_names" and manifest.document["policy"] == "labels":
        # One for each class, as `labels` has, and empty where it does not hold.
        names = list(enumerate(manifest.classes or ()))
        rows = [[name if index in (each.labels or ()) else "" for index, name in names] for each in predictions]
    values = np.array(rows, _KINDS[datatype])
    if manifest.is_map and output.name in ("logits", "values"):
        values = values.reshape(len(rows), *manifest.output_shape)
    return Tensor(output.name, datatype, values)


_KINDS: Mapping[str, type[np.generic]] = {
    "BYTES": np.object_,
    "INT64": np.int64,
    "FP64": np.float64,
    "BOOL": np.bool_,
}


def _classification(output: WantedOutput, manifest: Manifest, predictions: Sequence[Prediction]) -> Tensor:
    """The best classes as ``VALUE:INDEX[:NAME]``, as many as were asked for and are revealed.

    A value is the score or the probability where the policy reveals one, and else ``nan``.
    """
    count = output.classification or 0
    rows = []
    for prediction in predictions:
        best = ranking(prediction, output.name)[:count]
        rows.append([_entry(value, index, manifest) for index, value in best])
    return Tensor(output.name, "BYTES", np.array(rows, np.object_))


def ranking(prediction: Prediction, output: str) -> list[tuple[int, float]]:
    """The classes that a prediction ranks, the best first, each with its value; ties go to the lowest index."""
    if prediction.logits is not None and output == "logits":
        # One score is that of class 1 of two, whose class 0 has the score 0.
        scores = prediction.logits if len(prediction.logits) > 1 else [0.0, *prediction.logits]
        return sorted(enumerate(scores), key=lambda each: (-each[1], each[0]))
    if prediction.top is not None and output == "top":
        return [(index, math.nan) for index in prediction.top]
    known = prediction.probability if output == "probability" else None
    return [] if prediction.label is None else [(prediction.label, math.nan if known is None else known)]


def _entry(value: float, index: int, manifest: Manifest) -> str:
    name = manifest.class_name(index)
    return f"{value:f}:{index}" + ("" if name is None else f":{name}")
