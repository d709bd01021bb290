"""Pictures of what a prediction takes and of what becomes of its values, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanner.divergence import LayerTrace
from lanner.estimate import Estimate, LayerEstimate
from lanner.prediction import Layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def size_of(rows: int) -> tuple[float, float]:
    """Inches of a picture with so many rows."""
    return (10.0, 1.3 + 0.26 * max(rows, 3))


def spoken(layers: Sequence[LayerEstimate]) -> list[LayerEstimate]:
    """The layers that take time or bytes, but for those that each party computes alone."""
    return [layer for layer in layers if not layer.protocol.startswith("local.")]


def draw_estimate(drawn: Figure, found: Estimate) -> None:
    """Seconds and bytes of each layer, offline and online."""
    layers = spoken(found.layers)
    times, sizes = drawn.subplots(1, 2, sharey=True)
    names = [f"{layer.name}  ({layer.protocol})" for layer in layers]
    _stacked(
        times,
        names,
        [
            ("offline", [layer.offline.seconds * 1e3 for layer in layers], _OFFLINE),
            ("online", [layer.online.seconds * 1e3 for layer in layers], _ONLINE),
        ],
        "milliseconds",
    )
    _stacked(
        sizes,
        names,
        [
            ("offline", [layer.offline.bytes / 1e3 for layer in layers], _OFFLINE),
            ("online", [layer.online.bytes / 1e3 for layer in layers], _ONLINE),
        ],
        "kilobytes",
    )
    times.legend(loc="lower right")
    drawn.suptitle(f"mode {found.mode} over {found.network.describe()}")


def draw_divergence(drawn: Figure, layers: Sequence[LayerTrace]) -> None:
    """How far each layer is off, and how much of its ring it takes."""
    errors, rings = drawn.subplots(1, 2, sharey=True)
    names = [layer.name for layer in layers]
    _stacked(errors, names, [("", [100 * (layer.relative_error or 0) for layer in layers], _ONLINE)], "% off")
    _stacked(rings, names, [("", [100 * (layer.of_ring or 0) for layer in layers], _OFFLINE)], "% of its ring")
    rings.axvline(100, color="#b00020", linestyle="--")


def draw_waterfall(drawn: Figure, layers: Sequence[Layer]) -> None:
    """When the client was at each layer, phase by phase: one bar behind the other."""
    axes = drawn.subplots()
    shown = [layer for layer in layers if layer.bytes > 0 or layer.seconds > _SHORT]
    names = [f"{layer.phase}  {layer.name}  ({layer.protocol})" for layer in shown]
    start, starts = 0.0, []
    for layer in shown:
        starts.append(start)
        start += layer.seconds * 1e3
    colours = [_OFFLINE if layer.phase == "offline" else _ONLINE for layer in shown]
    axes.barh(range(len(shown)), [max(layer.seconds * 1e3, start / 500) for layer in shown], left=starts, color=colours)
    for row, (layer, left) in enumerate(zip(shown, starts, strict=True)):
        axes.text(left + layer.seconds * 1e3 + start / 100, row, f"{layer.bytes / 1e3:.1f} KB", va="center", fontsize=8)
    axes.set_xlim(0, 1.15 * start)
    _named(axes, names, "milliseconds of the client, computing and waiting")


def _stacked(axes: Axes, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float], str]], unit: str) -> None:
    left = [0.0] * len(names)
    for label, values, colour in parts:
        axes.barh(range(len(names)), values, left=left, color=colour, label=label)
        left = [a + b for a, b in zip(left, values, strict=True)]
    _named(axes, names, unit)


def _named(axes: Axes, names: Sequence[str], unit: str) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(unit)
    axes.grid(visible=True, axis="x", color="#dddddd")
    axes.set_axisbelow(True)


_OFFLINE, _ONLINE = "#9db8d2", "#1f5f99"

#: Seconds of a layer that is not shown if it sends nothing, too.
_SHORT = 1e-3
