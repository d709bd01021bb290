"""Softmax behind a constant mask: what is masked out takes no part, whatever the scores are.

Files add -inf, -3.4e38 or -1e4 to the scores that a token must not see, or put them in their place. Numbers as large as
that would widen the range of the sums, and so cost the scores their precision. Here the mask is taken off again:

1. Positions that no row sees are cut.
2. In every row a position that it sees takes the place of those that it does not, so that the row's largest element is
   one that it sees, for any input.
3. `HIDDEN` is taken off the differences from the largest at these positions, where exponentials are then 0.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lines import Lines
from lanner.onnx.selection import along, pick, tile

#: A constant that is as much below the largest of its row is a mask, for which scores hardly make up.
MASKING = 1000.0

#: Of a row whose constants are all below this, float32 keeps nothing of the scores: its positions weigh the same.
ABSORBING = -1e9

#: Exponentials this far below the largest are less than a unit of any output: 2^-28.
HIDDEN = 20.0

#: The rows and the columns of a block.
_Place: TypeAlias = tuple[range, range]

#: The most rows of different masks that are filled one by one; more are filled in blocks, of which equal ones are one.
_ROWS = 32


@dataclass(frozen=True, slots=True)
class Masked:
    """Lines of scores behind a mask.

    Attributes:
        lines: What a softmax reads, in which every element is a score that the line sees, its own or another one.
        hidden: What is added to the differences from the largest, (lines, length, 1) or less; None where nothing is.
        cut: How many elements at either end of each line no line sees; they are not among `lines`.
        undefined: Which lines see nothing, where a softmax in floats is NaN, in the whole value's shape; None if none.
    """

    lines: Lines
    hidden: NDArray[np.float32] | None
    cut: tuple[int, int]
    undefined: NDArray[np.bool_] | None

    @staticmethod
    def of(graph: GraphBuilder, x: Wire, axis: int) -> Masked | None:
        """Find the mask that was added to scores; None where there is none."""
        found = _apart(graph, x, drop=True)
        if found is not None and _sees_nothing(found[1], axis).any():
            found = _apart(graph, x, drop=False)
        return None if found is None else Masked.with_terms(graph, found[0], found[1], axis)

    @staticmethod
    def with_terms(graph: GraphBuilder, scores: Wire, terms: NDArray[np.float64], axis: int) -> Masked:
        """The lines of ``scores + terms`` along an axis, where terms have the scores' shape."""
        largest = terms.max(axis, keepdims=True)
        absorbed = largest <= ABSORBING
        seen = np.where(absorbed, terms == largest, terms > largest - MASKING)
        # A row that sees nothing is as one that sees all; somebody must leave it out again.
        nothing = np.isneginf(largest)
        # What all of a row has in common changes nothing.
        common = np.where((largest <= -MASKING) & ~nothing, largest, 0.0)
        bias = np.where(seen & ~absorbed, terms - common, 0.0)
        if bias.any():
            scores = graph.add_constant(scores, bias.astype(np.float32))
        used = np.flatnonzero(np.moveaxis(seen, axis, -1).reshape(-1, seen.shape[axis]).any(0))
        first, end = int(used[0]), int(used[-1]) + 1
        kept = Lines.of(graph, graph.slice(scores, along(scores, axis, range(first, end))), [axis])
        rows = _as_rows(seen, axis)[:, first:end]
        flat = _as_rows(np.broadcast_to(absorbed, seen.shape), axis)[:, 0]
        filled = _filled(graph, kept.image, rows, flat)
        hidden = None if rows.all() else np.where(rows, 0.0, -HIDDEN).astype(np.float32)[..., np.newaxis]
        undefined = np.broadcast_to(nothing, seen.shape) if nothing.any() else None
        return Masked(kept.over(filled), hidden, (first, seen.shape[axis] - end), undefined)

    def back(self, graph: GraphBuilder, image: Wire) -> Wire:
        """Add the value of the scores' shape, whose lines are those of an image, and zeros where they were cut."""
        whole = self.lines.over(image).back(graph)
        (axis,), rank = self.lines.axes, len(whole.shape)
        before, after = (tuple(count if place == axis else 0 for place in range(rank)) for count in self.cut)
        return graph.pad(whole, before, after)


