"""Sliding windows over rows, images and volumes: strides, dilations, and the padding that attributes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """A window along one axis.

    Attributes:
        side: The number of elements of the axis.
        kernel: The number of taps.
        stride: The distance of neighbouring windows.
        dilation: The distance of neighbouring taps.
        pads: Padding before and after the axis, as the file has it.
        count: The number of windows.
        overhang: How far the last window reaches beyond the padding under ``ceil_mode``.
    """

    side: int
    kernel: int
    stride: int
    dilation: int
    pads: tuple[int, int]
    count: int
    overhang: int

    def places(self) -> NDArray[np.int64]:
        """Which element each tap of each window meets, (count, kernel); padding is below 0 or beyond the side."""
        first = np.arange(self.count)[:, np.newaxis] * self.stride - self.pads[0]
        return np.asarray(first + np.arange(self.kernel) * self.dilation, np.int64)

    def real(self) -> NDArray[np.bool_]:
        """Which taps meet an element, (count, kernel)."""
        places = self.places()
        return (places >= 0) & (places < self.side)


def resolve_axes(node: Node, kernel: Sequence[int], sides: Sequence[int]) -> list[AxisWindow]:
    """Resolve a node's window attributes, axis by axis.

    Raises:
        ModelError: If the window does not fit.
        UnsupportedOpError: If ``auto_pad`` is unknown or a pad is negative.
    """
    count = len(sides)
    strides, dilations = positive(node, "strides", count), positive(node, "dilations", count)
    ceil = bool(node.attr("ceil_mode", 0))
    begins, ends = _pads(node, kernel, sides, strides, dilations)
    axes = []
    for axis, side in enumerate(sides):
        taps, stride, dilation, pads = kernel[axis], strides[axis], dilations[axis], (begins[axis], ends[axis])
        windows, overhang = _count(side, taps, stride, dilation, pads, ceil)
        axes.append(AxisWindow(side, taps, stride, dilation, pads, windows, overhang))
    if min(axis.count for axis in axes) < 1:
        kind = {1: "rows", 2: "an image"}.get(count, "a volume")
        raise ModelError(
            f"a window of {_product(kernel)} does not fit {kind} of {_product(sides)}",
            where=node.where,
            fix="check the input's shape and the pads",
        )
    return axes


def resolve_window(node: Node, kernel: tuple[int, ...], sides: tuple[int, ...]) -> Window:
    """Resolve a node's window attributes for an image of a given height and width, or for rows of a given length.

    Rows are images of height 1.

    Raises:
        ModelError: If the window does not fit.
        UnsupportedOpError: If ``auto_pad`` is unknown or a pad is negative.
    """
    return window_of(resolve_axes(node, kernel, sides))


def window_of(axes: Sequence[AxisWindow]) -> Window:
    """The window of one axis, or of two."""
    overhang = pair([axis.overhang for axis in axes], 0)
    (top, left), (bottom, right) = (pair([axis.pads[end] for axis in axes], 0) for end in (0, 1))
    return Window(
        kernel=pair([axis.kernel for axis in axes], 1),
        strides=pair([axis.stride for axis in axes], 1),
        dilations=pair([axis.dilation for axis in axes], 1),
        pads=(top, left, bottom + overhang[0], right + overhang[1]),
        output=pair([axis.count for axis in axes], 1),
        overhang=overhang,
    )


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


def _count(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceil: bool) -> tuple[int, int]:
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
