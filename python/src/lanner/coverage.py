"""What inputs the calibration samples say too little of, and what that means for the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanner.errors import spelled
from lanner.wording import counted

#: Of less than this share the compiler makes inputs of its own; as in ``crates/quantize/src/made.rs``.
SPARSE = 0.25


def covered(samples: NDArray[np.float32], limits: tuple[float, float]) -> float:
    """The share of the range between an element's smallest and largest value, averaged over the elements of a sample.

    Args:
        samples: Shape (n, *input shape).
        limits: The smallest and the largest value that an input may have.
    """
    spans = samples.max(0).astype(np.float64) - samples.min(0).astype(np.float64)
    return float(spans.mean() / (limits[1] - limits[0]))


def shown(share: float) -> str:
    """A share below `SPARSE` as a percentage that is never 0 for what is not nothing."""
    percentage = 100 * share
    return f"{percentage:.0f}%" if percentage == 0 or percentage >= 1 else "less than 1%"


def sentence_on(samples: NDArray[np.float32], limits: tuple[float, float], made: int) -> str | None:
    """What the owner should know where samples cover little of the range; None where they cover enough.

    Args:
        samples: As for `covered`.
        limits: Likewise.
        made: How many inputs the model has room for that the compiler made beside the samples.
    """
    share = covered(samples, limits)
    if share >= SPARSE:
        return None
    says = f"the calibration samples cover {shown(share)} of the input range {limits[0]:g} to {limits[1]:g}"
    if made:
        return (
            f"{says}, so lanner added {made} inputs of its own making; give samples from all of the range, or state a "
            "narrower one"
        )
    return (
        f"{says}, too little for the requested precision. Results for other inputs may be wrong. Give samples from the "
        f"whole range, narrow it, or omit {spelled('⟦input_range⟧')}."
    )


def sentence_beside(given_up: int) -> str | None:
    """What the owner should know of a model that tells probabilities; None where these are precise beside the samples.

    Args:
        given_up: How many inputs between the samples and beside them the compiler made, and has no room for.
    """
    if not given_up:
        return None
    return (
        f"probabilities for inputs unlike the samples may miss the precision ({counted(given_up, 'test input')} did). "
        f"Give more samples, scale columns first, or use {spelled('⟦output=label⟧')}."
    )
