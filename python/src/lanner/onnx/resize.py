"""Resizing: to the nearest element, which is a movement, or to what is between elements, which are sums of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lanner.onnx.builder import GraphBuilder, Wire
from lanner.onnx.folding import BATCH
from lanner.onnx.linear_maps import Taps, weighted_sums_along
from lanner.onnx.node import Node
from lanner.onnx.pad import pad_with
from lanner.onnx.registry import lowers
from lanner.onnx.selection import pick


@dataclass(frozen=True, slots=True)
class Axis:
    """How an axis is resized.

    Attributes:
        source: The number of elements before.
        target: The number of elements after.
        scale: Elements after for each one before, as the file has it; not quite ``target / source``.
        window: The part of the axis that mode ``tf_crop_and_resize`` takes, from 0 to 1.
    """

    source: int
    target: int
    scale: np.float32
    window: tuple[float, float]


@lowers("Resize")
def lower_resize(node: Node, graph: GraphBuilder) -> Wire:
    """Lower ``Resize`` in every mode, with every way to count coordinates: elements that are picked, or sums of them.

    Which element is the nearest is computed in float32, as onnxruntime does.

    Raises:
        UnsupportedOpError: If the mode is unknown, the sizes are not constant, or samples would be added.
    """
    _check_attributes(node)
    x, mode = node.wire(0), node.attr("mode", "nearest")
    coordinates = node.attr("coordinate_transformation_mode", "half_pixel")
    axes = _axes(node, (BATCH, *x.shape), coordinates == _CROP)
    if axes[0].scale != 1.0 or axes[0].target != BATCH or min(axis.target for axis in axes) < 1:
        shape = tuple(axis.target for axis in axes)
        raise node.unsupported("sizes", f"turns {x.batch_shape} into {shape}; samples must stay apart")
    graph.check_size([axis.target for axis in axes])
    whole = all(axis.target == axis.source for axis in axes)
    outside, taps = list[tuple[int, int]](), dict[int, Taps]()
    for place, axis in enumerate(axes[1:]):
        found = _COORDINATES[coordinates](np.arange(axis.target, dtype=np.float32), axis)
        inside = (found >= 0) & (found <= axis.source - 1) if coordinates == _CROP else np.full(found.shape, True)
        if not inside.any():
            raise node.unsupported("roi", "holds nothing of the input")
        outside.append((int(inside.argmax()), int(inside[::-1].argmax())))
        each = _taps(node, found[inside], axis)
        if each.is_identity(axis.source):
            continue
        if whole or axis.scale == 1.0:
            # By the standard other elements are taken; onnxruntime takes the axis as it is.
            raise node.unsupported(
                "sizes", f"keeps axis {place + 1} but not its elements, which runtimes do differently"
            )
        taps[place] = each
    if mode == "nearest":
        for place, each in taps.items():
            x = pick(graph, x, place, np.ravel(each.places).tolist())
    else:
        x = weighted_sums_along(graph, x, taps)
    return pad_with(graph, x, outside, float(node.attr("extrapolation_value", 0.0)))


def _check_attributes(node: Node) -> None:
    for name, usual, known in (
        ("mode", "nearest", ("nearest", *_KERNELS)),
        ("coordinate_transformation_mode", "half_pixel", tuple(_COORDINATES)),
        ("nearest_mode", _FLOOR, tuple(_NEAREST)),
        ("keep_aspect_ratio_policy", "stretch", tuple(_POLICIES)),
    ):
        if node.attr(name, usual) not in known:
            raise node.unsupported(name, f"is {node.attr(name, usual)}; {', '.join(known)} are known")
    if node.attr("mode", "nearest") == "nearest" and node.attr("antialias", 0):
        raise node.unsupported("antialias", "is set, which mode nearest has not")
    if not math.isfinite(extrapolated := float(node.attr("extrapolation_value", 0.0))):
        raise node.unsupported("extrapolation_value", f"is {extrapolated}, not finite")


def _taps(node: Node, places: NDArray[np.float32], axis: Axis) -> Taps:
    """The elements that make those at places along an axis: the nearest of each, or those around it."""
    mode = node.attr("mode", "nearest")
    if mode != "nearest":
        return _between(node, places.astype(np.float64), axis, mode)
    picked = np.clip(_NEAREST[node.attr("nearest_mode", _FLOOR)](places), 0, axis.source - 1).astype(np.int64)
    return Taps(picked[:, np.newaxis], np.ones((len(picked), 1)))


def _between(node: Node, found: NDArray[np.float64], axis: Axis, mode: str) -> Taps:
    """The elements around places between them, and their weights."""
    kernel, reach = _KERNELS[mode]
    shrunk = min(float(axis.scale), 1.0) if node.attr("antialias", 0) else 1.0
    first = math.floor(-reach / shrunk) + 1
    places = np.floor(found)[:, np.newaxis] + np.arange(first, 2 - first)
    weights = kernel((places - found[:, np.newaxis]) * shrunk, float(node.attr("cubic_coeff_a", -0.75)))
    if node.attr("exclude_outside", 0):
        weights = np.where((places >= 0) & (places < axis.source), weights, 0.0)
    weights /= weights.sum(1, keepdims=True)
    return Taps(np.clip(places, 0, axis.source - 1).astype(np.int64), weights)


def _linear(x: NDArray[np.float64], _: float) -> NDArray[np.float64]:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _cubic(x: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    x = np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    return np.where(x <= 1.0, near, np.where(x < 2.0, far, 0.0))


#: How much an element at a distance weighs, and how far it may be.
_KERNELS: dict[str, tuple[Callable[[NDArray[np.float64], float], NDArray[np.float64]], int]] = {
    "linear": (_linear, 1),
    "cubic": (_cubic, 2),
}


def _axes(node: Node, source: tuple[int, ...], crops: bool) -> list[Axis]:
    """All axes, the batch included."""
    rank = len(source)
    listed: list[int] = list(node.attr("axes", list(range(rank))))
    if not all(-rank <= axis < rank for axis in listed):
        raise node.unsupported("axes", f"is {listed}, of {rank} axes")
    scales, sizes = _numbers(node, 2), _numbers(node, 3)
    if (scales if scales.size else sizes).size != len(listed) or (scales.size and sizes.size):
        raise node.unsupported("inputs", "must be one scale or one size for each axis")
    edges = _numbers(node, 1).tolist() if crops else [0.0] * len(listed) + [1.0] * len(listed)
    if len(edges) != 2 * len(listed):
        raise node.unsupported("roi", "must be a start and an end for each axis")
    for name, numbers in (("scales", scales), ("roi", np.asarray(edges))):
        if not np.isfinite(numbers.astype(np.float64)).all():
            raise node.unsupported(name, f"is {numbers.tolist()}; finite numbers are needed")
    axes = [Axis(side, side, np.float32(1.0), (0.0, 1.0)) for side in source]
    for place, axis in enumerate(listed):
        side, window = source[axis], (edges[place], edges[place + len(listed)])
        if scales.size:
            scale = np.float32(scales[place])
            with np.errstate(over="ignore"):
                extent = float(scale * np.float32(side))
            if not 0 < scale < np.inf or extent == math.inf:
                raise node.unsupported(
                    "scales", f"is {scales.tolist()}; numbers above 0, of sizes there are, are needed"
                )
            axes[axis] = Axis(side, math.floor(extent), scale, window)
        else:
            target = int(sizes[place])
            axes[axis] = Axis(side, target, np.float32(target) / np.float32(side), window)
    return _of_one_scale(node, axes, listed) if sizes.size else axes


def _of_one_scale(node: Node, axes: list[Axis], listed: list[int]) -> list[Axis]:
    """The axes at one scale where their ratio is to be kept; as they are elsewhere."""
    policy, rank = _POLICIES[node.attr("keep_aspect_ratio_policy", "stretch")], len(axes)
    if policy is None:
        return axes
    if 0 in (axis % rank for axis in listed):
        raise node.unsupported("keep_aspect_ratio_policy", "depends on the number of samples", "name its axes")
    scale = policy(axes[axis].scale for axis in listed)
    for axis in listed:
        exact = float(scale * np.float32(axes[axis].source))
        axes[axis] = replace(axes[axis], target=math.floor(exact + 0.5), scale=scale)
    return axes


def _numbers(node: Node, index: int) -> NDArray[np.generic]:
    value = node.constant(index)
    return np.zeros(0, np.float32) if value is None else np.ravel(value)


def _half_pixel(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    return (x + _HALF) / axis.scale - _HALF


def _half_pixel_symmetric(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    adjustment = np.float32(axis.target) / (axis.scale * np.float32(axis.source))
    offset = np.float32(axis.source) / np.float32(2.0) * (np.float32(1.0) - adjustment)
    return offset + _half_pixel(x, axis)


def _pytorch_half_pixel(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    return _half_pixel(x, axis) if axis.target > 1 else x * _ZERO


def _align_corners(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    if axis.target == 1:
        return x * _ZERO
    return x * np.float32(axis.source - 1) / np.float32(axis.target - 1)


def _tf_half_pixel(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    return (x + _HALF) / axis.scale


def _asymmetric(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    return x / axis.scale


def _crop(x: NDArray[np.float32], axis: Axis) -> NDArray[np.float32]:
    start, end = (np.float32(edge) for edge in axis.window)
    last = np.float32(axis.source - 1)
    if axis.target == 1:
        return x * _ZERO + _HALF * (start + end) * last
    return start * last + x * (end - start) * last / np.float32(axis.target - 1)


#: Which of the scales that sizes ask for is that of all axes.
_POLICIES: dict[str, Callable[[Iterable[np.float32]], np.float32] | None] = {
    "stretch": None,
    "not_larger": min,
    "not_smaller": max,
}

_HALF, _ZERO = np.float32(0.5), np.float32(0.0)
_CROP = "tf_crop_and_resize"
_FLOOR = "round_prefer_floor"

#: Where an element of the result lies among those of the axis before it.
_COORDINATES: dict[str, Callable[[NDArray[np.float32], Axis], NDArray[np.float32]]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "tf_half_pixel_for_nn": _tf_half_pixel,
    "asymmetric": _asymmetric,
    _CROP: _crop,
}

#: Which element is nearest to a place between two.
_NEAREST: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    _FLOOR: lambda x: np.ceil(x - _HALF),
    "round_prefer_ceil": lambda x: np.floor(x + _HALF),
    "floor": np.floor,
    "ceil": np.ceil,
}
