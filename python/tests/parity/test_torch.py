"""PyTorch modules as `lanner.compile` takes them: float scores are the module's, and the integers stay close to them.

PyTorch is none of the requirements: where it is not installed, nothing of this runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanner

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
nn: Any = torch.nn

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RANDOM = np.random.default_rng(7)
SHAPES = {"image": (3, 16, 16), "vector": (20,), "sequence": (6, 16)}
X = {name: RANDOM.normal(size=(40, *shape)).astype(np.float32) for name, shape in SHAPES.items()}


def joined(function: Callable[..., Any], *parts: Any) -> Any:  # noqa: ANN401 - modules
    """A module that a function makes of several."""

    def forward(module: Any, x: Any) -> Any:  # noqa: ANN401 - a module and tensors
        return function(x, *module.children())

    made = type("Joined", (nn.Module,), {"forward": forward})()
    for index, part in enumerate(parts):
        made.add_module(f"part{index}", part)
    return made


def chain(*parts: Any) -> Any:  # noqa: ANN401 - modules
    return nn.Sequential(*parts)


def head(size: int) -> Any:  # noqa: ANN401 - a module
    return chain(nn.Flatten(), nn.Linear(size, 4))


def excited(x: Any, conv: Any, gate: Any, last: Any) -> Any:  # noqa: ANN401 - tensors and modules
    y = torch.relu(conv(x))
    return last((y * torch.sigmoid(gate(y.mean((2, 3))))[:, :, None, None]).mean((2, 3)))


def joined_channels(x: Any, one: Any, other: Any, last: Any) -> Any:  # noqa: ANN401 - tensors and modules
    return last(torch.cat([torch.relu(one(x)), other(x)], 1).mean((2, 3)))


MODULES: dict[str, tuple[str, Callable[[], Any]]] = {
    "gelu": ("vector", lambda: chain(nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 4))),
    "silu": ("vector", lambda: chain(nn.Linear(20, 16), nn.SiLU(), nn.Linear(16, 4))),
    "batch-norm": ("vector", lambda: chain(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))),
    "layer-norm": ("vector", lambda: chain(nn.Linear(20, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))),
    "group-norm": (
        "image",
        lambda: chain(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), head(8)),
    ),
    "prelu": ("image", lambda: chain(nn.Conv2d(3, 8, 3), nn.PReLU(8), nn.MaxPool2d(3, 2, 1), head(8 * 49))),
    "leaky": ("image", lambda: chain(nn.Conv2d(3, 8, 3, stride=2), nn.LeakyReLU(0.1), head(8 * 49))),
    "depthwise": (
        "image",
        lambda: chain(nn.Conv2d(3, 12, 3, padding=1, groups=3), nn.ReLU6(), nn.Conv2d(12, 8, 1), head(8 * 256)),
    ),
    "hard-swish": (
        "image",
        lambda: chain(nn.Conv2d(3, 8, 3), nn.Hardswish(), nn.AdaptiveAvgPool2d(7), head(8 * 49)),
    ),
    "upsampled": (
        "image",
        lambda: chain(nn.Conv2d(3, 4, 3, stride=2), nn.Upsample(scale_factor=2), head(4 * 196)),
    ),
    "transposed": ("image", lambda: chain(nn.ConvTranspose2d(3, 4, 2, stride=2), nn.ReLU(), head(4 * 1024))),
    "reflected": (
        "image",
        lambda: chain(nn.Conv2d(3, 4, 3, dilation=2, padding=2, padding_mode="reflect"), nn.ReLU(), head(4 * 256)),
    ),
    "conv1d": ("sequence", lambda: chain(nn.Conv1d(6, 8, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), head(64))),
    "gru": (
        "sequence",
        lambda: joined(lambda x, gru, last: last(gru(x)[0][:, -1]), nn.GRU(16, 10, batch_first=True), nn.Linear(10, 4)),
    ),
    "lstm": (
        "sequence",
        lambda: joined(
            lambda x, lstm, last: last(lstm(x)[0].mean(1)),
            nn.LSTM(16, 10, batch_first=True, bidirectional=True),
            nn.Linear(20, 4),
        ),
    ),
    "encoder": (
        "sequence",
        lambda: joined(
            lambda x, layer, last: last(layer(x).mean(1)),
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
            nn.Linear(16, 4),
        ),
    ),
    "joined": (
        "image",
        lambda: joined(joined_channels, nn.Conv2d(3, 5, 3, padding=1), nn.Conv2d(3, 3, 1), nn.Linear(8, 4)),
    ),
    "excited": ("image", lambda: joined(excited, nn.Conv2d(3, 6, 3), nn.Linear(6, 6), nn.Linear(6, 4))),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_keeps_its_scores(name: str) -> None:
    kind, made = MODULES[name]
    torch.manual_seed(1)
    module = made().eval()
    model = lanner.compile(module, X[kind], output="logits", name="module")
    with torch.no_grad():
        scores = module(torch.from_numpy(X[kind])).numpy()
    assert np.allclose(model.predict_float(X[kind]), scores, atol=1e-5)
    # What precision is aimed at where none is given: 0.5% of the range of a sample's scores, or of the median sample's.
    found, ranges = model.predict_fixed(X[kind]), np.ptp(scores, axis=1)
    assert (np.abs(found - scores).max(1) <= 0.005 * np.maximum(ranges, np.median(ranges)) + 1e-6).all()
    assert lanner.run(model, X[kind][0]).integers == model.predict_integers(X[kind][0])[0][0].tolist()


def test_a_module_in_training_is_taken_as_it_predicts_and_left_as_it_was() -> None:
    torch.manual_seed(1)
    module = chain(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
    module(torch.from_numpy(X["vector"]))
    model = lanner.compile(module, X["vector"], output="logits", name="module")
    assert module.training
    with torch.no_grad():
        scores = module.eval()(torch.from_numpy(X["vector"])).numpy()
    assert np.allclose(model.predict_float(X["vector"]), scores, atol=1e-5)


@pytest.mark.parametrize("dynamo", [False, True])
def test_files_of_either_exporter_are_taken(dynamo: bool, tmp_path: Any) -> None:  # noqa: ANN401 - a path
    if dynamo:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    torch.manual_seed(1)
    module = MODULES["depthwise"][1]().eval()
    path, sample = tmp_path / "module.onnx", torch.from_numpy(X["image"][:1])
    with contextlib.redirect_stdout(None):
        torch.onnx.export(module, (sample,), str(path), dynamo=dynamo)
    model = lanner.compile(path, X["image"], output="logits")
    with torch.no_grad():
        scores = module(torch.from_numpy(X["image"])).numpy()
    assert np.allclose(model.predict_float(X["image"]), scores, atol=1e-5)


def test_a_module_that_does_not_fit_the_samples_is_refused_in_a_sentence() -> None:
    with pytest.raises(lanner.ModelError, match="torch cannot export this module"):
        lanner.compile(nn.Linear(4, 2), X["vector"])
