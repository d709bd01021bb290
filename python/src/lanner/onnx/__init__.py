"""Imports ONNX models into the float graph that the native compiler takes.

`lower_model` walks the file; each family of operators is one module, whose functions `registry.lowers` registers.
"""

from __future__ import annotations

from lanner.onnx import (
    activation,
    arithmetic,
    attention,
    blocks,
    choice,
    comparison,
    conv,
    conv_transpose,
    counting,
    einsum,
    exponentials,
    extremum,
    gemm,
    kernels,
    largest,
    movement,
    normalization,
    pad,
    pool,
    quantized,
    recurrent,
    reduction,
    resize,
    scikit,
    shape,
    smooth,
)
from lanner.onnx.frame import Frame
from lanner.onnx.graph_check import check_graph
from lanner.onnx.load import export_torch, load_proto
from lanner.onnx.lowering import ImportedModel, Survey, lower_model, survey_model


def import_model(source: object, wanted: str | None = None, frame: Frame | None = None) -> ImportedModel:
    """Import a model from a path or an ``onnx.ModelProto``.

    Args:
        source: The path or the model.
        wanted: The output policy that its owner chose, if any.
        frame: What the owner says of the file's sizes, inputs and outputs.

    Raises:
        ModelError: If it cannot be read, is damaged, or has not one input, or several outputs of which none is named.
        MisuseError: If there is no such output, or the policy does not go with the network's end.
        UnsupportedOpError: Naming the first node, operator and attribute that are not supported, and listing all.
    """
    return lower_model(load_proto(source), wanted, frame)


def survey_file(source: object, wanted: str | None = None, frame: Frame | None = None) -> Survey:
    """Look at every node of a model, whether it can be imported or not; the arguments are those of `import_model`.

    Raises:
        ModelError: If it cannot be read or is damaged.
        MisuseError: If there is no such output, or the policy does not go with the network's end.
    """
    return survey_model(load_proto(source), wanted, frame)


__all__ = [
    "Frame",
    "ImportedModel",
    "Survey",
    "check_graph",
    "export_torch",
    "import_model",
    "lower_model",
    "survey_file",
]

#: Importing these modules registers their lowerings.
FAMILIES = (
    *(
        activation,
        arithmetic,
        attention,
        blocks,
        choice,
        comparison,
        conv,
        conv_transpose,
        counting,
        einsum,
        exponentials,
        extremum,
        gemm,
        kernels,
        largest,
        movement,
    ),
    *(normalization, pad, pool, quantized, recurrent, reduction, resize, scikit, shape, smooth),
)
