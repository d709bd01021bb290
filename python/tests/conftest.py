"""Fixtures: small compiled models, saved once; and signals as a terminal would deliver them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lanner
from helpers.models import save_model, tiny_classifier, tiny_samples


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Undo the ignored SIGINT that a background job inherits, here and in the processes that tests start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test's keys and material apart, and away from the user's."""
    monkeypatch.setenv("LANNER_HOME", str(tmp_path / "lanner-state"))


def _compiled(factory: pytest.TempPathFactory, name: str, **options: object) -> Path:
    path = factory.mktemp(name) / f"{name}.lanner"
    model = lanner.compile(tiny_classifier(), tiny_samples(), name=name, **options)  # type: ignore[arg-type]
    model.save(path)
    return path