def _apart(graph: GraphBuilder, x: Wire, *, drop: bool) -> tuple[Wire, NDArray[np.float64]] | None:
    """What a mask was added to, moved as that sum was since, and all constants of the sum; None where there is no mask.

    Args:
        graph: Where nodes are added.
        x: The sum.
        drop: Whether a product before it with 0 where the mask is, and 1 elsewhere, is left out.
    """
    steps = _steps_since_mask(graph, x)
    if not steps:
        return None
    scores = steps[0].before
    terms = np.broadcast_to(np.asarray(steps[0].value, np.float64), scores.shape)
    if drop:
        scores = _unmultiplied(graph, scores, terms)
    for step in steps[1:]:
        if step.operator == "AddConstant":
            terms = terms + step.value
        elif step.operator == "MulConstant":
            terms, scores = terms * step.value, graph.multiply_constant(scores, np.asarray(step.value))
        elif step.operator == "Transpose":
            terms, scores = terms.transpose(step.axes), graph.transpose(scores, step.axes)
        else:
            terms, scores = terms.reshape(step.after.shape), graph.reshape(scores, step.after.shape)
    return scores, terms


@dataclass(frozen=True, slots=True)
class _Step:
    """A node between a mask and a softmax: what it reads and makes, and its constant or order of axes."""

    operator: str
    before: Wire
    after: Wire
    value: NDArray[np.float32] | float = 0.0
    axes: tuple[int, ...] = ()


def _steps_since_mask(graph: GraphBuilder, x: Wire) -> list[_Step]:
    """The nodes from the first mask that was added to x, whose step is the first; empty where there is none."""
    steps: list[_Step] = []
    masks = 0
    while (step := _step_before(graph, x)) is not None:
        steps.append(step)
        x = step.before
        if step.operator == "AddConstant" and np.min(step.value) <= -MASKING:
            masks = len(steps)
    return steps[:masks][::-1]


def _step_before(graph: GraphBuilder, x: Wire) -> _Step | None:
    """What made x, where a mask passes through it."""
    if graph.image_name(x) != x.name:
        return _Step("Reshape", graph.image(x), x)
    made = graph.made(x)
    if made is None:
        return None
    if made.operator in ("Reshape", "Flatten", "Transpose"):
        return _Step(made.operator, made.inputs[0], x, axes=tuple(made.attributes.get("axes", ())))
    if made.value is None or (made.operator == "MulConstant" and not (made.value > 0.0).all()):
        return None
    passes = made.operator in ("AddConstant", "MulConstant")
    return _Step(made.operator, made.inputs[0], x, made.value) if passes else None


def _unmultiplied(graph: GraphBuilder, scores: Wire, terms: NDArray[np.float64]) -> Wire:
    """What scores were before they were multiplied with 0 where they are masked, and with 1 elsewhere."""
    made = graph.made(scores) if graph.image_name(scores) == scores.name else None
    if made is None or made.operator != "MulConstant" or made.value is None:
        return scores
    factors = np.broadcast_to(made.value, scores.shape)
    return made.inputs[0] if (factors[terms > -MASKING] == 1.0).all() else scores


def _sees_nothing(terms: NDArray[np.float64], axis: int) -> NDArray[np.bool_]:
    return np.asarray(terms.max(axis) <= -MASKING)


