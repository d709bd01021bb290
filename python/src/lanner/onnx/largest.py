"""The largest of a line of values: which one it is, the first few of them, and which these are.

All of it is made of comparisons and maxima, which are exact on the integers of fixed point, and of sums of truth
values: an index is a whole number, and of equal values the first one wins, as in onnxruntime.
"""

from __future__ import annotations

import numpy as np

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.lines import Lines
from lanner.onnx.movement import sample_axis
from lanner.onnx.node import Node
from lanner.onnx.reduction import sum_along
from lanner.onnx.registry import lowers
from lanner.onnx.selection import pick

#: The longest line of which the places of the first few are computed, which compares all pairs.
MOST_RANKED = 64


@lowers("ArgMax", "ArgMin")
def lower_arg_max(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``ArgMax`` and ``ArgMin`` inside a network: whole numbers; of equal elements the first or the last wins.

    Shapes: x (...); the result has a side of 1 at the axis, or lacks it without ``keepdims``.

    Raises:
        UnsupportedOpError: If the axis is the batch.
    """
    x = node.wire(0)
    axis = sample_axis(node, x, node.attr("axis", 0))
    backwards = bool(node.attr("select_last_index", 0))
    if node.operator == "ArgMin":
        x = graph.negate(x)
    if backwards:
        x = pick(graph, x, axis, range(x.shape[axis])[::-1])
    lines = Lines.of(graph, x, [axis])
    place = first_largest(graph, lines)
    if backwards:
        place = graph.subtract_from(float(lines.length - 1), place)
    return lines.reduced(graph, place, keepdims=bool(node.attr("keepdims", 1)))


def first_largest(graph: GraphBuilder, lines: Lines) -> Wire:
    """Add the place of the first of the largest elements of each line: (lines, 1, 1)."""
    count, length = lines.image.shape[0], lines.length
    if length == 1:
        return graph.multiply_constant(lines.image, np.zeros((), np.float32))
    rows = graph.transpose(graph.reshape(lines.image, (count, length)), (1, 0))
    if length == 2:
        above = graph.step(graph.subtract(pick(graph, rows, 0, [1]), pick(graph, rows, 0, [0])))
        return graph.reshape(above, (count, 1, 1))
    largest = pick(graph, graph.reshape(lines.largest(graph), (1, count)), 0, [0] * length)
    is_smaller = graph.reshape(graph.step(graph.subtract(largest, rows)), (length, count, 1))
    # Whether of the first 1, 2, ... fewer are smaller: whole numbers are compared with what is halfway between them.
    among = -np.tri(length - 1, length, dtype=np.float32)[:, :, np.newaxis, np.newaxis]
    firsts = np.arange(1, length, dtype=np.float32).reshape(-1, 1, 1) - np.float32(0.5)
    left = graph.add_constant(graph.one_tap(is_smaller, among, 1), firsts)
    found = graph.reshape(graph.step(left), (length - 1, count))
    total = sum_along(graph, found, [0])
    return graph.reshape(graph.subtract_from(float(length - 1), total), (count, 1, 1))


@lowers("TopK")
def lower_top(node: Node, graph: GraphBuilder) -> tuple[Wire | None, ...]:
    """Lower ``TopK``: the largest or the smallest of each line in order, and their places, where these are read.

    Raises:
        UnsupportedOpError: If the number is no constant or beyond a line, no order is asked for, the axis is the batch,
            or places of long lines are read.
    """
    x = node.wire(0)
    axis = sample_axis(node, x, node.attr("axis", -1))
    given = node.constant(1) if len(node.inputs) > 1 else np.array(node.attr("k", 0))
    count, length = int(np.ravel(np.asarray(given))[0]), x.shape[axis]
    if not 1 <= count <= length:
        raise node.unsupported("k", f"is {count}, of {length} elements")
    if not node.attr("sorted", 1) and count > 1:
        raise node.unsupported(
            "sorted", "is 0, which leaves the order to each runtime", "export the model with an order"
        )
    sign = 1.0 if node.attr("largest", 1) else -1.0
    lines = Lines.of(graph, graph.scale(x, sign), [axis])
    rows = graph.transpose(graph.reshape(lines.image, (lines.image.shape[0], length)), (1, 0))

    def back(found: Wire) -> Wire:
        """Shape (count, lines) as x's, with `count` elements along the axis."""
        kept = [side for place, side in enumerate(x.shape) if place != axis]
        apart = graph.reshape(found, (count, *kept))
        order = list(range(1, len(x.shape)))
        order.insert(axis, 0)
        return graph.transpose(apart, tuple(order))

    told = node.proto.output
    values = back(graph.scale(largest_of(graph, rows, count), sign)) if told[0] else None
    if len(told) < 2 or not told[1]:
        return (values,)
    if count == 1:
        place = graph.reshape(first_largest(graph, lines), (1, rows.shape[1]))
        return values, back(place)
    if length > MOST_RANKED:
        raise node.unsupported(
            f"output {told[1]}",
            f"has places among {length} elements, and {MOST_RANKED} are compared in pairs at most",
            "read its values alone; of nearest neighbours take a KNeighborsClassifier with uniform weights, or an SVR",
        )
    return values, back(_places(graph, rows, count))


def largest_of(graph: GraphBuilder, rows: Wire, count: int) -> Wire:
    """Add the largest few of each column in descending order: rows (n, columns); the result is (count, columns)."""
    size = max(2 * count, 4)
    while rows.shape[0] > 2 * size:
        # Of each group no more than `count` are among the largest of all.
        length, columns = rows.shape
        groups = length // size
        grouped = graph.reshape(pick(graph, rows, 0, range(groups * size)), (size, groups * columns))
        kept = graph.reshape(_sorted(graph, grouped, count), (count * groups, columns))
        rest = range(groups * size, length)
        rows = graph.concat((kept, pick(graph, rows, 0, rest)), 0) if rest else kept
    return _sorted(graph, rows, count)


def _sorted(graph: GraphBuilder, rows: Wire, count: int) -> Wire:
    """The same by a network that sorts: max and min of two at a time, those of a level at once."""
    places = {place: place for place in range(rows.shape[0])}
    for pairs in _levels(rows.shape[0], count):
        first = pick(graph, rows, 0, [places[pair[0]] for pair in pairs])
        second = pick(graph, rows, 0, [places[pair[1]] for pair in pairs])
        more = graph.relu(graph.subtract(second, first))
        larger, smaller = graph.add(first, more), graph.subtract(second, more)
        start = rows.shape[0]
        rows = graph.concat((rows, larger, smaller), 0)
        for index, pair in enumerate(pairs):
            places |= {pair[0]: start + index, pair[1]: start + len(pairs) + index}
    return pick(graph, rows, 0, [places[place] for place in range(count)])


def _levels(length: int, count: int) -> list[list[tuple[int, int]]]:
    """Batcher's network for so many elements, as far as the first few outputs need it: pairs, the larger one first."""
    levels: list[list[tuple[int, int]]] = []
    whole = 1 << max(length - 1, 1).bit_length() - 1
    step = whole
    while step > 0:
        high, offset, distance = whole, 0, step
        while distance > 0:
            levels.append([(i, i + distance) for i in range(length - distance) if i & step == offset])
            distance, high, offset = high - step, high // 2, step
        step //= 2
    needed, kept = set(range(count)), []
    for level in reversed(levels):
        used = [pair for pair in level if needed.intersection(pair)]
        needed.update(place for pair in used for place in pair)
        kept += [used] if used else []
    return kept[::-1]


def _places(graph: GraphBuilder, rows: Wire, count: int) -> Wire:
    """Add the places of the largest few of each column, equal ones in order: rows (n, columns)."""
    length, columns = rows.shape
    pairs = [(i, j) for i in range(length) for j in range(i + 1, length)]
    first, second = (pick(graph, rows, 0, [pair[side] for pair in pairs]) for side in (0, 1))
    later_wins = graph.reshape(graph.step(graph.subtract(second, first)), (len(pairs), columns, 1))
    # How many come before each: of a pair the later one only where it is larger.
    weight = np.zeros((length, len(pairs), 1, 1), np.float32)
    for index, (i, j) in enumerate(pairs):
        weight[i, index], weight[j, index] = 1.0, -1.0
    before = graph.reshape(graph.one_tap(later_wins, weight, 1), (length, columns))
    ahead = np.arange(length, dtype=np.float32).reshape(length, 1)
    found = []
    # Whole numbers are compared with what is halfway between them.
    beyond = [graph.step(graph.add_constant(before, ahead - np.float32(rank - 0.5))) for rank in range(count + 1)]
    times = [place for place in range(length) for _ in range(place)]
    for rank in range(count):
        here = graph.subtract(beyond[rank], beyond[rank + 1])
        # Each place counts as often as its number says.
        found.append(graph.reshape(sum_along(graph, pick(graph, here, 0, times), [0]), (1, columns)))
    return graph.concat(tuple(found), 0)
