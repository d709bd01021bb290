"""Weights in files next to the model: read from its folder, and from nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import external_data_helper

from helpers.models import tiny_classifier
from lanner.errors import ModelError
from lanner.onnx import import_model


def saved(folder: Path, location: str = "tiny.data") -> Path:
    """A classifier whose weights are in a file next to it; the model says that they are at `location`."""
    path = folder / "tiny.onnx"
    onnx.save(tiny_classifier(), str(path), save_as_external_data=True, location="tiny.data", size_threshold=0)
    model = onnx.load(str(path), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_next_to_the_model_are_read(tmp_path: Path) -> None:
    expected = import_model(tiny_classifier()).graph.tensors
    tensors = import_model(saved(tmp_path)).graph.tensors
    assert all(np.array_equal(tensors[name], expected[name]) for name in expected)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "tiny.data").unlink()
    with pytest.raises(ModelError, match=r"weights are in the file tiny\.data, which is not there; copy tiny\.data"):
        import_model(path)


@pytest.mark.parametrize("location", ["../tiny.data", "/etc/hostname", "a/../../tiny.data", "", "C:\\tiny.data"])
def test_weights_elsewhere_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "model").mkdir()
    path = saved(tmp_path / "model", location)
    (tmp_path / "tiny.data").write_bytes((path.parent / "tiny.data").read_bytes())
    with pytest.raises(ModelError, match=r"outside the model's folder"):
        import_model(path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = saved(tmp_path / "model")
    (path.parent / "tiny.data").rename(tmp_path / "elsewhere")
    (path.parent / "tiny.data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"tiny\.onnx: the weights next to the model cannot be read"):
        import_model(path)


def test_a_file_that_is_too_short_is_a_model_error(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = tmp_path / "tiny.data"
    data.write_bytes(data.read_bytes()[:-8])
    with pytest.raises(ModelError, match="weights next to the model cannot be read"):
        import_model(path)


def test_a_model_in_memory_without_its_weights_says_so(tmp_path: Path) -> None:
    model = onnx.load(str(saved(tmp_path)), load_external_data=False)
    assert any(external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)
    with pytest.raises(ModelError, match=r"weights are in the file tiny\.data, which is not read; give the path"):
        import_model(model)