def _as_rows(values: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Elements along an axis as rows, in the order of `Lines`."""
    return np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])


def _filled(graph: GraphBuilder, image: Wire, seen: NDArray[np.bool_], flat: NDArray[np.bool_]) -> Wire:
    """Put an element that a line sees in the place of those that it does not.

    Args:
        graph: Where nodes are added.
        image: Shape (lines, length, 1).
        seen: Which elements each line sees, at least one: (lines, length).
        flat: Lines all of whose elements are to be alike: (lines,).
    """
    lines, length = seen.shape
    own = np.arange(length)
    sources = np.where(seen & ~flat[:, np.newaxis], own, seen.argmax(1)[:, np.newaxis])
    if (sources == own).all():
        return image
    period = _period(sources)
    x = graph.reshape(image, (lines // period, period, length))
    blocks = None if len(_groups(sources[:period])) <= _ROWS or flat.any() else _in_blocks(graph, x, seen[:period])
    return graph.reshape(blocks or _by_rows(graph, x, sources[:period]), image.shape)


def _by_rows(graph: GraphBuilder, x: Wire, sources: NDArray[np.int64]) -> Wire:
    """Pick the elements of rows of the same sources together: x (g, rows, n), sources (rows, n)."""
    parts = []
    for first, end in _groups(sources):
        rows = graph.slice(x, along(x, 1, range(first, end)))
        parts.append(pick(graph, rows, 2, sources[first].tolist()))
    return graph.concat(tuple(parts), 1)


def _in_blocks(graph: GraphBuilder, x: Wire, seen: NDArray[np.bool_]) -> Wire | None:
    """The same block by block, of which those of one mask are filled at once: a causal mask has few kinds.

    Returns:
        None where a row of some block sees a part of it in others and nothing in this one.
    """
    rows, columns = seen.shape
    side = math.isqrt(max(rows, columns) - 1) + 1
    down, right = (_cuts(total, side) for total in (rows, columns))
    kinds: dict[bytes, list[_Place]] = {}
    for place in itertools.product(down, right):
        block = seen[np.ix_(*place)]
        if block.any() and not block.all():
            if not block.any(1).all():
                return None
            kinds.setdefault(str(block.shape).encode() + block.tobytes(), []).append(place)
    filled: dict[_Place, Wire] = {}
    for places in kinds.values():
        filled.update(_fill_alike(graph, x, places, seen[np.ix_(*places[0])]))
    groups = range(x.shape[0])
    bands = []
    for band in down:
        known = {
            at: filled.get((band, at)) or graph.slice(x, (groups, band, at))
            for at in right
            if seen[np.ix_(band, at)].any()
        }
        whole = next(iter(known.values()))
        column = graph.slice(whole, along(whole, 2, range(1)))
        bands.append(graph.concat(tuple(known.get(at) or tile(graph, column, 2, len(at)) for at in right), 2))
    return graph.concat(tuple(bands), 1)


def _fill_alike(graph: GraphBuilder, x: Wire, places: list[_Place], seen: NDArray[np.bool_]) -> dict[_Place, Wire]:
    """Fill the blocks of x, (g, rows, n), of which all have one mask."""
    groups = range(x.shape[0])
    blocks = graph.concat(tuple(graph.slice(x, (groups, *place)) for place in places), 0)
    together = _by_rows(graph, blocks, np.where(seen, np.arange(seen.shape[1]), seen.argmax(1)[:, np.newaxis]))
    whole = tuple(range(side) for side in seen.shape)
    return {
        place: graph.slice(together, (range(index * len(groups), (index + 1) * len(groups)), *whole))
        for index, place in enumerate(places)
    }


def _cuts(total: int, side: int) -> list[range]:
    return [range(first, min(first + side, total)) for first in range(0, total, side)]


def _groups(rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Neighbouring rows that are equal, from the first one of each group to behind the last."""
    changes = [0, *(np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1).tolist(), len(rows)]
    return list(itertools.pairwise(changes))


def _period(rows: NDArray[np.int64]) -> int:
    """After how many rows they repeat: the masks of all heads are mostly one."""
    count = len(rows)
    for period in range(1, count):
        if count % period == 0 and (rows[period:] == rows[:-period]).all():
            return period
    return count
