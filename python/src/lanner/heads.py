"""What the end of a network says of its scores, and the output policy that follows from it.

A final softmax or sigmoid is not computed: the policy computes label and probability from the scores before it. One
score behind a sigmoid is a binary classifier's. Its second class is the one that the score speaks for, so the scores of
the two classes are 0 and it: the larger of them is the label, which a score of exactly 0 leaves at 0, and their softmax
is the sigmoid of the score.

A map has scores at several places, as a segmentation has them for each pixel, and an autoencoder gives its input again.
Of all these numbers no single one is the largest score's, so where nothing is chosen the client learns the values. A
label of a map is one for each place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from lanner.errors import MisuseError


class Ending(Enum):
    """What a network ends in."""

    NONE = "none"
    #: Probabilities of classes of which one holds.
    SOFTMAX = "softmax"
    #: A probability for each score by itself.
    SIGMOID = "sigmoid"
    #: Sigmoids that are divided by their sum: the largest score's class, with a probability that no policy computes.
    ONE_AGAINST_REST = "one against rest"
    #: Scores behind a transform that no policy computes; the label is the largest score's.
    TRANSFORMED = "transform"
    #: Quantities, one or several.
    REGRESSION = "regression"


def is_map(shape: Sequence[int]) -> bool:
    """Whether an output of this shape, without the batch axis, has several places beside its classes."""
    return sum(side > 1 for side in shape) > 1


class Form(Enum):
    """How a network's output is laid out."""

    #: The scores of one sample's classes, or quantities.
    SCORES = "scores"
    #: Values at several places, such as pixels.
    MAP = "map"
    #: As many values as the input has, as of an autoencoder.
    LIKE_INPUT = "like the input"

    @classmethod
    def of(cls, shape: Sequence[int], given: Sequence[int]) -> Form:
        """The form of an output of such a shape; `given` is the input's."""
        if is_map(shape):
            return cls.MAP
        return cls.LIKE_INPUT if math.prod(shape) == math.prod(given) > 1 else cls.SCORES


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a network.

    Attributes:
        ending: What it ends in.
        classes: The names that the file gives its classes, if any.
        picks: Whether the output is the place of the largest.
    """

    ending: Ending = Ending.NONE
    classes: tuple[str, ...] | None = None
    picks: bool = False

    def gives_values(self, form: Form) -> bool:
        """Whether the network's outputs are values and no scores of classes, where its owner says nothing."""
        if form is not Form.LIKE_INPUT:
            return form is Form.MAP
        return self.classes is None and not self.picks and self.ending in (Ending.NONE, Ending.SIGMOID)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a client learns of a network's scores.

    Attributes:
        output: One of `lanner.options.OUTPUTS`, or ``labels``: the list of the labels whose scores are above 0, or
            ``label-map``: a label at each place of a map.
        two_classes: Whether the score 0 stands before the network's one score.
        class_axis: The axis of a map's classes, without the batch axis, where each place has a label.
        notes: What the owner should know of the choice.
        supposed: Whether a softmax or sigmoid is put behind the scores that the file does not have there.
    """

    output: str
    two_classes: bool = False
    class_axis: int | None = None
    notes: tuple[str, ...] = ()
    supposed: bool = False

    def check_scores(self, scores: NDArray[np.float32]) -> None:
        """Check that scores that are supposed to be logits are no probabilities.

        Args:
            scores: Those of typical samples, shape (n, classes).

        Raises:
            MisuseError: If all are between 0 and 1.
        """
        if not self.supposed or not scores.size or scores.min() < 0 or scores.max() > 1:
            return
        if self.two_classes:
            raise MisuseError(
                "the network's score is between 0 and 1 for every calibration sample, as a probability is, and its "
                "label would be 1 wherever it is above 0",
                where=f"output {self.output}",
                fix="choose value, which is the score, or end the network in a Sigmoid or in what is before it",
            )
        raise MisuseError(
            "the network's scores are between 0 and 1 for every calibration sample, as probabilities are, and "
            "a softmax of probabilities is something else",
            where=f"output {self.output}",
            fix="choose label, or logits for the scores as they are, or end the network in a Softmax",
        )


def choose_policy(head: Head, scores: int, wanted: str | None, form: Form = Form.SCORES) -> Policy:
    """The policy for an end of so many scores in such a form; `wanted` is the owner's choice, None where there is none.

    Raises:
        MisuseError: If the choice does not go with the end.
    """
    if wanted in ("logits", "value"):
        return Policy(wanted)
    # As manifests call what follows from it.
    wanted = "label" if wanted in ("labels", "label-map") else wanted
    if form is Form.MAP and (wanted == "label" or (wanted is None and head.picks)):
        return _of_labels(scores, wanted) if head.ending is Ending.SIGMOID else Policy("label-map")
    if wanted is None and head.gives_values(form):
        return Policy("value", notes=(_MAP if form is Form.MAP else _LIKE_INPUT,))
    if form is Form.MAP:
        raise MisuseError(
            "the network's output is a map, which has scores at several places, and no protocol here computes "
            f"{wanted} for each place",
            where=f"output {wanted}",
            fix="choose label, which is one for each place, or value, which is the map",
        )
    if scores == 1:
        return _of_one(head, wanted)
    if head.ending is Ending.SIGMOID:
        return _of_labels(scores, wanted)
    if head.ending is Ending.REGRESSION and wanted is None:
        return Policy("value", notes=(_TARGETS.format(scores),))
    notes = _note_of_probability(head) if wanted == "probability" else ()
    return Policy(wanted or "label", notes=notes, supposed=_APPENDED in notes)


def _of_labels(scores: int, wanted: str | None) -> Policy:
    if wanted == "top-k":
        return Policy(wanted)
    if wanted == "probability":
        raise MisuseError(
            f"the network ends in a sigmoid over {scores} labels that do not exclude each other, and probability "
            "is that of one class among others",
            where="output probability",
            fix="choose label or logits",
        )
    return Policy("labels", notes=(_LABELS.format(scores),))


def _of_one(head: Head, wanted: str | None) -> Policy:
    if head.ending is Ending.SIGMOID:
        return Policy(wanted or "label", two_classes=True)
    if head.ending not in (Ending.NONE, Ending.REGRESSION):
        raise MisuseError(
            f"the network ends in a {head.ending.value} of one score, which is always 1", fix="choose logits"
        )
    if wanted is None:
        return Policy("value", notes=(_REGRESSION,))
    return Policy(wanted, two_classes=True, notes=(_BINARY,), supposed=True)


def _note_of_probability(head: Head) -> tuple[str, ...]:
    if head.ending is Ending.ONE_AGAINST_REST:
        raise MisuseError(
            "the network's probabilities are sigmoids divided by their sum, which no protocol here computes",
            where="output probability",
            fix="choose label, top-k or logits",
        )
    if head.ending is Ending.TRANSFORMED:
        raise MisuseError(
            "the file makes its probabilities by the transform PROBIT or SOFTMAX_ZERO, which no protocol here computes",
            where="output probability",
            fix="choose label, top-k or logits",
        )
    return () if head.ending is Ending.SOFTMAX else (_APPENDED,)


_APPENDED = "the network does not end in a softmax; one is appended to its scores for the probability"
_REGRESSION = "the network has one output and no sigmoid at its end, so a prediction is its value"
_TARGETS = "the network ends in a linear regression of {} targets, so a prediction is their values"
_MAP = "the network's output is a map, with values at several places, so a prediction is its values and no label"
_LIKE_INPUT = (
    "the network gives as many numbers as its input has, as an autoencoder does, so a prediction is these values; "
    "choose output label if they are scores of classes"
)
_BINARY = (
    "the network has one score and no sigmoid at its end; the label is 1 where the score is above 0, as for a sigmoid"
)
_LABELS = (
    "the network ends in a sigmoid over {} scores: a prediction is the list of the labels whose scores are above 0"
)
