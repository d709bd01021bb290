"""Takes one model through inspection, compilation and private predictions, and compares with onnxruntime."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from wild.fetch import FetchError, fetch
from wild.listed import Listed
from wild.samples import Samples, draw
from wild.unrounded import rounds, unrounded

#: How many predictions are made in private.
PREDICTIONS = 2

#: The largest error that is right, as a part of the scores' range: the default precision, and what calibration on
#: other samples leaves of it.
LARGEST_ERROR = 0.01

#: What a model is found to be.
VERDICTS = ("accepted", "wrong", "refused", "over the limit", "broken")


@dataclass(frozen=True, slots=True)
class Limits:
    """What each command may take.

    Attributes:
        seconds: Seconds.
        memory: Bytes of address space of one process.
    """

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended, or was ended.

    Attributes:
        code: Its exit code; None where it took too long.
        told: What it printed.
        seconds: How long it took.
    """

    code: int | None
    told: str
    seconds: float

    @property
    def document(self) -> dict[str, Any]:
        """The JSON that it printed; empty where that is none."""
        try:
            found = json.loads(self.told)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def run(model: Listed, folder: Path, limits: Limits) -> dict[str, Any]:
    """Try a model; what was found, as a document."""
    document: dict[str, Any] = {
        "name": model.name,
        "package": model.package,
        "version": model.version,
        "registry": model.registry,
        "file": model.file,
        "task": model.task,
        "options": list(model.options),
    }
    try:
        path = fetch(model, folder)
    except FetchError as error:
        return {**document, "verdict": "broken", "reason": str(error)}
    with tempfile.TemporaryDirectory(prefix="lanner-wild-") as work:
        return {**document, "bytes_of_file": path.stat().st_size, **_tried(model, path, Path(work), limits)}


def _tried(model: Listed, path: Path, work: Path, limits: Limits) -> dict[str, Any]:
    typical, tested = draw(model, model.calibration), draw(model, PREDICTIONS, tested=True)
    calibration, given = _saved(work / "calibration", typical), _saved(work / "test", tested)
    inspected = _lanner(["inspect", str(path), *model.inspected, "--json"], limits)
    found: dict[str, Any] = {"inspect": {"code": inspected.code, "seconds": round(inspected.seconds, 1)}}
    if inspected.code != 0:
        return {**found, **_stopped("inspect", inspected)}
    target = work / "model.lanner"
    command = ["compile", str(path), "-o", str(target), "--calibration", str(calibration), *model.options]
    compiled = _lanner([*command, "--json"], limits)
    found["compile"] = {"code": compiled.code, "seconds": round(compiled.seconds, 1)}
    if compiled.code != 0:
        return {**found, **_stopped("compile", compiled)}
    predicted = _lanner(["run", str(target), str(given), "--json"], limits)
    found["run"] = {"code": predicted.code, "seconds": round(predicted.seconds, 1)}
    if predicted.code != 0:
        return {**found, **_stopped("run", predicted)}
    predictions = predicted.document["predictions"]
    document = onnx.load(path)
    session = opened(unrounded(document) if rounds(document) else document, model)
    wanted = np.stack([floats(session, model, sample) for sample in _each(tested)])
    width = float(np.ptp(np.stack([floats(session, model, sample) for sample in _each(typical)])))
    verdict = compare(predictions, wanted, width)
    if rounds(document) and width > 0.0:
        as_it_is = opened(document, model)
        rounded = np.stack([floats(as_it_is, model, sample) for sample in _each(tested)])
        verdict["own_rounding"] = float(np.abs(rounded - wanted).max() / width)
    return {**found, **cost(predictions), **verdict}


def compare(predictions: Sequence[Mapping[str, Any]], wanted: NDArray[np.float64], width: float) -> dict[str, Any]:
    """What predictions are beside onnxruntime's outputs, (n, numbers): right, or by how much they are not.

    Args:
        predictions: As `lanner run --json` prints them.
        wanted: The outputs that the model file gives, those that were asked for one after another.
        width: The range of these outputs on the calibration samples.
    """
    got = [_numbers(prediction) for prediction in predictions]
    told = {"saturated": True} if any(prediction.get("saturated") for prediction in predictions) else {}
    if any(each is None for each in got):
        right = sum(
            prediction["label"] == int(row.argmax()) for prediction, row in zip(predictions, wanted, strict=True)
        )
        verdict = "accepted" if right == len(predictions) else "wrong"
        return {"verdict": verdict, "labels": f"{right} of {len(predictions)}", **told}
    values = np.stack([np.ravel(each) for each in got if each is not None])
    if values.shape != wanted.shape:
        reason = f"{values.shape[1]} numbers came, and onnxruntime has {wanted.shape[1]}"
        return {"verdict": "wrong", "reason": reason, **told}
    if not np.isfinite(wanted).all() or width == 0.0:
        return {"verdict": "broken", "reason": "onnxruntime's outputs are not finite, or all the same", **told}
    error = float(np.abs(values - wanted).max() / width)
    return {"verdict": "accepted" if error <= LARGEST_ERROR else "wrong", "error": error, **told}


