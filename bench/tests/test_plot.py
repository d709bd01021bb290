"""What networks cost is drawn as it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plot import draw, points
from lanner.errors import LannerError


def row(name: str, count: float, **others: object) -> dict[str, object]:
    kinds = {"linear": {"count": 1000 * count, "seconds": 2.0, "bytes": 5e6}}
    work = {**kinds, "activation": {"count": count, "seconds": 1.0, "bytes": 3e6}}
    return {"name": name, "mode": "cheetah", "network": "loopback", "rounding": "exact", "work": work, **others}


def test_points_are_costs_of_one_from_the_smallest_network_on() -> None:
    rows = [
        row("large", 1e6),
        row("small", 1e3),
        row("small", 1e3, network="wan"),
        row("small", 1e3, rounding="faithful"),
        row("small", 1e3, mode="gazelle"),
        {**row("old", 1.0), "work": None},
    ]
    drawn = points(rows, "cheetah", "activation", "seconds", 1e6)
    assert [(point.name, point.count, point.cost) for point in drawn] == [("small", 1e3, 1e3), ("large", 1e6, 1.0)]
    assert points(rows, "cheetah", "linear", "bytes", 1e3)[0].cost == 5e3


def test_the_same_rows_are_the_same_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plots = [tmp_path / name for name in ("a.svg", "b.svg")]
    for plot in plots:
        draw([row("small", 1e3), row("large", 1e6)], "cheetah", plot)
    first, second = (plot.read_text(encoding="utf-8") for plot in plots)
    assert first == second
    with pytest.raises(LannerError, match="no row"):
        draw([], "cheetah", tmp_path / "c.svg")
