"""Trained recurrent networks, on sensor frames and speech, from a folder of data.

Two come as ONNX files: EdgeML's FastGRNN on rows of digits (USPS) and ARM's LSTM on keywords. Two are written here
from trained weights, unrolled as exporters do it: SIRNN's FastGRNN on keywords (Google-30), whose 8-bit weights SeeDot
quantised, and EdgeML's shallow recurrent network (Google-13), whose second layer goes over what the first makes of
each brick of frames.

FastGRNN and FastRNN are of Kusupati et al. 2018, shallow recurrent networks of Dennis et al. 2019, and SIRNN
(RRGRKC21) predicts with the first of these in private.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from lanner.benchmarks.graphs import Built
from lanner.benchmarks.networks import trained
from lanner.embedded import CALIBRATION_SAMPLES
from lanner.errors import InputError
from lanner.options import Protocols

Array = NDArray[np.float32]

OPSET = 17


@dataclass(frozen=True, slots=True)
class Recurrent:
    """A network with inputs that it is for.

    Attributes:
        model: The network.
        samples: Inputs, (n, *input shape).
        scores: What its authors' own program makes of them, (n, classes), where that is known.
    """

    model: onnx.ModelProto
    samples: Array
    scores: Array | None


def build_recurrent(name: str, data: Path, protocols: Protocols) -> Built:
    """A network of `NETWORKS`, compiled on all samples but the last, which is returned.

    Raises:
        InputError: If the folder lacks a file of it.
    """
    network = load_recurrent(name, data)
    samples = network.samples[-CALIBRATION_SAMPLES - 1 :]
    return trained(network.model, name, samples, protocols)


def load_recurrent(name: str, data: Path) -> Recurrent:
    """A network of `NETWORKS` with inputs.

    Raises:
        InputError: If the folder lacks a file of it, or one is damaged.
    """
    try:
        return NETWORKS[name](data)
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{name} cannot be read ({error})", where=str(data), fix="give the folder with --data"
        ) from None


def fastgrnn_usps(data: Path) -> Recurrent:
    """EdgeML's FastGRNN: digits of 16 rows, 32 units, weights of rank 5."""
    model = onnx.load(data / "models" / "usps_fastgrnn_lr" / "model.onnx")
    with np.load(data / "usps" / "usps_t_libsvm_test.npz") as file:
        return Recurrent(model, file["images"], file["fastgrnn_lr_logits"])


def lstm_keywords(data: Path) -> Recurrent:
    """ARM's basic LSTM (Zhang et al. 2017): 49 frames of 10 coefficients, 118 units, 12 keywords."""
    model = onnx.load(data / "models" / "kws_arm_basic_lstm_s" / "model.onnx")
    with np.load(data / "mlperf_tiny" / "kws01_mfcc_int8.npz") as file:
        frames = (file["mfcc_int8"].astype(np.float32) - file["zero_point"]) * file["scale"]
    return Recurrent(model, frames.astype(np.float32), None)


def fastgrnn_google30(data: Path) -> Recurrent:
    """SIRNN's FastGRNN: 99 frames of 32 features, 100 units, weights of rank 16 and 35, 30 keywords.

    There is one input, whose scores are those of 8-bit integers; the others here are the same frames begun elsewhere.
    """
    with np.load(data / "rnn" / "fastgrnn_google30_int8.npz") as file:
        held = {key: np.asarray(file[key], np.float64) for key in file.files}
    frames = held["x"]
    network = _Network(frames.shape)
    tensors = {
        "W1": held["W1"] / 2**7,
        "W2": held["W2"] / 2**7,
        "U1": held["U1"] / 2**5,
        "U2": held["U2"] / 2**5,
        "b_gate": held["Bg"] / 8,
        "b_new": held["Bh"] / 8,
        "FC": held["FC"] / 8,
        "b_scores": held["FCbias"] / 8,
        "minus_zeta": -held["zeta_q15"] / 2**15,
        "zeta_plus_nu": held["zeta_q15"] / 2**15 + held["nu_q21"] / 2**21,
    }
    for name, tensor in tensors.items():
        network.hold(name, tensor)
    state = ""
    for step, frame in enumerate(network.split("x", len(frames), "frame")):
        state = network.fastgrnn(f"t{step}", frame, state)
    network.linear("scores", state, "FC", "b_scores")
    shifted = np.stack([np.roll(frames, step, axis=0) for step in range(len(frames))][::-1])
    return Recurrent(network.finish("fastgrnn_google30", 30), shifted.astype(np.float32), None)


