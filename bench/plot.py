"""Draws what a multiply-accumulate and a compared value cost in whole networks, from the smallest to the largest.

python -m bench.plot DOCUMENT.json... [--mode MODE] [--bytes] --save FILE.svg

A DOCUMENT is what ``lanner bench --save`` wrote. With --bytes times are left out: those of a busy machine say
little. Needs matplotlib. The ending of FILE says how it is drawn: svg, png or pdf.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanner.errors import LannerError
from lanner.plots import figure

#: Kind of work, what is counted of it, and one panel each for time and bytes: unit, and units in a second or a byte.
_PANELS = (
    ("linear", "multiply-accumulates of all linear layers", "seconds", "ns of a multiply-accumulate", 1e9),
    ("activation", "values that activations and max-pools read", "seconds", "µs of a value", 1e6),
    ("linear", "multiply-accumulates of all linear layers", "bytes", "bytes of 1000 multiply-accumulates", 1e3),
    ("activation", "values that activations and max-pools read", "bytes", "bytes of a value", 1.0),
)

#: Inches of the whole, and the marks that networks take in turns, each in a colour of its own.
_SIZE = (12.0, 8.0)
_MARKS = "os^Dv"


@dataclass(frozen=True, slots=True)
class Point:
    """A network's count of one kind of work, and what one of these costs."""

    name: str
    count: float
    cost: float


def points(rows: Sequence[dict[str, Any]], mode: str, kind: str, what: str, units: float) -> list[Point]:
    """The points of a panel, the smallest network first.

    Args:
        rows: Rows of a document of ``lanner bench``.
        mode: The mode whose networks are drawn, over loopback and with exact results.
        kind: ``linear`` or ``activation``.
        what: ``seconds`` or ``bytes``.
        units: Units in one of these.
    """
    found = []
    for row in rows:
        work = row.get("work")
        is_wanted = row["mode"] == mode and row["network"] == "loopback" and row.get("rounding") in (None, "exact")
        if work and is_wanted and work[kind]["count"]:
            count = work[kind]["count"]
            found.append(Point(row["name"], count, units * work[kind][what] / count))
    return sorted(found, key=lambda point: point.count)


def draw(rows: Sequence[dict[str, Any]], mode: str, path: Path, *, times: bool = True) -> None:
    """Write the plot.

    Raises:
        LannerError: If no row tells its work.
        MisuseError: If matplotlib is not there.
    """
    panels = [panel for panel in _PANELS if times or panel[2] != "seconds"]
    with figure(path, (_SIZE[0], _SIZE[1] * len(panels) / len(_PANELS))) as drawn_figure:
        from matplotlib import colormaps

        colours = colormaps["tab20"]
        names = list(dict.fromkeys(point.name for point in points(rows, mode, "linear", "seconds", 1.0)))
        for axes, (kind, counted, what, cost, units) in zip(
            drawn_figure.subplots(len(panels) // 2, 2).flat, panels, strict=True
        ):
            drawn = points(rows, mode, kind, what, units)
            if not drawn:
                raise LannerError(f"no row of mode {mode} tells its work", fix="measure networks with this build")
            for point in drawn:
                place = names.index(point.name)
                mark, colour = _MARKS[place % len(_MARKS)], colours(place % colours.N)
                axes.loglog([point.count], [point.cost], mark, color=colour, label=point.name)
            # Whole decades: what is flat is to look flat.
            lowest = min(point.cost for point in drawn)
            highest = max(point.cost for point in drawn)
            axes.set_ylim(10 ** math.floor(math.log10(lowest)), 10 ** math.ceil(math.log10(highest)))
            axes.margins(x=0.15)
            axes.set_xlabel(counted)
            axes.set_ylabel(cost)
            axes.grid(visible=True, which="major", color="#dddddd")
        drawn_figure.legend(*drawn_figure.axes[0].get_legend_handles_labels(), loc="outside right upper")
        drawn_figure.suptitle(f"Mode {mode}: what one costs, in networks of all sizes (offline and online together)")


def main(arguments: Sequence[str]) -> int:
    """Draw a document's rows."""
    parser = argparse.ArgumentParser(prog="bench.plot", description="Draw what work costs.")
    parser.add_argument("documents", nargs="+", type=Path, metavar="DOCUMENT.json")
    parser.add_argument("--mode", default="cheetah")
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--save", required=True, type=Path, metavar="FILE.svg")
    options = parser.parse_args(arguments)
    documents = [json.loads(document.read_text(encoding="utf-8")) for document in options.documents]
    rows = [row for document in documents for row in document["rows"]]
    try:
        draw(rows, options.mode, options.save, times=not options.bytes)
    except LannerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
