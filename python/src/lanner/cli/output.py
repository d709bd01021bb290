"""Where output goes: results on standard output, for people or as one JSON document; all else on standard error."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from lanner.cli.events import Event
from lanner.errors import LannerError, ModelError
from lanner.files import why
from lanner.pages import Page
from lanner.prediction import Prediction

#: Columns of what is not printed to a terminal, so that no table is folded.
LOG_WIDTH = 240

#: Columns of text in sentences, at most.
TEXT_WIDTH = 80


class Output:
    """What a command prints.

    Args:
        json: Whether to print a JSON document; tables for people are left out then.

    Attributes:
        predictions: The elements of ``predictions`` completed so far, which an error's document includes.
        page: What is printed for people goes there, too, if it is not None.
        structured: Whether every line on standard error is a JSON object.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.predictions: list[dict[str, Any]] = []
        self.page: Page | None = None
        self.structured = False
        self._results = _console(sys.stdout, _Results)
        self._notes = _console(sys.stderr)
        self._printed = False

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the command's one document, on one line, with ``--json``; nothing else."""
        if self.json and not self._printed:
            self._printed = True
            self.write(json.dumps(document) + "\n")

    def write(self, text: str) -> None:
        """Print text on standard output as it is."""
        with writing_results():
            self._results.file.write(text)
            self._results.file.flush()

    def say(self, sentence: str, *, whole: bool = False) -> None:
        """Print a line of a result for people; `whole` keeps a terminal's line breaks out of what is to be copied."""
        if self.page is not None:
            self.page.say(sentence)
        if not self.json:
            _print(self._results, plain(sentence), whole=whole)

    def section(self, title: str, lines: Iterable[tuple[str, str | None]]) -> None:
        """Print named texts for people under a title, each wrapped; nothing if none of them has content."""
        told = [(name, text) for name, text in lines if text]
        if self.page is not None and told:
            self.page.section(title, told)
        if self.json or not told:
            return
        longest = max(len(name) for name, _ in told)
        column = longest + 2 if longest else 0
        width = min(self._results.width, TEXT_WIDTH) - 2
        self._results.print(f"[bold]{cell(title)}[/bold]")
        for name, text in told:
            wrapped = textwrap.wrap(text, max(width - column, 20), break_on_hyphens=False)
            for start, line in zip([name, *[""] * len(wrapped)], wrapped, strict=False):
                self._results.print(plain(f"  {start:<{column}}{line}".rstrip()))
        self._results.print()

    def tell(self, sentence: str, event: str = "note") -> None:
        """Print a line that is no result: what goes on, and what programs call it."""
        if self.structured:
            self.log(Event(event, sentence, fields={"message": sentence}))
        elif not self.json:
            _print(self._notes, plain(sentence))

    def log(self, event: Event) -> None:
        """Print a line of a log, which is kept even with ``--json``."""
        if self.structured:
            self._notes.file.write(event.document() + "\n")
            self._notes.file.flush()
        elif event.line is not None:
            _print(self._notes, plain(event.line))

    def warn(self, sentence: str) -> None:
        """Print a line that people should see even with ``--json``."""
        if self.structured:
            self.log(Event("note", sentence, "warning", fields={"message": sentence}))
        else:
            _print(self._notes, f"[yellow]note:[/yellow] {plain(sentence)}")

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", width: int | None = None
    ) -> None:
        """Print a table for people, without columns that are empty; columns of numbers are aligned to the right.

        It is as wide as it needs to be, at most as the terminal and, where given, as `width`.
        """
        columns, shown = _filled(columns, [list(row) for row in rows])
        numeric = [
            all(isinstance(row[index], int | float | Decimal | None) for row in shown) for index in range(len(columns))
        ]
        texts = [[_text(value) for value in row] for row in shown]
        if self.page is not None and columns:
            self.page.table(columns, texts, numeric, title)
        if self.json or not columns:
            return
        table = Table(title=cell(title) or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for column, is_number in zip(columns, numeric, strict=True):
            table.add_column(cell(column), justify="right" if is_number else "left", overflow="fold")
        for row in texts:
            table.add_row(*map(cell, row))
        self._results.print(table, soft_wrap=False, width=width)
        self._results.print()

    @contextmanager
    def progress(self, description: str, total: int | None = None) -> Iterator[Advance]:
        """Show a progress bar, or a spinner where the total is unknown, while the body runs."""
        columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        if total is not None:
            columns[2:2] = [BarColumn(), MofNCompleteColumn()]
        shown = self._notes.is_terminal
        with Progress(*columns, console=self._notes, transient=True, disable=not shown) as progress:
            task = progress.add_task(description, total=total)
            yield Advance(progress, task)

    def fail(self, error: LannerError) -> None:
        """Print an error: a sentence for people and, with ``--json``, the document of the command.

        Where a model is refused for several reasons, each follows on a line of its own.
        """
        if self.structured:
            self.log(Event("failed", str(error), "error", fields={"reason": error.kind, "message": str(error)}))
        else:
            self._complain(error)
        self.document({"error": error.document(), "predictions": self.predictions})

    def costs(self, predictions: Sequence[Prediction]) -> None:
        """Print time, bytes and rounds by phase: of the session's setup, and the mean of the predictions."""
        if not predictions:
            return
        rows = []
        for name in predictions[0].phases:
            phases = [prediction.phases[name] for prediction in predictions]
            # A session that began with kept material is set up when that is used up.
            phases = phases[-1:] if name == "setup" else phases
            count = len(phases)
            rows.append(
                (
                    name,
                    "once per session" if name == "setup" else "per prediction",
                    duration(sum(phase.seconds for phase in phases) / count),
                    size(sum(phase.bytes_sent for phase in phases) / count),
                    size(sum(phase.bytes_received for phase in phases) / count),
                    sum(phase.rounds for phase in phases) / count,
                )
            )
        self.table(("phase", "", "time", "sent", "received", "rounds"), rows)

    def _complain(self, error: LannerError) -> None:
        _print(self._notes, f"[red]error:[/red] {plain(str(error))}")
        reasons = error.nodes if isinstance(error, ModelError) else ()
        for reason in reasons if len(reasons) > 1 else ():
            _print(self._notes, f"  {plain(str(reason))}")


class Advance:
    """The running bar of `Output.progress`."""

    def __init__(self, progress: Progress, task: Any) -> None:  # noqa: ANN401 - rich's own identifier
        self._progress = progress
        self._task = task

    def __call__(self, description: str | None = None, steps: int = 1) -> None:
        """Advance by a number of steps and, where given, describe what comes next."""
        self._progress.update(self._task, advance=steps, description=description)


class _Results(Console):
    """The console of results."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - rich's own
        """Print as any console does.

        Raises:
            LannerError: If standard output cannot be written.
        """
        with writing_results():
            super().print(*objects, **options)


@contextmanager
def writing_results() -> Iterator[None]:
    """Tell in words that standard output cannot be written, but not that nobody reads it any more.

    Raises:
        LannerError: If the body cannot write.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LannerError(
            f"standard output cannot be written ({why(error)})",
            where="standard output",
            fix="free some space there, or send the output elsewhere",
        ) from None


def _console(stream: IO[str] | None, kind: type[Console] = Console) -> Console:
    """A console on a stream that may be closed, or no terminal."""
    if stream is None:
        stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    width = None if stream.isatty() else LOG_WIDTH
    return kind(file=stream, highlight=False, soft_wrap=True, width=width)


def _print(console: Console, text: str, *, whole: bool = False) -> None:
    """Print a line, between words of which a terminal's lines end; elsewhere it stays one line."""
    console.print(text, soft_wrap=whole or not console.is_terminal)


def _filled(columns: Sequence[str], rows: list[list[object]]) -> tuple[list[str], list[list[object]]]:
    """The columns that say something in some row, and the rows of these."""
    kept = [index for index in range(len(columns)) if any(row[index] not in (None, "") for row in rows)]
    return [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]


def plain(text: str, kept: str = "\n\t") -> str:
    """Text as it is printed: neither markup nor anything that a terminal takes for a command, but for what is `kept`.

    A server names models and classes, and its names end up on the client's terminal.
    """
    shown = (c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
    return escape("".join(shown))


def cell(text: str) -> str:
    """Text as it is printed in a table or a title, where a line of its own would pass for another row."""
    return plain(text, kept="")


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e3:.2f} ms"


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
