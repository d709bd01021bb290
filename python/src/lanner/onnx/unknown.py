"""What is said of operators that no lowering takes: why, and what to do."""

from __future__ import annotations

from lanner.errors import Refusal, UnsupportedOpError
from lanner.onnx.builder import Wire
from lanner.onnx.node import Node

_SMOOTH = "is a smooth function that this version does not compute"
_TREES = "is a tree ensemble, which must read the model's input columns directly"
_ALONE = "export the trees as a model of their own"

#: Why an operator is refused, and what to do; by its name with the domain.
_REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("Tan", "Atan", "Sinh", "Cosh"), (_SMOOTH, "train the network without it")),
    **dict.fromkeys(
        ("Scan",),
        (
            "is a loop over a graph of its own, which this version does not compute",
            "export the model with its steps unrolled, or with LSTM, GRU or RNN in its place",
        ),
    ),
    **dict.fromkeys(
        ("com.microsoft.Attention", "com.microsoft.MultiHeadAttention"),
        (
            "is several operators in one, with keys of earlier calls or in another form that this version has not",
            "export the model with MatMul, Softmax and MatMul in its place",
        ),
    ),
    "ai.onnx.ml.TreeEnsembleClassifier": (_TREES, _ALONE),
    "ai.onnx.ml.TreeEnsembleRegressor": (_TREES, _ALONE),
    "ai.onnx.ml.TreeEnsemble": (_TREES, _ALONE),
    **dict.fromkeys(
        (
            "ai.onnx.ml.LabelEncoder",
            "ai.onnx.ml.CategoryMapper",
            "ai.onnx.ml.DictVectorizer",
        ),
        ("looks a secret value up, which this version does not compute", "encode the input before the prediction"),
    ),
}


def unknown(node: Node) -> UnsupportedOpError:
    """The error of a node whose operator no lowering takes."""
    operator = node.qualified_operator
    shown = node.operator if operator == node.operator else f"{node.operator} of domain {node.proto.domain}"
    reason, fix = _REASONS.get(operator, ("", "replace it by operators that `lanner doctor` lists"))
    what = f"operator {shown} is not supported" + (f": it {reason}" if reason else "")
    refusal = Refusal(what, node.where, node.name, operator, fix=fix)
    return UnsupportedOpError(what, where=node.where, fix=fix, nodes=[refusal])


def check_embedding(node: Node) -> None:
    """Refuse a table that is looked up at secret places.

    Raises:
        UnsupportedOpError: If the node is a Gather of constants at indices that depend on the input.
    """
    first, *others = node.inputs or [None]
    if node.operator.startswith("Gather") and not isinstance(first, Wire) and any(isinstance(v, Wire) for v in others):
        raise node.unsupported(
            "input 1",
            "looks up an embedding at computed indices; only an input's own integers work, outside loops and branches",
            "let the indices be an input of integers, or give embedded inputs",
        )
