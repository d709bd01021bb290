"""The choices of a model's owner: the mode, and what the client learns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lanner.errors import MisuseError, UnsupportedOpError
from lanner.images import ImageDescription
from lanner.precision import parse_precision

#: Modes that the interface names, and those that this version computes.
MODES = ("gazelle", "falcon", "cheetah", "tabula", "spectral", "auto")
AVAILABLE_MODES = ("gazelle", "falcon", "cheetah", "auto")

#: How mode cheetah rounds.
ROUNDINGS = ("exact", "faithful")

#: Output policies.
OUTPUTS = ("label", "probability", "top-k", "logits")

#: The most decimal digits that ``probability`` reveals.
MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Protocols:
    """What secures predictions.

    Attributes:
        mode: One of `MODES`.
        rounding: One of `ROUNDINGS`; None is ``exact``.
    """

    mode: str
    rounding: str | None = None

    def output(self, wanted: str) -> str:
        """The output policy for what would reveal `wanted`: ``faithful`` rounding goes with ``label`` alone."""
        return "label" if self.rounding == "faithful" else wanted


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a model is compiled for.

    Attributes:
        name: The model's name on the server.
        mode: One of `MODES`; ``auto`` lets the planner choose per layer.
        output: One of `OUTPUTS`.
        k: How many classes ``top-k`` reveals.
        digits: How many decimal digits ``probability`` reveals, 1 to `MAX_DIGITS`.
        classes: The names of the classes in the order of the outputs.
        image: How a picture becomes an input.
        rounding: One of `ROUNDINGS`, for mode ``cheetah``: results that are ``exact``, as they are for None, equal the
            fixed-point reference in every integer. ``faithful`` takes fewer bytes and goes with output ``label``
            alone: whether a value is rounded up depends on the client's own random share, so a client that repeats a
            query learns more of the weights than one label tells. Other modes are exact.
        input_range: The smallest and the largest value that an input may have, 0 between them. None takes twice the
            range of the calibration samples, of which the client then learns.
        precision: The largest logit error on the calibration samples as a percentage with its sign, or the bits of all
            activations. None aims at 0.5% and takes the network with the most bits where that is missed.
        allow_imprecise: Whether a network that misses the precision asked for is taken, too.
    """

    name: str
    mode: str = "auto"
    output: str = "label"
    k: int = 1
    digits: int = 2
    classes: Sequence[str] | None = None
    image: ImageDescription | None = None
    rounding: str | None = None
    input_range: tuple[float, float] | None = None
    precision: str | int | None = None
    allow_imprecise: bool = False

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, MODES, AVAILABLE_MODES)
        if self.rounding is not None:
            _check_choice("rounding", self.rounding, ROUNDINGS, ROUNDINGS)
        _check_choice("output", self.output, OUTPUTS, OUTPUTS)
        if self.k < 1:
            raise MisuseError(f"k is {self.k}", fix="give 1 or more")
        if not 1 <= self.digits <= MAX_DIGITS:
            raise MisuseError(f"digits is {self.digits}", fix=f"give 1 to {MAX_DIGITS}")
        if self.input_range is not None:
            _check_range(self.input_range)
        if self.precision is not None:
            parse_precision(self.precision)

    def check_scores(self, scores: int) -> None:
        """Check that the output policy fits the number of scores.

        Raises:
            MisuseError: If there are fewer than two where the policy compares them, or k is larger than their number.
        """
        if self.output != "logits" and scores < 2:
            raise MisuseError(f"output {self.output} compares scores, and the model has {scores}", fix="choose logits")
        if self.output == "top-k" and self.k > scores:
            raise MisuseError(f"k is {self.k}, and the model has {scores} scores", fix=f"give 1 to {scores}")

    def document(self) -> str:
        """The options as the JSON text that the native compiler takes."""
        return json.dumps(
            {
                "mode": self.mode,
                "rounding": self.rounding,
                "output": self.output,
                "k": self.k,
                "digits": self.digits,
                "classes": None if self.classes is None else list(self.classes),
                "image": None if self.image is None else self.image.document(),
                "name": self.name,
                "precision": None if self.precision is None else parse_precision(self.precision),
                "allow_imprecise": self.allow_imprecise,
                "input_range": None if self.input_range is None else list(map(float, self.input_range)),
            }
        )


def _check_choice(option: str, value: str, known: Sequence[str], available: Sequence[str]) -> None:
    if value not in known:
        raise MisuseError(f"{option} is {value!r}", fix=f"give one of {', '.join(known)}")
    if value not in available:
        raise UnsupportedOpError(
            f"this version does not compute {option} {value}", fix=f"compile with {' or '.join(available)}"
        )


def _check_range(limits: Sequence[float]) -> None:
    usable = len(limits) == 2 and all(math.isfinite(limit) for limit in limits)
    if not usable or not limits[0] <= 0 <= limits[1] or limits[0] == limits[1]:
        raise MisuseError(
            f"input_range is {tuple(limits)}", fix="give the smallest and the largest value, with 0 between them"
        )
