"""Whether a number far below 0 hides a score, so that a smaller one hides it as well, or is a number of its own.

A file that hides scores adds -1e4 or -3.4e38 to them, or puts it in their place, in front of a softmax or a maximum,
where nothing of it is left. A network of prices may add -5000 where a private bit is set: that is a number.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

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


def hides(nodes: Iterable[onnx.NodeProto], name: str, least: float, results: Container[str], *, closely: bool) -> bool:
    """Whether a number in a tensor hides what is in its place.

    Args:
        nodes: All nodes that may read it, or what is made of it, those of bodies included.
        name: The tensor.
        least: The number, far below 0.
        results: Tensors whose elements the client learns as numbers.
        closely: Whether none of these may be another one, however far below 0.
    """
    if least > -MASKING:
        return False
    listed = list(nodes)
    seen, pending = {name}, [name]
    while pending:
        read = pending.pop()
        if read in results and (closely or least > -_SURELY):
            return False
        for node in listed:
            if not _takes(node, read) or node.op_type in _ENDS:
                continue
            if node.op_type in _SUMS:
                return False
            # A body may give its inputs other names.
            made = [*node.output, *(entry.name for body in bodies_of(node) for entry in body.input)]
            pending += [each for each in made if each not in seen]
            seen.update(made)
    return True


def _takes(node: onnx.NodeProto, name: str) -> bool:
    """Whether a node reads a tensor, or has a body that gives it out."""
    return name in node.input or any(entry.name == name for body in bodies_of(node) for entry in body.output)
