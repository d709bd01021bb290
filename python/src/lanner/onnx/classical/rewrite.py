"""Brings the estimators of a file to operators that networks have."""

from __future__ import annotations

import onnx

from lanner.onnx.classical.choices import choose_largest
from lanner.onnx.classical.distances import simplify_distances
from lanner.onnx.classical.edit import Edit
from lanner.onnx.classical.layouts import keep_samples_apart
from lanner.onnx.classical.loops import expand_loops
from lanner.onnx.classical.probabilities import join_probabilities, join_shares
from lanner.onnx.classical.products import join_products
from lanner.onnx.classical.support import split_machines


def rewrite_estimators(proto: onnx.ModelProto, wanted: str | None = None) -> None:
    """Change what converters of estimators write in parts, or in one operator that holds several, in place.

    Every result is what it was, but for float32's rounding, and what is said of a label for the scores that it is
    picked from: these have its order, and no more.

    Args:
        proto: The model.
        wanted: The output policy that its owner chose, if any.
    """
    edit = Edit(proto)
    split_machines(edit)
    keep_samples_apart(edit)
    expand_loops(edit)
    join_products(edit)
    simplify_distances(edit)
    join_probabilities(edit)
    if wanted == "value":
        join_shares(edit)
    choose_largest(edit)