def cost(predictions: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean seconds and bytes of a prediction, what was prepared for it included, and of the session's set-up."""
    phases = [prediction["phases"] for prediction in predictions]
    own = [phase for told in phases for name, phase in told.items() if name != "setup"]
    sent = sum(phase["bytes_sent"] + phase["bytes_received"] for phase in own)
    setup = phases[0].get("setup", {"bytes_sent": 0, "bytes_received": 0})
    return {
        "seconds": sum(phase["seconds"] for phase in own) / len(predictions),
        "bytes": sent / len(predictions),
        "setup_bytes": setup["bytes_sent"] + setup["bytes_received"],
    }


def opened(document: onnx.ModelProto, model: Listed) -> onnxruntime.InferenceSession:
    """A file in onnxruntime, with the inputs' shapes that the options name where it fixes others."""
    changed = False
    for entry in document.graph.input:
        sides = entry.type.tensor_type.shape.dim
        for side, size in zip(sides, model.shapes.get(entry.name, ()), strict=False):
            if side.dim_value not in (0, size):
                side.dim_value, changed = size, True
    if changed:
        # What follows from the sizes that were.
        document.graph.ClearField("value_info")
        for entry in document.graph.output:
            entry.type.tensor_type.ClearField("shape")
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    return onnxruntime.InferenceSession(document.SerializeToString(), quiet, providers=["CPUExecutionProvider"])


def floats(session: onnxruntime.InferenceSession, model: Listed, sample: Mapping[str, Samples]) -> NDArray[np.float64]:
    """The outputs asked for, of one sample, one after another."""
    fed = {name: np.expand_dims(value, model.inputs[name].axis) for name, value in sample.items()}
    for entry in session.get_inputs():
        if entry.name in model.fixed:
            kind = np.int64 if "int64" in entry.type else np.float32
            sides = [side if isinstance(side, int) else 1 for side in entry.shape]
            fed[entry.name] = np.full(sides, model.fixed[entry.name], kind)
    names = model.outputs or (session.get_outputs()[0].name,)
    known = {entry.name for entry in session.get_inputs()}
    values = session.run(list(names), {name: value for name, value in fed.items() if name in known})
    return np.concatenate([np.ravel(value).astype(np.float64) for value in values])


def sentence(done: Done) -> str:
    """The first reason that a command gave for ending; its last line where it gave none."""
    error = done.document.get("error", {})
    if nodes := done.document.get("refusals") or error.get("nodes"):
        first = nodes[0]
        return "; ".join(part for part in (first.get("reason", ""), first.get("fix", "")) if part)
    if error:
        parts = (error.get("what"), error.get("fix"))
        return "; ".join(part for part in parts if part)
    return (done.told.strip().splitlines() or ["nothing was said"])[-1][:300]


def _stopped(step: str, done: Done) -> dict[str, Any]:
    """The verdict on a command that did not succeed: a refusal has its exit code and a sentence."""
    if done.code is None:
        return {"verdict": "over the limit", "reason": f"{step} took longer than the limit", "step": step}
    if done.code in (2, 3, 6):
        return {"verdict": "refused", "reason": sentence(done), "step": step}
    return {"verdict": "broken", "reason": f"exit code {done.code}: {sentence(done)}", "step": step}


def _numbers(prediction: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """The numbers that a prediction reveals; None of a label."""
    values = prediction.get("values")
    if isinstance(values, dict):
        return np.concatenate([np.ravel(each) for each in values.values()])
    for name in ("values", "logits"):
        if prediction.get(name) is not None:
            return np.asarray(prediction[name], np.float64)
    return None


def _each(samples: Mapping[str, Samples]) -> list[dict[str, Samples]]:
    count = len(next(iter(samples.values())))
    return [{name: value[index] for name, value in samples.items()} for index in range(count)]


def _saved(path: Path, samples: Mapping[str, Samples]) -> Path:
    """A file of samples as `--calibration` takes it."""
    if len(samples) == 1:
        path = path.with_suffix(".npy")
        np.save(path, next(iter(samples.values())))
    else:
        path = path.with_suffix(".npz")
        np.savez(path, allow_pickle=False, **dict(samples))
    return path


def _lanner(arguments: Sequence[str], limits: Limits) -> Done:
    start = time.monotonic()

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))

    process = subprocess.Popen(
        [sys.executable, "-m", "lanner", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=bounded,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return Done(None, "", time.monotonic() - start)
    return Done(process.returncode, out if out.strip() else err, time.monotonic() - start)