def srnn_google13(data: Path) -> Recurrent:
    """EdgeML's shallow network of two FastRNN layers: 6 bricks of 8 frames of 32 features, 16 units, 13 keywords."""
    weights = _read_safetensors(data / "rnn" / "srnn_fastrnn_google13.safetensors")
    with np.load(data / "rnn" / "srnn_fastrnn_google13_100samples.npz") as file:
        x, scores = file["x"], file["logits_reference"]
    bricks, frames = x.shape[1:3]
    network = _Network(x.shape[1:])
    for layer in ("0", "1"):
        for name in ("W", "U", "b"):
            network.hold(f"{name}{layer}", weights[f"{name}{layer}"])
        for name in ("alpha", "beta"):
            network.hold(f"{name}{layer}", 1 / (1 + np.exp(-weights[f"{name}{layer}_presigmoid"])))
    network.hold("FC", weights["fcW"])
    network.hold("b_scores", weights["fcB"])
    state = ""
    # The first layer takes a frame of every brick at once.
    for step, frame in enumerate(network.split("x", frames, "frame", 2)):
        state = network.fastrnn(f"layer0/t{step}", "0", frame, state)
    last = ""
    for step, brick in enumerate(network.split(state, bricks, "brick")):
        last = network.fastrnn(f"layer1/t{step}", "1", brick, last)
    network.linear("scores", last, "FC", "b_scores")
    return Recurrent(network.finish("srnn_google13", 13), x, scores)


class _Network:
    """Collects the nodes of an unrolled network with input ``x`` and output ``scores``, and its weights."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def hold(self, name: str, tensor: NDArray[Any]) -> None:
        self._weights.append(numpy_helper.from_array(tensor.astype(np.float32), name))

    def split(self, x: str, steps: int, part: str, axis: int = 1) -> list[str]:
        """Cut a value along an axis, which goes."""
        self._weights.append(numpy_helper.from_array(np.array([axis]), f"{part}_axis"))
        self._weights.append(numpy_helper.from_array(np.ones(steps, np.int64), f"{part}_sizes"))
        cut = [f"{part}{step}_cut" for step in range(steps)]
        self._nodes.append(helper.make_node("Split", [x, f"{part}_sizes"], cut, name=f"{part}s", axis=axis))
        return [self._add("Squeeze", f"{part}{step}", cut[step], f"{part}_axis") for step in range(steps)]

    def linear(self, name: str, x: str, weight: str, bias: str) -> str:
        """``x weight + bias``."""
        return self._add("Add", name, self._add("MatMul", f"{name}/product", x, weight), bias)

    def fastgrnn(self, name: str, x: str, before: str) -> str:
        """``g h + (zeta (1 - g) + nu) c`` with the gate g and the candidate c of one sum."""
        total = self._low_rank(f"{name}/x", x, "W1", "W2")
        if before:
            total = self._add("Add", f"{name}/sum", total, self._low_rank(f"{name}/h", before, "U1", "U2"))
        gate = self._add("Sigmoid", f"{name}/g", self._add("Add", f"{name}/g_sum", total, "b_gate"))
        new = self._add("Tanh", f"{name}/c", self._add("Add", f"{name}/c_sum", total, "b_new"))
        share = self._add("Add", f"{name}/share", self._add("Mul", f"{name}/rest", gate, "minus_zeta"), "zeta_plus_nu")
        taken = self._add("Mul", f"{name}/taken", share, new)
        if not before:
            return taken
        return self._add("Add", f"{name}/h_new", self._add("Mul", f"{name}/kept", gate, before), taken)

    def fastrnn(self, name: str, layer: str, x: str, before: str) -> str:
        """``alpha sigmoid(x W + h U + b) + beta h``."""
        total = self._add("MatMul", f"{name}/x", x, f"W{layer}")
        if before:
            total = self._add("Add", f"{name}/sum", total, self._add("MatMul", f"{name}/h", before, f"U{layer}"))
        gate = self._add("Sigmoid", f"{name}/g", self._add("Add", f"{name}/biased", total, f"b{layer}"))
        taken = self._add("Mul", f"{name}/taken", gate, f"alpha{layer}")
        if not before:
            return taken
        return self._add("Add", f"{name}/h_new", taken, self._add("Mul", f"{name}/kept", before, f"beta{layer}"))

    def finish(self, name: str, classes: int) -> onnx.ModelProto:
        entry = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", *self._shape])
        leave = helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["n", classes])
        graph = helper.make_graph(self._nodes, name, [entry], [leave], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def _low_rank(self, name: str, x: str, first: str, second: str) -> str:
        return self._add("MatMul", name, self._add("MatMul", f"{name}_low", x, first), second)

    def _add(self, operator: str, name: str, *inputs: str) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name))
        return name


def _read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors of a file of float32 weights."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    entries: dict[str, Any] = json.loads(content[8:start])
    entries.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], "<f4"
        ).reshape(entry["shape"])
        for name, entry in entries.items()
    }


#: What reads each network from a folder of data.
NETWORKS: dict[str, Callable[[Path], Recurrent]] = {
    "fastgrnn_usps": fastgrnn_usps,
    "srnn_google13": srnn_google13,
    "lstm_keywords": lstm_keywords,
    "fastgrnn_google30": fastgrnn_google30,
}
