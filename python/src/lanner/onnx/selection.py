"""Repeats elements and picks them in any order, as movements of one axis: slices that are joined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from lanner.onnx.builder import MAX_INPUTS, GraphBuilder, Wire


def pick(graph: GraphBuilder, x: Wire, axis: int, indices: Sequence[int]) -> Wire:
    """Pick elements of an axis, in any order and any number of times.

    Args:
        graph: Where nodes are added.
        x: The wire.
        axis: The axis, counted without the batch.
        indices: Which element each one of the result is, at least one, from 0.
    """
    graph.check_size([len(indices) if place == axis else side for place, side in enumerate(x.shape)])
    # Where each index stands as often as its neighbours, the elements are picked once and repeated.
    times = math.gcd(*(len(list(run)) for _, run in itertools.groupby(indices)))
    if times > 1:
        return repeat(graph, pick(graph, x, axis, indices[::times]), axis, times)
    slices: dict[range, Wire] = {}
    for run in _runs(indices):
        if run not in slices:
            slices[run] = graph.slice(x, along(x, axis, run))
    return graph.concat(tuple(slices[run] for run in _runs(indices)), axis)


def along(x: Wire, axis: int, chosen: range) -> tuple[range, ...]:
    """The picks of a slice that takes a range of one axis and all of the others."""
    return tuple(chosen if place == axis else range(side) for place, side in enumerate(x.shape))


def tile(graph: GraphBuilder, x: Wire, axis: int, times: int) -> Wire:
    """Repeat a whole axis: a, b becomes a, b, a, b."""
    graph.check_size([side * times if place == axis else side for place, side in enumerate(x.shape)])
    if times <= MAX_INPUTS:
        return graph.concat((x,) * times, axis)
    parts = [tile(graph, tile(graph, x, axis, MAX_INPUTS), axis, times // MAX_INPUTS)]
    if times % MAX_INPUTS:
        parts.append(tile(graph, x, axis, times % MAX_INPUTS))
    return graph.concat(tuple(parts), axis)


def repeat(graph: GraphBuilder, x: Wire, axis: int, times: int) -> Wire:
    """Repeat each element of an axis in its place: a, b becomes a, a, b, b."""
    before, side, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = graph.reshape(x, (*before, side, 1, *after))
    return graph.reshape(tile(graph, apart, axis + 1, times), (*before, side * times, *after))


def broadcast(graph: GraphBuilder, x: Wire, shape: tuple[int, ...]) -> Wire:
    """Repeat axes of one element until x has a shape, which has as many axes or more."""
    x = graph.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape)
    for axis, (side, wanted) in enumerate(zip(x.shape, shape, strict=True)):
        if side != wanted:
            x = tile(graph, x, axis, wanted)
    return x


def unrepeated(graph: GraphBuilder, x: Wire) -> Wire:
    """What a wire is a repetition of along whole axes: sides of 1 stand in place of those; itself if it is none."""
    while (made := graph.made(x)) is not None and made.operator == "Concat":
        once = made.inputs[0]
        changed = [(a, b) for a, b in zip(once.shape, x.shape, strict=True) if a != b]
        if len(set(made.inputs)) > 1 or len(changed) != 1 or changed[0][0] != 1:
            break
        x = once
    return x


def _runs(indices: Sequence[int]) -> list[range]:
    """The indices as ranges one after another, each as long as it can be."""
    runs: list[range] = []
    first = 0
    while first < len(indices):
        step = indices[first + 1] - indices[first] if first + 1 < len(indices) else 1
        last = first
        while step and last + 1 < len(indices) and indices[last + 1] - indices[last] == step:
            last += 1
        step = step or 1
        runs.append(range(indices[first], indices[first] + step * (last - first + 1), step))
        first = last + 1
    return runs
