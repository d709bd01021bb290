"""Values that are others one after another, as the steps of a recurrent network are in its output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.wire import Wire

#: The place of each element of a value, counted in row-major order.
Places = NDArray[np.int64]


class Stacks:
    """What values were joined, and what of them is picked whole."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[Wire, ...]] = {}

    def note(self, x: Wire, parts: tuple[Wire, ...]) -> None:
        """Note that x has the elements of the parts, one part after another."""
        if parts:
            self._parts[x.name] = parts

    def parts(self, x: Wire) -> tuple[Wire, ...]:
        """The parts of x; none where it is not joined."""
        return self._parts.get(x.name, ())

    def whole_parts(self, x: Wire, places: Places) -> Sequence[Wire] | None:
        """The parts that these elements of x are, one after another; None where a part is cut or turned round."""
        wanted, at = places.ravel(), 0
        starts = dict(zip(np.cumsum([0, *(part.size for part in self.parts(x))]).tolist(), self.parts(x), strict=False))
        whole = []
        while at < wanted.size:
            part = starts.get(int(wanted[at]))
            if part is None or not np.array_equal(wanted[at : at + part.size], wanted[at] + np.arange(part.size)):
                return None
            whole.append(part)
            at += part.size
        return whole
