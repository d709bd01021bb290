"""Pictures of what a prediction takes and of what becomes of its values, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanner.divergence import LayerTrace
from lanner.estimate import Estimate, LayerEstimate
from lanner.waterfall import Span, Stretches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def size_of(rows: int) -> tuple[float, float]:
    """Inches of a picture with so many rows."""
    return (10.0, 1.3 + _ROW * max(rows, 3))


def spoken(layers: Sequence[LayerEstimate]) -> list[LayerEstimate]:
    """The layers that take time or bytes, but for those that each party computes alone."""
    return [layer for layer in layers if not layer.protocol.startswith("local.")]


def draw_estimate(drawn: Figure, found: Estimate) -> None:
    """Seconds and bytes of each layer, offline and online."""
    layers = spoken(found.layers)
    times, sizes = drawn.subplots(1, 2, sharey=True)
    names = [f"{layer.name}  ({layer.protocol})" for layer in layers]
    offline, online = [layer.offline for layer in layers], [layer.online for layer in layers]
    for axes, units, parts in (
        (times, _TIMES, ([phase.seconds for phase in offline], [phase.seconds for phase in online])),
        (sizes, _SIZES, ([phase.bytes for phase in offline], [phase.bytes for phase in online])),
    ):
        factor, unit = _unit(units, max(map(sum, zip(*parts, strict=True)), default=0.0))
        scaled = [[value * factor for value in part] for part in parts]
        _stacked(axes, names, [("offline", scaled[0], _OFFLINE), ("online", scaled[1], _ONLINE)], unit)
    times.legend(loc="lower right")
    drawn.suptitle(f"mode {found.mode} over {found.network.describe()}")


def draw_divergence(drawn: Figure, layers: Sequence[LayerTrace]) -> None:
    """How far each layer is off, and how much of its ring it takes."""
    errors, rings = drawn.subplots(1, 2, sharey=True)
    names = [layer.name for layer in layers]
    _stacked(errors, names, [("", [100 * (layer.relative_error or 0) for layer in layers], _ONLINE)], "% off")
    _stacked(rings, names, [("", [100 * (layer.of_ring or 0) for layer in layers], _OFFLINE)], "% of its ring")
    rings.axvline(100, color="#b00020", linestyle="--")
    rings.set_xlim(right=max(rings.get_xlim()[1], 105))


def waterfall_size(steps: Sequence[Span]) -> tuple[float, float]:
    """Inches of a waterfall of so many steps."""
    width, height = size_of(len(steps))
    return width, height + _AXIS * len(_by_phase(steps))


def draw_waterfall(drawn: Figure, steps: Sequence[Span], told: Sequence[str]) -> None:
    """When the client was at each step and what of that the server computed, each phase from 0; a text at each step."""
    phases = _by_phase(steps)
    heights = [len(rows) + _AXIS / _ROW for rows in phases.values()]
    every = drawn.subplots(len(phases), 1, squeeze=False, height_ratios=heights)[:, 0]
    parts = [part for part in _PARTS if any(_stretches(step, part[0]) for step in steps)]
    for axes, (phase, rows) in zip(every, phases.items(), strict=True):
        _waterfall(axes, phase, parts, [steps[row] for row in rows], [told[row] for row in rows])
    drawn.legend(*every[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(parts), fontsize=8)


def _by_phase(steps: Sequence[Span]) -> dict[str, list[int]]:
    """The places of the steps of each phase."""
    names = dict.fromkeys(step.phase for step in steps)
    return {name: [row for row, step in enumerate(steps) if step.phase == name] for name in names}


def _waterfall(axes: Axes, phase: str, parts: Sequence[_Part], steps: Sequence[Span], told: Sequence[str]) -> None:
    ends = [max(step.start + step.seconds, step.server_start + step.server) for step in steps]
    factor, unit = _unit(_TIMES, max(ends))
    for part, label, colour, (below, high) in parts:
        for row, step in enumerate(steps):
            scaled = [(start * factor, seconds * factor) for start, seconds in _stretches(step, part)]
            axes.broken_barh(scaled, (row + below, high), color=colour, label="" if row else label)
    for row, (text, end) in enumerate(zip(told, ends, strict=True)):
        axes.text((end + max(ends) / 100) * factor, row, text, va="center", fontsize=8)
    _named(axes, [f"{step.name}  ({step.protocol})" for step in steps], f"{unit} of the client, {phase}")
    axes.set_xlim(0, 1.25 * max(ends) * factor)


def _stretches(step: Span, part: str) -> Stretches:
    """When a part of `_PARTS` was, of those that last."""
    whole = {"step": [(step.start, step.seconds)], "server": [(step.server_start, step.server)]}
    parts = whole | {"own": step.own, "left": step.left, "way": step.way}
    return [stretch for stretch in parts[part] if stretch[1] > 0]


def _stacked(axes: Axes, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float], str]], unit: str) -> None:
    left = [0.0] * len(names)
    for label, values, colour in parts:
        axes.barh(range(len(names)), values, left=left, color=colour, label=label)
        left = [a + b for a, b in zip(left, values, strict=True)]
    _named(axes, names, unit)


def _unit(units: Sequence[tuple[float, str]], largest: float) -> tuple[float, str]:
    """What values up to `largest` are multiplied with, and the largest unit that they are some of."""
    return next((one for one in units if largest * one[0] >= _SOME), units[-1])


def _named(axes: Axes, names: Sequence[str], unit: str) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit)
    axes.grid(visible=True, axis="x", color="#dddddd")
    axes.set_axisbelow(True)


_OFFLINE, _ONLINE = "#9db8d2", "#1f5f99"

#: A part of a step in a waterfall.
_Part = tuple[str, str, str, tuple[float, float]]

#: The parts of a step in a waterfall: what it is, its colour, and where it is in the row and how high.
_PARTS = (
    ("step", "client's step, while the server computes", "#dce8f3", (-0.4, 0.4)),
    ("own", "client computes", "#1f5f99", (-0.4, 0.4)),
    ("left", "left: waiting", "#7aa6d0", (-0.4, 0.4)),
    ("way", "on the way", "#b5b5b5", (-0.4, 0.4)),
    ("server", "server computes", "#d9822b", (0.04, 0.36)),
)

#: Units of an axis, the largest first: how many there are in a second or a byte, and their name.
_TIMES = ((1.0, "seconds"), (1e3, "milliseconds"))
_SIZES = ((1e-9, "gigabytes"), (1e-6, "megabytes"), (1e-3, "kilobytes"))

#: A unit is taken from so many on.
_SOME = 2.0

#: Inches of a row, and of what stands below an axis.
_ROW, _AXIS = 0.26, 0.5
