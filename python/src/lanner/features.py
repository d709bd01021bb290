"""Ranges of an input's features, where these differ too much for one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The largest absolute exponent of a feature's unit.
MAX_EXPONENT = 64

#: The largest absolute centre, in units of its feature.
MAX_CENTRE = 1 << 24

#: What published factors, their reciprocals and terms stay within.
MAX_CONSTANT = 1e30


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
    def from_document(
        cls, document: Mapping[str, Any], unit: float, ends: tuple[int, int], shape: tuple[int, ...]
    ) -> Features:
        """Read the features of a manifest's input, whose unit, accepted integers and shape these are.

        Raises:
            ValueError: Naming what is beyond the bounds that the native side holds them to, or missing.
        """
        axis = whole(document["axis"], "`axis`", 0, len(shape) - 1)
        exponents = [whole(value, "`exponents`", -MAX_EXPONENT, MAX_EXPONENT) for value in document["exponents"]]
        centres = [whole(value, "`centres`", -MAX_CENTRE, MAX_CENTRE) for value in document["centres"]]
        constants = document.get("preprocessing")
        factors, terms = [1.0] * shape[axis], [0.0] * shape[axis]
        if constants is not None:
            factors = [finite(value, "`factors`", MAX_CONSTANT) for value in constants["factors"]]
            terms = [finite(value, "`terms`", MAX_CONSTANT) for value in constants["terms"]]
        if {len(each) for each in (exponents, centres, factors, terms)} != {shape[axis]}:
            raise ValueError(f"there must be one of everything for each of {shape[axis]} features")
        if any(abs(factor) < 1 / MAX_CONSTANT for factor in factors):
            raise ValueError("`factors` holds 0")
        low, high, units = [], [], []
        for exponent, centre, factor, term in zip(exponents, centres, factors, terms, strict=True):
            step = math.ldexp(unit, exponent)
            reals = sorted(((end + centre) * step - term) / factor for end in ends)
            low.append(reals[0])
            high.append(reals[1])
            units.append(step / abs(factor))
        return cls(axis, tuple(low), tuple(high), tuple(units), constants is not None)

    def limits(self, dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest values accepted and the units, in shapes that broadcast to such a sample."""
        shape = [1] * dimensions
        shape[self.axis] = -1
        low, high, unit = (np.array(values, np.float64).reshape(shape) for values in (self.low, self.high, self.unit))
        return low, high, unit


def whole(value: object, name: str, least: int, most: int) -> int:
    """A whole number within bounds.

    Raises:
        ValueError: If it is none; `name` is told.
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} must be whole, from {least} to {most}")
    return value


def finite(value: object, name: str, most: float) -> float:
    """A number whose absolute value is at most so large.

    Raises:
        ValueError: If it is none; `name` is told.
    """
    if type(value) not in (int, float) or not abs(value) <= most:  # type: ignore[arg-type]
        raise ValueError(f"{name} must be finite, at most {most:g} away from 0")
    return float(value)  # type: ignore[arg-type]
