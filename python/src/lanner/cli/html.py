"""``--html``: what a command prints, with pictures, as one page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lanner.cli.output import Output
from lanner.cli.written import Written
from lanner.pages import Page
from lanner.plots import check_plots, inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_html_option(parser: argparse.ArgumentParser) -> None:
    """The page that a command may write."""
    parser.add_argument(
        "--html",
        type=Path,
        action=Written,
        metavar="F.html",
        help="also write the report with plots as an HTML page (needs matplotlib)",
    )


def check_page(options: argparse.Namespace) -> None:
    """Check that the page that the options name can be drawn, before the work for it.

    Raises:
        MisuseError: If matplotlib is not there.
    """
    if options.html is not None:
        check_plots()


@contextmanager
def page(options: argparse.Namespace, output: Output, title: str) -> Iterator[None]:
    """Write what the body prints to the page that the options name, if they do.

    Raises:
        MisuseError: If the page cannot be written.
    """
    if options.html is None:
        yield
        return
    output.page = Page(title)
    try:
        yield
        output.page.write(options.html)
    finally:
        output.page = None
    output.say(f"written to {options.html}")


def picture(output: Output, inches: tuple[float, float], caption: str, draw: Callable[[Figure], None]) -> None:
    """Add a picture of so many inches to the page, if there is one."""
    if output.page is not None:
        output.page.picture(inline(inches, draw), caption, wide=inches[0] > _FITS)


#: Inches of a picture that can be read on a small screen as a whole.
_FITS = 6.0
