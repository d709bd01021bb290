"""The choices of a model's owner: the mode, and what the client learns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanner.errors import MisuseError
from lanner.heads import Policy
from lanner.images import ImageDescription
from lanner.kernel_times import KernelTimes
from lanner.limits import limits_document
from lanner.network import LOOPBACK, Network
from lanner.precision import check_kept_bits, parse_precision
from lanner.wording import counted

#: Modes that take every network. In ``auto`` the planner chooses, for the whole and for each layer.
INTERACTIVE_MODES = ("gazelle", "falcon", "cheetah", "tabula", "auto")

#: All modes; ``spectral`` takes networks of sums and products alone.
MODES = (*INTERACTIVE_MODES, "spectral")

#: Modes whose requests may hold several samples, packed into the same ciphertexts.
PACKING_MODES = ("gazelle", "cheetah", "auto", "spectral")

#: How values are rescaled: of mode cheetah exactly or faithfully, of mode tabula exactly or stochastically.
ROUNDINGS = ("exact", "faithful", "stochastic")

#: Output policies that an owner can choose. Of labels that do not exclude each other ``label`` is ``labels``.
OUTPUTS = ("label", "probability", "top-k", "logits", "value")

#: What mode ``auto`` can be asked for the least of: seconds of a prediction, its share of the set-up included, in a
#: session of 16; seconds from the input to the result; bytes of a prediction, with its share; memory of both parties.
OBJECTIVES = ("latency", "online", "bytes", "memory")

#: The most decimal digits that ``probability`` reveals, or ``value`` is rounded to.
MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Protocols:
    """What secures predictions.

    Attributes:
        mode: One of `MODES`.
        rounding: One of `ROUNDINGS`; None is ``exact``.
        precision: As for `lanner.compile`.
        kept_bits: As for `lanner.compile`.
        network: What lies between the parties, for mode ``auto``.
        batch: How many samples a request holds.
        kernel_times: The table by which mode ``auto`` chooses; None for the one that is kept, else the package's.
    """

    mode: str
    rounding: str | None = None
    precision: str | int | None = None
    kept_bits: int | None = None
    network: Network = LOOPBACK
    batch: int = 1
    kernel_times: KernelTimes | None = None

    def output(self, wanted: str) -> str:
        """The output policy for what would reveal `wanted`: rounding that is not exact goes with ``label`` alone."""
        return wanted if self.rounding in (None, "exact") else "label"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a model is compiled for.

    Attributes:
        name: The model's name on the server.
        mode: One of `MODES`; in ``auto`` the planner chooses.
        output: One of `OUTPUTS`; None for what the network's end suggests.
        k: How many classes ``top-k`` reveals.
        digits: How many decimal digits ``probability`` reveals, 1 to `MAX_DIGITS`, None for 2; and to how many
            ``value`` rounds, None for all that it has.
        classes: The names of the classes in the order of the outputs.
        image: How a picture becomes an input.
        rounding: One of `ROUNDINGS`: results that are ``exact``, as they are for None, equal the fixed-point reference
            in every integer. ``faithful``, of mode ``cheetah``, takes fewer bytes and goes with output ``label``
            alone: whether a value is rounded up depends on the client's own random share, so a client that repeats a
            query learns more of the weights than one label tells. ``stochastic``, of mode ``tabula``, takes fewer
            bytes, too, and goes with ``label`` alone: values are rounded up as often as their fraction says, by
            numbers that the client does not know; the last rescale is exact.
        input_range: The smallest and the largest value that an input may have, 0 between them. None takes twice the
            range of the calibration samples, of which the client then learns.
        public_preprocessing: Whether the constants in front of the first layer, such as the means and scales of a
            scaler, are published exactly, for the client to apply in floating point. Not with `input_range`.
        precision: The largest logit error on the calibration samples as a percentage with its sign, or the bits of all
            activations. None is 0.5%, or 20% for ``logits`` of mode ``spectral``.
        kept_bits: For mode ``tabula``, the bits that each of its lookups keeps of a value, 3 to 16; without a precision
            inputs and weights then have as many, and 8 at least. None keeps what the precision takes.
        allow_imprecise: Whether a network that misses the precision asked for is taken, too.
        replace_relu: For mode ``spectral``, whether every ReLU gives way to the quadratic that fits it best on the
            calibration samples.
        reveal_saturation: For outputs ``logits`` and ``value``, whether the client learns in one bit whether any
            activation reached an upper bound of the compiler's own.
        proved_ranges: Whether no accepted input may take a value out of its ring, in any mode, and what has no proof of
            that is refused.
        batch: For modes ``gazelle``, ``cheetah``, ``auto`` and ``spectral``, how many samples a request holds: a power
            of two.
        max_memory: Bytes that either party may hold for a session with one prediction; see `lanner.limits`.
        max_seconds: Seconds that both parties together may compute on one core, very roughly.
        optimize: For mode ``auto``, one of `OBJECTIVES`.
        network: For mode ``auto``, what lies between the parties.
        kernels: For mode ``auto``, a table of what operations take, as JSON; None for the one that comes with the
            package.
    """

    name: str
    mode: str = "auto"
    output: str | None = None
    k: int = 1
    digits: int | None = None
    classes: Sequence[str] | None = None
    image: ImageDescription | None = None
    rounding: str | None = None
    input_range: tuple[float, float] | None = None
    public_preprocessing: bool = False
    precision: str | int | None = None
    kept_bits: int | None = None
    allow_imprecise: bool = False
    replace_relu: bool = False
    reveal_saturation: bool = False
    proved_ranges: bool = False
    batch: int = 1
    max_memory: str | int | None = None
    max_seconds: int | None = None
    optimize: str | None = None
    network: Network = LOOPBACK
    kernels: str | None = None

    def __post_init__(self) -> None:
        check_mode(self.mode)
        if self.optimize is not None:
            _check_choice("optimize", self.optimize, OBJECTIVES)
            if self.mode != "auto":
                raise MisuseError(
                    f"only mode auto has something to choose, and the mode is {self.mode}",
                    where="optimize",
                    fix="compile with mode auto, or leave it out",
                )
        if self.rounding is not None:
            _check_choice("rounding", self.rounding, ROUNDINGS)
        if self.output not in (None, "labels"):
            _check_choice("output", str(self.output), OUTPUTS)
        if self.k < 1:
            raise MisuseError(f"k is {self.k}", fix="give 1 or more")
        if self.digits is not None and not 1 <= self.digits <= MAX_DIGITS:
            raise MisuseError(f"digits is {self.digits}", fix=f"give 1 to {MAX_DIGITS}")
        if self.input_range is not None:
            _check_range(self.input_range)
            if self.public_preprocessing:
                raise MisuseError("public preprocessing goes with no stated input range", fix="give one of the two")
        if self.precision is not None:
            parse_precision(self.precision)
        self._check_of_one_mode()
        limits_document(self.max_memory, self.max_seconds)

    def _check_of_one_mode(self) -> None:
        """Check what goes with one mode alone."""
        if self.kept_bits is not None:
            check_kept_bits(self.kept_bits)
            if self.mode != "tabula":
                raise MisuseError(
                    f"bits are kept by the lookups of mode tabula alone, and the mode is {self.mode}",
                    fix="compile with mode tabula, or give a precision instead",
                )
        if self.replace_relu and self.mode != "spectral":
            raise MisuseError(
                f"ReLUs are replaced for mode spectral alone, and the mode is {self.mode}",
                fix="compile with mode spectral, or leave the ReLUs as they are",
            )
        if not isinstance(self.batch, int) or self.batch < 1 or self.batch & (self.batch - 1):
            raise MisuseError(f"a request holds no {self.batch} samples", fix="give a power of two, such as 16")
        if self.batch > 1 and self.mode not in PACKING_MODES:
            raise MisuseError(
                f"mode {self.mode} takes samples one by one",
                fix=f"compile with mode {', '.join(PACKING_MODES[:-1])} or {PACKING_MODES[-1]}, or without a batch",
            )

    def for_end(self, policy: Policy, scores: int, named: Sequence[str] | None = None) -> CompileOptions:
        """The options for a network's end.

        Args:
            policy: What follows from `output` and the end.
            scores: Its number of scores.
            named: The names that the network's file gives its classes; those of `classes` come before them.

        Raises:
            MisuseError: If k is larger than the number of scores, or there is not a name for each class.
        """
        if policy.output == "top-k" and self.k > scores:
            raise MisuseError(f"k is {self.k}, and the model has {counted(scores, 'score')}", fix=f"give 1 to {scores}")
        return replace(self, output=policy.output, classes=self._names(policy, scores, named))

    def document(self) -> str:
        """The options as the JSON text that the native compiler takes; the output is ``label`` where none is chosen."""
        return json.dumps(
            {
                "mode": self.mode,
                "rounding": self.rounding,
                "output": self.output or "label",
                "k": self.k,
                "digits": self.digits,
                "classes": None if self.classes is None else list(self.classes),
                "image": None if self.image is None else self.image.document(),
                "name": self.name,
                "precision": None if self.precision is None else parse_precision(self.precision),
                "kept_bits": self.kept_bits,
                "allow_imprecise": self.allow_imprecise,
                "replace_relu": self.replace_relu,
                "reveal_saturation": self.reveal_saturation,
                "proved_ranges": self.proved_ranges,
                "batch": self.batch,
                "input_range": None if self.input_range is None else list(map(float, self.input_range)),
                "public_preprocessing": self.public_preprocessing,
                "limits": limits_document(self.max_memory, self.max_seconds),
                "auto": {"optimize": self.optimize, "network": self.network.profile, "kernels": self.kernels},
            }
        )

    def _names(self, policy: Policy, scores: int, named: Sequence[str] | None) -> list[str] | None:
        if policy.output == "value":
            if self.classes is not None:
                raise MisuseError(
                    "a model with output value has no classes to name",
                    fix="leave the class names out, or choose output label if the output is no map",
                )
            return None
        # One score tells two classes apart.
        count = max(scores, 2)
        if self.classes is not None and len(self.classes) != count:
            raise MisuseError(
                f"there are {len(self.classes)} class names", fix=f"the model has {count} classes: name each"
            )
        names = named if self.classes is None else self.classes
        return None if names is None or len(names) != count else list(names)


def check_mode(mode: str) -> None:
    """Check that there is a mode of this name.

    Raises:
        MisuseError: If there is none.
    """
    _check_choice("mode", mode, MODES)


def _check_choice(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise MisuseError(f"{option} is {value!r}", fix=f"give one of {', '.join(known)}")


def _check_range(limits: Sequence[float]) -> None:
    usable = len(limits) == 2 and all(math.isfinite(limit) for limit in limits)
    if not usable or not limits[0] <= 0 <= limits[1] or limits[0] == limits[1]:
        raise MisuseError(
            f"input_range is {tuple(limits)}", fix="give the smallest and the largest value, with 0 between them"
        )
