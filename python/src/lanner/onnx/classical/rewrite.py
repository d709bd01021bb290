"""Brings the estimators of a file to operators that networks have."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from lanner.errors import UnsupportedOpError
from lanner.onnx.classical.choices import choose_largest
from lanner.onnx.classical.distances import simplify_distances
from lanner.onnx.classical.edit import ML, Edit, is_of
from lanner.onnx.classical.layouts import keep_samples_apart
from lanner.onnx.classical.loops import expand_loops
from lanner.onnx.classical.neighbours import count_neighbours
from lanner.onnx.classical.probabilities import join_probabilities, join_shares
from lanner.onnx.classical.products import join_products
from lanner.onnx.classical.support import split_machines


def rewrite_estimators(proto: onnx.ModelProto, wanted: str | None = None, named: Sequence[str] = ()) -> Sequence[str]:
    """Change what converters of estimators write in parts, or in one operator that holds several, in place.

    Every result is what it was, but for float32's rounding, and what is said of a label for the scores that it is
    picked from: these have its order, and no more. Files that no converter of estimators wrote stay as they are: what
    is in parts there may be of other axes than a table has.

    Args:
        proto: The model.
        wanted: The output policy that its owner chose, if any.
        named: The outputs that the owner names.

    Returns:
        The tensors of neighbours' votes, class by class: of these alone samples may say that they changed.

    Raises:
        UnsupportedOpError: If distances are asked for as they are.
    """
    if not _has_estimators(proto):
        return ()
    edit = Edit(proto)
    roots = _roots_of_distances(edit, named) if wanted == "value" else []
    split_machines(edit)
    keep_samples_apart(edit)
    expand_loops(edit)
    join_products(edit)
    simplify_distances(edit)
    votes = count_neighbours(edit)
    join_probabilities(edit)
    if wanted == "value":
        join_shares(edit)
    choose_largest(edit)
    if roots:
        what = "gives distances to centres, whose roots are not precise for rows nearer to a centre than all samples"
        raise UnsupportedOpError(f"output value {what}", where=f"output {roots[0]}", fix="choose output label")
    return votes


def _has_estimators(proto: onnx.ModelProto) -> bool:
    """Whether a converter of estimators wrote a file, by its own word or by operators of their domain."""
    return proto.producer_name in _CONVERTERS or any(node.domain == ML for node in proto.graph.node)


#: What converters of estimators call themselves in files.
_CONVERTERS = ("skl2onnx", "OnnxMLTools")


def _roots_of_distances(edit: Edit, named: Sequence[str]) -> list[str]:
    """The outputs that are roots of what the nearest centre is picked by."""
    nearest = {node.input[0] for node in edit.proto.graph.node if is_of(node, ("ArgMin",))}
    found = []
    for entry in edit.proto.graph.output:
        root = edit.maker(entry.name, "Sqrt")
        if root is not None and root.input[0] in nearest and (not named or entry.name in named):
            found.append(entry.name)
    return found
