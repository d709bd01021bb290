"""One sample layer by layer: float, fixed-point and secure side by side, and where they part.

Both parties run in this process, where their shares meet: for whoever has the weights and the input. No server and no
client can do this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanner.errors import native_errors
from lanner.interrupts import interruptible
from lanner.options import LOOKUP_MODES

if TYPE_CHECKING:
    from lanner.model import Model


@dataclass(frozen=True, slots=True)
class LayerTrace:
    """What one layer makes of the sample.

    Attributes:
        name: The node of the integer network: a layer, an activation, a rescale.
        operator: Its operator.
        error: The largest error against the float network, in the units of its values; None where the float network has
            no such value.
        relative_error: The same as a part of the layer's largest value, the sample's or one of the calibration samples.
        low: The smallest value, or 0.
        high: The largest value, or 0.
        of_calibrated_range: The largest magnitude as a part of the largest on the calibration samples.
        of_ring: The same as a part of what its ring has room for.
        bits: Bits of the ring.
        overflows: Sums that leave the ring.
        saturated: Values beyond an upper bound of the compiler's own, which saturate.
        protocol: What computes it; None inside another step's protocol, and without a secure run.
        secure_differences: In how many elements the parties' value is not the reference's; None where it is not shared.
        largest_secure_difference: The largest difference, in units of the last place.
    """

    name: str
    operator: str
    error: float | None
    relative_error: float | None
    low: float
    high: float
    of_calibrated_range: float | None
    of_ring: float | None
    bits: int
    overflows: int
    saturated: int
    protocol: str | None
    secure_differences: int | None
    largest_secure_difference: int | None


@dataclass(frozen=True, slots=True)
class Departure:
    """The first layer at which something departs.

    Attributes:
        kind: ``secure``, ``overflow``, ``saturation``, ``calibration`` or ``precision``.
        layer: The layer.
        what: What is wrong there, in words.
        fix: What to change.
    """

    kind: str
    layer: str
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """A sample layer by layer.

    Attributes:
        layers: The integer network's nodes, in order.
        departures: The first of each kind, the gravest first; empty where all is well.
        document: What ``lanner debug --json`` prints.
    """

    layers: list[LayerTrace]
    departures: list[Departure]
    document: dict[str, Any]


def diverge(model: Model, sample: NDArray[np.float32], *, secure: bool = True) -> Divergence:
    """Run a sample through the float network, the fixed-point reference and, if asked, both parties.

    Args:
        model: The model.
        sample: Shape `model.manifest.input.shape`.
        secure: Whether both parties compute it, too.

    Raises:
        InputError: If the sample does not fit the model.
    """
    with native_errors(model.name):
        text = interruptible(lambda: model.native.debug(np.ascontiguousarray(sample), secure))
    document = json.loads(text)
    layers = [LayerTrace(**layer) for layer in document["layers"]]
    departures = list(_departures(layers, document))
    return Divergence(layers, departures, {**document, "departures": [asdict(found) for found in departures]})


def parting(model: Model, sample: NDArray[np.float32]) -> Departure:
    """Where float and fixed-point computation of a sample part: the first departure, else the layer that is off most.

    Args:
        model: The model.
        sample: Shape `model.manifest.input.shape`, on which they differ.

    Raises:
        InputError: If the sample does not fit the model.
    """
    found = diverge(model, sample, secure=False)
    if found.departures:
        return found.departures[0]
    known = [(layer.relative_error, layer.name) for layer in found.layers if layer.relative_error is not None]
    error, name = max(known, default=(0.0, found.layers[-1].name))
    what = f"no layer is off by more than {100 * error:.1f}%: the best scores are closer than that"
    return Departure("precision", name, what, "compile with a smaller --precision")


def _departures(layers: list[LayerTrace], document: dict[str, Any]) -> Iterator[Departure]:
    is_exact, tolerance = document["is_exact"], document["tolerance"]
    for layer in layers:
        if layer.secure_differences:
            what = (
                f"what both parties compute differs from the reference in {layer.secure_differences} elements, by up "
                f"to {layer.largest_secure_difference}"
            )
            fix = "report it: this is a defect of lanner" if is_exact else "nothing, or compile with exact rounding"
            yield Departure("secure", layer.name, what, fix)
            break
    for layer in layers:
        if layer.overflows:
            what = f"{layer.overflows} sums leave their ring of {layer.bits} bits, so that the result may be wrong"
            yield Departure("overflow", layer.name, what, "calibrate on samples like this one as well")
            break
        if layer.saturated:
            what = f"{layer.saturated} values are at the upper bound that calibration set, or beyond it, and saturate"
            yield Departure("saturation", layer.name, what, "calibrate on samples like this one as well")
            break
    # What a layer loses need not matter behind it.
    scores = layers[-1].relative_error
    for layer in layers if scores is not None and scores > tolerance else []:
        if layer.relative_error is not None and layer.relative_error > tolerance:
            what = f"it is off by {100 * layer.relative_error:.1f}% of its largest value"
            beyond = layer.of_calibrated_range
            if beyond is not None and beyond > 1:
                what += f", and that is {beyond:.2g} times the largest of the calibration samples"
                yield Departure("calibration", layer.name, what, "calibrate on samples like this one as well")
            else:
                # What a lookup drops is the lookup's.
                is_looked_up = document["mode"] in LOOKUP_MODES and layer.operator == "Rescale"
                yield Departure("precision", layer.name, what, _MORE_KEPT if is_looked_up else _MORE_BITS)
            break


_MORE_BITS = "compile with a smaller --precision, such as 0.1%, or with more bits, such as 14"
_MORE_KEPT = "compile with more --kept-bits, or without, for as many as the precision takes"
