"""The precision that a model's owner asks for, and what a model reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanner.errors import spelled
from lanner.wording import counted

#: What is aimed at where nothing is asked: the largest error of a score, relative to the range of its sample's scores.
DEFAULT = "0.5%"

#: The same for logits of mode ``spectral``, where nothing is rescaled and every bit comes back behind each square.
DEFAULT_WITHOUT_RESCALES = "20%"

#: The fewest and the most bits that lookups of mode tabula may be asked to keep.
KEPT_BITS = (3, 16)


class PrecisionWarning(UserWarning):
    """A model misses the requested precision, or may miss it in much of the stated input range."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a model reaches on its calibration samples.

    Attributes:
        asked: What was asked or, where nothing was, aimed at: a percentage, or a number of bits.
        reached: The logit error as a percentage, rounded up.
        logit_error: The largest error of a score relative to the range of its sample's scores. Under the policies
            ``label``, ``top-k`` and ``probability`` what all scores of a sample share does not count; under ``value``
            and ``labels`` each score is held against its own range over the samples.
        is_met: Whether it is what was asked.
        samples: The calibration samples, without those set aside.
        labels_kept: Samples whose label is the float network's.
        labels_lost: Samples whose label is another one though the two best float scores are farther apart than asked.
    """

    asked: str
    reached: str
    logit_error: float
    is_met: bool
    samples: int
    labels_kept: int
    labels_lost: int

    @classmethod
    def of_report(cls, entry: Mapping[str, Any] | None) -> Reached | None:
        """The entry ``precision`` of a model's report; None where a model was compiled before there was one."""
        return None if entry is None else cls(**entry)

    def shortfall(self) -> str | None:
        """A sentence on what is missing; None where nothing is."""
        if self.is_met:
            return None
        lost = f"; {counted(self.labels_lost, 'clear label')} lost" if self.labels_lost else ""
        return (
            f"scores are off by up to {self.reached} of their range on the calibration samples (target: {self.asked}"
            f"{lost}), and no more bits fit. Normalise the weights, or ask for less with {spelled('⟦precision⟧')}."
        )
