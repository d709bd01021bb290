"""Fixtures: small compiled models, saved once; and signals as a terminal would deliver them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lanner
from helpers.callers import Caller
from helpers.digits import DigitModels, compile_digit_models
from helpers.models import save_model, tiny_classifier, tiny_samples
from helpers.processes import Serving, gateway, serving
from helpers.times import pytest_runtest_call as pytest_runtest_call
from lanner.kernel_times import SHIPPED, VARIABLE


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Undo the ignored SIGINT that a background job inherits, here and in the processes that tests start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the user's lanner has kept, such as times of kernels, away from tests and their processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def tiny_onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ONNX file of `tiny_classifier`."""
    return save_model(tmp_path_factory.mktemp("onnx") / "tiny.onnx", tiny_classifier())


@pytest.fixture(scope="session")
def tiny_label(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny_classifier` compiled with policy ``label`` and class names."""
    return _compiled(tmp_path_factory, "tiny_label", output="label", classes=["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="session")
def tiny_logits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny_classifier` compiled with policy ``logits``."""
    return _compiled(tmp_path_factory, "tiny_logits", output="logits")


@pytest.fixture(scope="session")
def samples_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three samples for `tiny_classifier` as ``x`` with the float labels as ``y``."""
    path = tmp_path_factory.mktemp("samples") / "samples.npz"
    x = tiny_samples(3, seed=5)
    y = lanner.compile(tiny_classifier(), tiny_samples()).predict_float(x).argmax(1)
    np.savez(path, x=x, y=y)
    return path


@pytest.fixture(scope="session")
def digit_models(tmp_path_factory: pytest.TempPathFactory) -> DigitModels:
    """Networks for digits under several output policies."""
    return compile_digit_models(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="session")
def behind(digit_models: DigitModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of `digit_models`, for gateways."""
    with serving(tmp_path_factory.mktemp("behind"), *digit_models.files) as server:
        yield server


@pytest.fixture(scope="session")
def gate(digit_models: DigitModels, behind: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A gateway to all models of `behind`, on loopback."""
    names = [word for name in digit_models.models for word in ("--model", name)]
    with gateway(tmp_path_factory.mktemp("gate"), behind.address, *behind.pin, *names) as process:
        yield process


@pytest.fixture
def call(gate: Serving) -> Caller:
    """A caller of `gate`."""
    return Caller(gate.document["url"])


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test's keys and material apart, and away from the user's."""
    monkeypatch.setenv("LANNER_HOME", str(tmp_path / "lanner-state"))


@pytest.fixture(autouse=True)
def _shipped_kernel_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate, and have mode auto choose, as on any other machine; nothing is measured."""
    monkeypatch.setenv(VARIABLE, SHIPPED)


def _compiled(factory: pytest.TempPathFactory, name: str, **options: object) -> Path:
    path = factory.mktemp(name) / f"{name}.lanner"
    model = lanner.compile(tiny_classifier(), tiny_samples(), name=name, **options)  # type: ignore[arg-type]
    model.save(path)
    return path
