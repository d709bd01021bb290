"""Reads an ONNX model, checks it, and brings it to an opset and to numbers that the lowerings are written for."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import checker, inliner, version_converter

from lanner.errors import MisuseError, ModelError
from lanner.files import check_exported, check_file
from lanner.onnx.branches import open_branches
from lanner.onnx.earlier import PLAIN_RESIZE, complete_resizes, keep_samples_apart
from lanner.onnx.external import external_files, load_external
from lanner.onnx.number_types import to_float32

#: Lowerings read operators as of this opset or later; models of an earlier one are converted to it.
OLDEST_OPSET = 13

#: Protocol buffers cannot hold more, which the checker and the converter need.
_LARGEST_PROTO = 2_000_000_000


def load_proto(source: object) -> onnx.ModelProto:
    """Read and check a model.

    Args:
        source: A path, an ``onnx.ModelProto``, or a torch module (see `export_torch` for those).

    Raises:
        ModelError: If the file cannot be read, is damaged, or has an opset that cannot be converted.
        MisuseError: If `source` is none of these.
    """
    if isinstance(source, str | Path):
        proto, where = _read(Path(source)), str(source)
    elif isinstance(source, onnx.ModelProto):
        proto, where = onnx.ModelProto(), source.graph.name or "model"
        proto.CopyFrom(source)
        if external_files(proto):
            what = f"its weights are in the file {external_files(proto)[0]}, which is not read"
            raise ModelError(what, where=where, fix="give the path of the model, or load it with its weights")
    else:
        raise MisuseError(
            f"a {type(source).__name__} is not a model",
            fix="give a path, an onnx.ModelProto, a torch.nn.Module, or a fitted estimator of scikit-learn, XGBoost, "
            "LightGBM or CatBoost",
        )
    converted = _convert(_checked(proto, where), where)
    open_branches(converted)
    to_float32(converted)
    return converted


def input_names(source: object, fixed: Container[str] = ()) -> list[str]:
    """The inputs of a model that are neither constants of the file nor among `fixed`.

    Raises:
        ModelError: If the file cannot be read.
        MisuseError: If `source` is no path and no ``onnx.ModelProto``.
    """
    if isinstance(source, str | Path):
        graph = _read(Path(source)).graph
    elif isinstance(source, onnx.ModelProto):
        graph = source.graph
    else:
        raise MisuseError(
            f"a {type(source).__name__} is no ONNX model", where="text", fix="export it, and give the path of the file"
        )
    constants = {tensor.name for tensor in graph.initializer}
    return [entry.name for entry in graph.input if entry.name not in constants and entry.name not in fixed]


def export_torch(
    module: Any,  # noqa: ANN401 - torch is not a dependency
    sample: Mapping[str, NDArray[np.float32]],
) -> onnx.ModelProto:
    """Export a torch module that maps one batch to one tensor.

    Args:
        module: A ``torch.nn.Module``; it is put in evaluation mode for the export.
        sample: Arrays of shape (1, *sample) by the name of the argument; whole numbers are exported as such of several.

    Raises:
        ModelError: If torch cannot export it.
    """
    import torch  # Needed for torch modules only, whose owner has it.

    only = next(iter(sample.values()))
    arguments = (torch.from_numpy(only),) if len(sample) == 1 else (_arguments(sample),)
    buffer = io.BytesIO()
    training = module.training
    module.eval()
    try:
        torch.onnx.export(
            module,
            arguments,
            buffer,
            dynamo=False,
            input_names=list(sample),
            output_names=["logits"],
            dynamic_axes={name: {0: "batch"} for name in (*sample, "logits")},
        )
    except Exception as error:
        raise ModelError(f"torch cannot export this module ({error})", where=type(module).__name__) from error
    finally:
        module.train(training)
    return onnx.load_model_from_string(buffer.getvalue())


def _arguments(sample: Mapping[str, NDArray[np.float32]]) -> dict[str, Any]:
    """Keyword arguments: what holds whole numbers alone are tokens or masks."""
    import torch

    whole = {name: bool((values == np.rint(values)).all()) for name, values in sample.items()}
    return {
        name: torch.from_numpy(values.astype(np.int64) if whole[name] else values) for name, values in sample.items()
    }


def _read(path: Path) -> onnx.ModelProto:
    check_file(path, ModelError)
    check_exported(path)
    if path.suffix == ".lanner":
        raise ModelError("this model is compiled already", where=str(path), fix="give the ONNX file behind it")
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except (DecodeError, OSError, ValueError, checker.ValidationError) as error:
        raise ModelError(
            f"cannot be read as ONNX ({_sentence(error)})",
            where=str(path),
            fix="give a file that an exporter to ONNX wrote, or write it again",
        ) from None
    load_external(proto, path)
    return proto


def _checked(proto: onnx.ModelProto, where: str) -> onnx.ModelProto:
    if not proto.graph.node:
        raise ModelError("the model has no operators", where=where, fix="export or copy the file again")
    try:
        if proto.ByteSize() < _LARGEST_PROTO:
            with _shaped_outputs(proto.graph):
                checker.check_model(proto)
        return inliner.inline_local_functions(proto) if proto.functions else proto
    except (checker.ValidationError, RuntimeError, ValueError) as error:
        if (name := _made_twice(proto.graph)) is not None:
            raise ModelError(
                f"two nodes have an output of the name {name!r}",
                where=where,
                fix="export it with other names of outputs, which no tensor inside has (torch.onnx: `output_names`)",
            ) from None
        raise ModelError(
            f"this is not a valid ONNX model ({_sentence(error)})",
            where=where,
            fix="export the model again",
        ) from None


def _made_twice(graph: onnx.GraphProto) -> str | None:
    """A name that two nodes give a tensor, as an output that is named like one inside."""
    counts = Counter(name for node in graph.node for name in node.output if name)
    return next((name for name, count in counts.items() if count > 1), None)


@contextmanager
def _shaped_outputs(graph: onnx.GraphProto) -> Iterator[None]:
    """Let every output state a shape: files may leave it out, which the checker alone minds."""
    bare = [entry.type.tensor_type for entry in graph.output if _lacks_shape(entry)]
    for tensor in bare:
        tensor.shape.CopyFrom(onnx.TensorShapeProto())
    try:
        yield
    finally:
        for tensor in bare:
            tensor.ClearField("shape")


def _lacks_shape(entry: onnx.ValueInfoProto) -> bool:
    return entry.type.HasField("tensor_type") and not entry.type.tensor_type.HasField("shape")


def _convert(proto: onnx.ModelProto, where: str) -> onnx.ModelProto:
    opset = next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), None)
    if opset is None:
        # Files of other domains alone, as converters of trees write them, have no operator of ONNX's own.
        proto.opset_import.add(domain="", version=OLDEST_OPSET)
        return proto
    if opset > onnx.defs.onnx_opset_version():
        raise ModelError(
            f"opset {opset} is newer than this onnx package, which knows {onnx.defs.onnx_opset_version()}",
            where=where,
            fix="update the package onnx, or export the model with an older opset",
        )
    if opset >= OLDEST_OPSET:
        return proto
    try:
        converted = version_converter.convert_version(proto, OLDEST_OPSET)
    except (RuntimeError, ValueError, checker.ValidationError) as error:
        raise ModelError(
            f"opset {opset} cannot be converted to {OLDEST_OPSET} ({_sentence(error)})",
            where=where,
            fix=f"export the model with opset {OLDEST_OPSET} or later",
        ) from None
    keep_samples_apart(converted)
    if opset <= PLAIN_RESIZE:
        complete_resizes(converted)
    return converted


def _sentence(error: Exception) -> str:
    """The checker's or converter's words in one line, without the place in its source and the context behind."""
    words = " ".join(str(error).partition("==> Context")[0].split())
    return words.rpartition("failed: ")[2].rstrip(". ") or type(error).__name__
