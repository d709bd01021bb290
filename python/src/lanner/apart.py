"""Whether the network that lanner reads in a file is what onnxruntime makes of the file, on some samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx

#: Samples on which both are run.
COMPARED = 2

#: The most that both may differ by, as a part of the scores' range: half of what networks are compiled for by default.
TOLERANCE = 0.0025

#: Scores below the negative of this may be masked.
MASKED = 1000.0

#: The least range of scores, as a part of their largest magnitude.
LEAST_RANGE = 1e-3


def sentence_apart(proto: onnx.ModelProto, ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> str | None:
    """What the owner should know where both differ; None where they agree.

    Args:
        proto: The file.
        ours: The scores of the float network that lanner compiles, (n, scores).
        theirs: Those of onnxruntime, likewise.
    """
    if ours.shape != theirs.shape or not theirs.size:
        return None
    # A score that is masked is far below the others in both.
    masked = (theirs <= -MASKED) & (ours <= ours[theirs > -MASKED].min(initial=np.inf))
    ours, theirs = ours[~masked].astype(np.float64), theirs[~masked]
    # Of scores that are all alike rounding to float32 alone would be much of the range.
    width = float(max(np.ptp(theirs), LEAST_RANGE * np.abs(theirs).max())) if theirs.size else 0.0
    if not np.isfinite(width) or width == 0.0:
        return None
    off = float(np.abs(ours - theirs).max()) / width
    if not off > TOLERANCE:
        return None
    says = f"onnxruntime's scores and those of lanner's float network differ by {100 * off:.2g}% of their range"
    if any("Quantize" in node.op_type or node.op_type.startswith("QLinear") for node in proto.graph.node):
        return f"{says}: the file rounds to few bits while it runs, and lanner leaves this rounding out"
    return f"{says}: one of them loses digits, or reads an operator otherwise; please report the file"
