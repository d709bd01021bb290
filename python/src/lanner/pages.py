"""A report as one HTML file that needs nothing else: what a command prints, and pictures."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from lanner.errors import MisuseError


class Page:
    """An HTML page.

    Args:
        title: What it is about.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []

    def say(self, sentence: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{_text(sentence)}</p>")

    def section(self, title: str, lines: Iterable[tuple[str, str]]) -> None:
        """Add named texts under a title."""
        rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in lines)
        self._parts.append(f"<h2>{_text(title)}</h2><dl>{rows}</dl>")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool], title: str) -> None:
        """Add a table; columns of numbers are aligned to the right."""
        ends = [' class="number"' if number else "" for number in numeric]
        head = "".join(f"<th{end}>{_text(column)}</th>" for column, end in zip(columns, ends, strict=True))
        body = "".join(
            "<tr>" + "".join(f"<td{end}>{_text(value)}</td>" for value, end in zip(row, ends, strict=True)) + "</tr>"
            for row in rows
        )
        heading = f"<h2>{_text(title)}</h2>" if title else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self._parts.append(f'{heading}<div class="wide">{table}</div>')

    def picture(self, svg: str, caption: str, *, wide: bool) -> None:
        """Add a picture, an SVG element; one that is wide scrolls on a small screen, where it could not be read."""
        names = "wide drawn" if wide else "drawn"
        drawn = f'<div class="{names}">{svg}</div>'
        self._parts.append(f"<figure>{drawn}<figcaption>{_text(caption)}</figcaption></figure>")

    def write(self, path: Path) -> None:
        """Write the page.

        Raises:
            MisuseError: If the file cannot be written.
        """
        title = _text(self._title)
        text = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head>\n"
            f"<body><main><h1>{title}</h1>\n" + "\n".join(self._parts) + "\n</main></body></html>\n"
        )
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise MisuseError(f"the page cannot be written ({error})", where=str(path), fix="check the path") from None


def _text(text: str) -> str:
    """Text that is no markup, and commands no browser: a server names models and classes."""
    return html.escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))


_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #ffffff; margin: 0; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }
h1 { font-size: 1.6rem; margin: 1rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .3rem 1.2rem; margin: 0; }
dt { color: #555555; } dd { margin: 0; max-width: 44rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: .92rem; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e2e2e2; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; } .drawn svg { max-width: 100%; height: auto; }
figcaption { color: #555555; max-width: 52rem; }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
  th { white-space: normal; vertical-align: bottom; } th, td { padding-right: .6rem; }
  .wide.drawn svg { max-width: none; width: 44rem; }
}
"""
