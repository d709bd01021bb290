"""Who runs fixed-point networks on calibration samples, which the search for bits asks for again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: What a network makes of a sample, the ends of every value and the scores, as the native module writes and reads it.
Trace = bytes

#: Gives the traces of a network, by its manifest and its weights, over the samples of some numbers, in their order.
Traces = Callable[[str, bytes, list[int]], list[Trace]]


class Tracer(Protocol):
    """What `lanner.compile` has networks traced by, where it is not this machine's cores."""

    def over(self, samples: NDArray[np.float32]) -> Traces:
        """What traces networks over samples, shape (n, *input shape), by their numbers from 0."""
