"""Whether a number far below 0 hides a score, so that a smaller one hides it as well, or is a number of its own.

A file that hides scores adds -1e4 or -3.4e38 to them, or puts it in their place, in front of a softmax or a maximum,
where nothing of it is left. A network of prices may add -5000 where a private bit is set: that is a number.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np
import onnx

from lanner.onnx.bodies import bodies_of
from lanner.onnx.number_types import MASKING

#: Operators that make the same of all numbers far below the others.
_ENDS = frozenset(
    (
        *("Softmax", "LogSoftmax", "Hardmax", "ReduceLogSumExp", "Exp", "ArgMax", "TopK"),
        *("ReduceMax", "Max", "MaxPool", "GlobalMaxPool", "Relu", "Sigmoid", "HardSigmoid", "Tanh", "Softplus", "Clip"),
    )
)

#: Operators that add elements up, or weigh them: of these numbers something is left.
_SUMS = frozenset(
    (
        *("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "CumSum", "Sum", "Mean"),
        *("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "AveragePool", "GlobalAveragePool"),
        *("LayerNormalization", "BatchNormalization", "InstanceNormalization", "Abs", "Neg", "Pow", "ReduceMin", "Min"),
    )
)

#: No number of a network's own is so far below 0.
_SURELY = 1e8


def hides(
    nodes: Iterable[onnx.NodeProto],
    name: str,
    least: float,
    results: Container[str],
    constants: Mapping[str, object],
    *,
    closely: bool,
) -> float | None:
    """Whether a number in a tensor hides what is in its place.

    Args:
        nodes: All nodes that may read it, or what is made of it, those of bodies included.
        name: The tensor.
        least: The number, far below 0.
        results: Tensors whose elements the client learns as numbers.
        constants: What is known of tensors; of arrays, what they hold.
        closely: Whether none of these may be another one, however far below 0.

    Returns:
        None if it is a number of its own; else the least factor, 1 at most, that scores are multiplied with before they
        are compared, so that a smaller number in its place must be as much farther below 0.
    """
    if least > -MASKING:
        return None
    listed = list(nodes)
    factors, pending = {name: 1.0}, [name]
    while pending:
        read = pending.pop()
        if read in results and (closely or least > -_SURELY):
            return None
        for node in listed:
            if not _takes(node, read) or node.op_type in _ENDS:
                continue
            if node.op_type in _SUMS:
                return None
            factor = min(factors[read] * _factor(node, constants), 1.0)
            # A body may give its inputs other names.
            made = [*node.output, *(entry.name for body in bodies_of(node) for entry in body.input)]
            for each in made:
                if each not in factors or factor < factors[each] * _HARDLY_LESS:
                    factors[each] = factor
                    pending.append(each)
        if min(factors.values()) < _LEAST_FACTOR:
            return None
    return min(factors.values())


#: Factors of which a loop may find less and less are followed while they differ by this much, and down to the least.
_HARDLY_LESS = 0.999
_LEAST_FACTOR = 1e-6


def _factor(node: onnx.NodeProto, constants: Mapping[str, object]) -> float:
    """The least magnitude other than 0 by which a node multiplies its input; 1 of what multiplies by no constant."""
    known = [constants.get(name) for name in node.input]
    held = next((value for value in known if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"), None)
    if node.op_type not in ("Mul", "Div") or held is None or not held.any():
        return 1.0
    sizes = np.abs(held[held != 0].astype(np.float64))
    return float(sizes.min() if node.op_type == "Mul" else 1.0 / sizes.max())


def _takes(node: onnx.NodeProto, name: str) -> bool:
    """Whether a node reads a tensor, or has a body that gives it out."""
    return name in node.input or any(entry.name == name for body in bodies_of(node) for entry in body.output)
