"""Where output goes: one JSON document on standard output, everything for people on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from lanner.errors import LannerError
from lanner.prediction import Prediction

#: Columns of what is not printed to a terminal, so that no table is folded.
LOG_WIDTH = 240


class Output:
    """What a command prints.

    Args:
        json: Whether to print a JSON document; tables for people are left out then.

    Attributes:
        predictions: The elements of ``predictions`` completed so far, which an error's document includes.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.predictions: list[dict[str, Any]] = []
        self._console = Console(
            stderr=True, highlight=False, soft_wrap=True, width=None if sys.stderr.isatty() else LOG_WIDTH
        )
        self._printed = False

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the command's one document, on one line, with ``--json``; nothing else."""
        if self.json and not self._printed:
            self._printed = True
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()

    def say(self, sentence: str) -> None:
        """Print a line for people."""
        if not self.json:
            self._console.print(plain(sentence))

    def warn(self, sentence: str) -> None:
        """Print a line that people should see even with ``--json``."""
        self._console.print(f"[yellow]note:[/yellow] {plain(sentence)}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
        """Print a table for people; columns of numbers are aligned to the right."""
        if self.json:
            return
        shown = [list(row) for row in rows]
        table = Table(title=plain(title) or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for index, column in enumerate(columns):
            numeric = bool(shown) and all(isinstance(row[index], int | float | None) for row in shown)
            table.add_column(plain(column), justify="right" if numeric else "left", overflow="fold")
        for row in shown:
            table.add_row(*(plain(_text(value)) for value in row))
        self._console.print(table)
        self._console.print()

    @contextmanager
    def progress(self, description: str, total: int | None = None) -> Iterator[Advance]:
        """Show a progress bar, or a spinner where the total is unknown, while the body runs."""
        columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        if total is not None:
            columns[2:2] = [BarColumn(), MofNCompleteColumn()]
        shown = self._console.is_terminal
        with Progress(*columns, console=self._console, transient=True, disable=not shown) as progress:
            task = progress.add_task(description, total=total)
            yield Advance(progress, task)

    def fail(self, error: LannerError) -> None:
        """Print an error: a sentence for people and, with ``--json``, the document of the command."""
        self._console.print(f"[red]error:[/red] {plain(str(error))}")
        self.document({"error": error.document(), "predictions": self.predictions})

    def costs(self, predictions: Sequence[Prediction]) -> None:
        """Print time, bytes and rounds by phase: of the session's setup, and the mean of the predictions."""
        if not predictions or self.json:
            return
        rows = []
        for name in predictions[0].phases:
            phases = [prediction.phases[name] for prediction in predictions]
            count = len(phases)
            rows.append(
                (
                    name,
                    "once per session" if name == "setup" else "per prediction",
                    duration(sum(phase.seconds for phase in phases) / count),
                    size(sum(phase.bytes_sent for phase in phases) / count),
                    size(sum(phase.bytes_received for phase in phases) / count),
                    round(sum(phase.rounds for phase in phases) / count),
                )
            )
        self.table(("phase", "", "time", "sent", "received", "rounds"), rows)


class Advance:
    """The running bar of `Output.progress`."""

    def __init__(self, progress: Progress, task: Any) -> None:  # noqa: ANN401 - rich's own identifier
        self._progress = progress
        self._task = task

    def __call__(self, description: str | None = None, steps: int = 1) -> None:
        """Advance by a number of steps and, where given, describe what comes next."""
        self._progress.update(self._task, advance=steps, description=description)


def plain(text: str) -> str:
    """Text as it is printed: neither markup nor anything that a terminal takes for a command.

    A server names models and classes, and its names end up on the client's terminal.
    """
    shown = (c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return escape("".join(shown))


def duration(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def size(count: float) -> str:
    """A number of bytes for people, in powers of ten."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
