"""Figures on disk, whose bytes follow from what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from lanner.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plots() -> None:
    """Check that figures can be drawn.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    require("matplotlib", "drawing plots")


@contextmanager
def figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of so many inches, written to a file once it is drawn; the file's ending says how.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    with _figure(size) as drawn:
        yield drawn
        drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def inline(size: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    """A figure of so many inches as an SVG element of an HTML page.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    written = BytesIO()
    with _figure(size) as drawn:
        draw(drawn)
        drawn.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue().decode("utf-8")
    return text[text.index("<svg") :]


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[Figure]:
    check_plots()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # No date and no random names in the file: the same figures are the same bytes.
    with rc_context({"svg.hashsalt": "lanner", "svg.fonttype": "path"}):
        yield Figure(figsize=size, layout="constrained")
