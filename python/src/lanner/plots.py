"""Figures on disk, whose bytes follow from what they show."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lanner.errors import MisuseError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plots() -> None:
    """Check that figures can be drawn.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MisuseError("plots need the package matplotlib", fix="pip install 'lanner[plots]'")


@contextmanager
def figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of so many inches, written to a file once it is drawn; the file's ending says how.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    check_plots()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # No date and no random names in the file: the same figures are the same bytes.
    with rc_context({"svg.hashsalt": "lanner", "svg.fonttype": "path"}):
        drawn = Figure(figsize=size, layout="constrained")
        yield drawn
        drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
