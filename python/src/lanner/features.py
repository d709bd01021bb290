"""Ranges of an input's features, where these differ too much for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Features:
    """What is accepted of each feature: of each position of one axis of a sample.

    Attributes:
        axis: The axis, counted without the batch axis.
        low: The smallest value of each that is accepted.
        high: The largest.
        unit: The step of each, to which values are rounded before the range is checked.
        preprocessed: Whether the client applies the model's own constants first, which its owner published.
    """

    axis: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    unit: tuple[float, ...]
    preprocessed: bool = False

    def limits(self, dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest values accepted, in shapes that broadcast to a sample of so many axes."""
        shape = [1] * dimensions
        shape[self.axis] = -1
        low, high = (np.array(values, np.float64).reshape(shape) for values in (self.low, self.high))
        return low, high
