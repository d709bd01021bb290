"""Sliding windows over images and rows: strides, dilations, and the padding that attributes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanner.errors import ModelError
from lanner.onnx.node import Node


@dataclass(frozen=True, slots=True)
class Window:
    """A resolved window.

    Attributes:
        kernel: Height and width of the kernel, before dilation.
        strides: Steps down and right.
        dilations: Distances of the kernel's taps.
        pads: Padding at the top, left, bottom and right.
        output: Height and width of the result.
        overhang: How far windows reach beyond the file's own padding under ``ceil_mode``, included in `pads`.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    output: tuple[int, int]
    overhang: tuple[int, int]


def resolve_window(node: Node, kernel: tuple[int, ...], sides: tuple[int, ...]) -> Window:
    """Resolve a node's window attributes for an image of a given height and width, or for rows of a given length.

    Rows are images of height 1.

    Raises:
        ModelError: If the window does not fit.
        UnsupportedOpError: If ``auto_pad`` is unknown or a pad is negative.
    """
    count = len(sides)
    strides, dilations = positive(node, "strides", count), positive(node, "dilations", count)
    ceil = bool(node.attr("ceil_mode", 0))
    begins, ends = _pads(node, kernel, sides, strides, dilations)
    axes = [
        _axis(sides[axis], kernel[axis], strides[axis], dilations[axis], (begins[axis], ends[axis]), ceil)
        for axis in range(count)
    ]
    if min(windows for windows, _ in axes) < 1:
        raise ModelError(
            f"a window of {_product(kernel)} does not fit {'an image' if count == 2 else 'rows'} of {_product(sides)}",
            where=node.where,
            fix="check the input's shape and the pads",
        )
    overhang = pair([reach for _, reach in axes], 0)
    (top, left), (bottom, right) = pair(begins, 0), pair(ends, 0)
    pads = (top, left, bottom + overhang[0], right + overhang[1])
    output = pair([windows for windows, _ in axes], 1)
    return Window(pair(kernel, 1), pair(strides, 1), pair(dilations, 1), pads, output, overhang)


def pair(values: Sequence[int], above: int) -> tuple[int, int]:
    """One number each for height and width; of rows there is the second one alone."""
    return (values[0], values[1]) if len(values) == 2 else (above, values[0])


def positive(node: Node, name: str, count: int) -> list[int]:
    """A list attribute of numbers from 1, which are 1 by default.

    Raises:
        UnsupportedOpError: If these are not as many numbers from 1.
    """
    values = [int(value) for value in node.attr(name, [1] * count)]
    if len(values) != count or min(values) < 1:
        raise node.unsupported(name, f"is {values}; {count} numbers from 1 are needed")
    return values


def _product(sides: Sequence[int]) -> str:
    return " x ".join(map(str, sides))


def _pads(
    node: Node, kernel: Sequence[int], sides: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before and after, per axis."""
    auto, count = node.attr("auto_pad", "NOTSET"), len(sides)
    if auto in ("NOTSET", ""):
        pads = [int(pad) for pad in node.attr("pads", [0] * 2 * count)]
        if len(pads) != 2 * count or min(pads) < 0:
            raise node.unsupported("pads", f"is {pads}; {2 * count} numbers from 0 are needed")
        return pads[:count], pads[count:]
    if auto == "VALID":
        return [0] * count, [0] * count
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.unsupported("auto_pad", f"is {auto}; NOTSET, VALID, SAME_UPPER and SAME_LOWER are supported")
    totals = [
        max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        for size, k, stride, dilation in zip(sides, kernel, strides, dilations, strict=True)
    ]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (small, large) if auto == "SAME_UPPER" else (large, small)


def _axis(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceil: bool) -> tuple[int, int]:
    """The number of windows on one axis, and how far the last one reaches beyond the padding."""
    span = (kernel - 1) * dilation + 1
    padded = size + pads[0] + pads[1]
    if padded < span:
        return 0, 0
    count = (padded - span) // stride + 1
    # Rounding up adds a window only where it starts on the image or its leading padding.
    if ceil and (padded - span) % stride and count * stride < size + pads[0]:
        return count + 1, count * stride + span - padded
    return count, 0
