"""Sliding windows over images: strides, dilations, and the padding that ``auto_pad`` and ``ceil_mode`` stand for."""

from __future__ import annotations

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


def resolve_window(node: Node, kernel: tuple[int, int], image: tuple[int, int]) -> Window:
    """Resolve a node's window attributes for an image of a given height and width.

    Raises:
        ModelError: If the window does not fit the image.
        UnsupportedOpError: If ``auto_pad`` is unknown or a pad is negative.
    """
    strides, dilations = _pair(node, "strides"), _pair(node, "dilations")
    ceil = bool(node.attr("ceil_mode", 0))
    begins, ends = _pads(node, kernel, image, strides, dilations)
    axes = [
        _axis(image[axis], kernel[axis], strides[axis], dilations[axis], (begins[axis], ends[axis]), ceil)
        for axis in (0, 1)
    ]
    output = (axes[0][0], axes[1][0])
    overhang = (axes[0][1], axes[1][1])
    if min(output) < 1:
        raise ModelError(
            f"a window of {kernel[0]} x {kernel[1]} does not fit an image of {image[0]} x {image[1]}",
            where=node.where,
            fix="check the input's shape and the pads",
        )
    pads = (begins[0], begins[1], ends[0] + overhang[0], ends[1] + overhang[1])
    return Window(kernel, strides, dilations, pads, output, overhang)


def _pair(node: Node, name: str) -> tuple[int, int]:
    values = [int(value) for value in node.attr(name, [1, 1])]
    if len(values) != 2 or min(values) < 1:
        raise node.unsupported(name, f"is {values}; two positive numbers are needed")
    return (values[0], values[1])


def _pads(
    node: Node,
    kernel: tuple[int, int],
    image: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> tuple[list[int], list[int]]:
    """Padding before and after, per axis."""
    auto = node.attr("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        pads = [int(pad) for pad in node.attr("pads", [0, 0, 0, 0])]
        if len(pads) != 4 or min(pads) < 0:
            raise node.unsupported("pads", f"is {pads}; four numbers from 0 are needed")
        return pads[:2], pads[2:]
    if auto == "VALID":
        return [0, 0], [0, 0]
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.unsupported("auto_pad", f"is {auto}; NOTSET, VALID, SAME_UPPER and SAME_LOWER are supported")
    totals = [
        max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        for size, k, stride, dilation in zip(image, kernel, strides, dilations, strict=True)
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
