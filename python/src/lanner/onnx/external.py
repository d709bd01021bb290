"""Weights that lie in files next to the model."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
from onnx import checker, external_data_helper

from lanner.errors import ModelError
from lanner.onnx.contents import all_tensors


def load_external(proto: onnx.ModelProto, path: Path) -> None:
    """Read the weights that a model keeps in other files, all of which must lie in the model's folder.

    Args:
        proto: The model, which takes them up.
        path: The model's own file.

    Raises:
        ModelError: If such a file is missing, lies elsewhere, or does not hold what the model says.
    """
    for location in external_files(proto):
        _check(location, path)
    try:
        external_data_helper.load_external_data_for_model(proto, str(path.parent))
    except (OSError, ValueError, checker.ValidationError) as error:
        raise ModelError(
            f"the weights next to the model cannot be read ({' '.join(str(error).split()).rstrip('.')})",
            where=str(path),
            fix="export the model again, or copy it with all of its files",
        ) from None


def external_files(proto: onnx.ModelProto) -> list[str]:
    """The files that hold the model's weights, as it names them; none where it holds them itself."""
    tensors = (tensor for tensor in all_tensors(proto.graph) if external_data_helper.uses_external_data(tensor))
    named = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return sorted(named)


def _check(location: str, path: Path) -> None:
    place = PurePosixPath(location)
    if not location or place.is_absolute() or ".." in place.parts or PureWindowsPath(location).drive:
        raise ModelError(
            f"its weights are said to be in {location or 'a file without a name'}, outside the model's folder",
            where=str(path),
            fix="export the model with its weights in its own folder",
        )
    if not (path.parent / location).is_file():
        raise ModelError(
            f"its weights are in the file {location}, which is not there",
            where=str(path),
            fix=f"copy {location} next to {path.name}",
        )
