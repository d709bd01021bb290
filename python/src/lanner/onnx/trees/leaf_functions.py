"""What nodes behind one tree compute: they are run on what all its leaves say, a leaf for each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from lanner.extras import is_installed

#: The format's version of the models that are run.
_IR_VERSION = 8


def on_leaves(
    nodes: Sequence[onnx.NodeProto],
    held: Sequence[onnx.TensorProto],
    opsets: Sequence[onnx.OperatorSetIdProto],
    wanted: str,
    given: Mapping[str, NDArray[np.float32]],
) -> tuple[NDArray[np.generic], int] | None:
    """A tensor for each leaf of a tree, and the axis of the leaves.

    Args:
        nodes: What computes it, in order.
        held: The constants that they read, and maybe others.
        opsets: The file's opsets.
        wanted: The tensor.
        given: What trees give, by the name of the tree's output: of the tree what its leaves say, and of others, whose
            shape alone is asked for, as many rows.

    Returns:
        None where it cannot be computed, or what it is for a leaf depends on other samples.
    """
    read = {name for node in nodes for name in node.input}
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, values.shape[1]])
        for name, values in given.items()
    ]
    graph = helper.make_graph(
        nodes, "leaves", inputs, [onnx.ValueInfoProto(name=wanted)], [each for each in held if each.name in read]
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    # Once more with one leaf twice: this shows the samples' axis, and that each sample's is computed by itself.
    twice = {name: np.concatenate([values[-1:], values]) for name, values in given.items()}
    once, again = _run(model, given), _run(model, twice)
    if once is None or again is None or once.ndim != again.ndim:
        return None
    leaves = next(iter(given.values())).shape[0]
    axes = [at for at in range(once.ndim) if (once.shape[at], again.shape[at]) == (leaves, leaves + 1)]
    if len(axes) != 1:
        return None
    first, rest = np.take(again, [0], axes[0]), np.take(again, range(1, leaves + 1), axes[0])
    same = np.array_equal(rest, once) and np.array_equal(first, np.take(once, [leaves - 1], axes[0]))
    return (once, axes[0]) if same else None


def _run(model: onnx.ModelProto, given: Mapping[str, NDArray[np.float32]]) -> NDArray[np.generic] | None:
    """A model's only output, by ONNX's reference evaluator; by onnxruntime where that lacks an operator."""
    made: Any
    try:
        with np.errstate(all="ignore"):
            (made,) = ReferenceEvaluator(model).run(None, dict(given))
    except Exception:  # noqa: BLE001 - evaluators raise errors of many kinds
        if not is_installed("onnxruntime"):
            return None
        from lanner.reference import open_exactly  # onnxruntime is optional.

        try:
            (made,) = open_exactly(model).run(None, dict(given))
        except Exception:  # noqa: BLE001 - the same
            return None
    return np.asarray(made)
