"""Ranges of an input's features, where these differ too much for one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    @classmethod
    def from_document(cls, document: Mapping[str, Any], unit: float, ends: tuple[int, int]) -> Features:
        """Read the features of a manifest's input, whose unit and accepted integers these are."""
        exponents, centres = document["exponents"], document["centres"]
        constants = document.get("preprocessing")
        factors = [1.0] * len(exponents) if constants is None else constants["factors"]
        terms = [0.0] * len(exponents) if constants is None else constants["terms"]
        low, high, units = [], [], []
        for exponent, centre, factor, term in zip(exponents, centres, factors, terms, strict=True):
            step = math.ldexp(unit, exponent)
            reals = sorted(((end + centre) * step - term) / factor for end in ends)
            low.append(reals[0])
            high.append(reals[1])
            units.append(step / abs(factor))
        return cls(int(document["axis"]), tuple(low), tuple(high), tuple(units), constants is not None)

    def limits(self, dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest values accepted and the units, in shapes that broadcast to such a sample."""
        shape = [1] * dimensions
        shape[self.axis] = -1
        low, high, unit = (np.array(values, np.float64).reshape(shape) for values in (self.low, self.high, self.unit))
        return low, high, unit
