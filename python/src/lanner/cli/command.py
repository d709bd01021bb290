"""Runs one command: errors become one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn, TextIO

from lanner.cli import INTERRUPTED, INTERRUPTION
from lanner.cli.output import Output, writing_results
from lanner.cli.parser import parse
from lanner.cli.written import check_written
from lanner.errors import LannerError, naming_flags
from lanner.interrupts import abandoned_calls
from lanner.tables import TableWarning
from lanner.texts import TextWarning

TERMINATED = 143
#: Nobody reads the output any more.
CLOSED_PIPE = 1


def run_command(arguments: list[str], read: Callable[[Sequence[str]], argparse.Namespace] = parse) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: The arguments after the program's name.
        read: Reads them.
    """
    output = Output(json="--json" in arguments)
    signal.signal(signal.SIGTERM, _terminate)
    with naming_flags(), _telling(output):
        code = _run(arguments, read, output)
    try:
        with writing_results():
            _flush(sys.stdout)
    except LannerError as error:
        if code == 0:
            output.fail(error)
            code = error.exit_code
    with suppress(OSError):
        _flush(sys.stderr)
    if abandoned_calls():
        # The native call's thread would otherwise wake up in an interpreter that is being torn down.
        os._exit(code)
    return code


def _run(arguments: list[str], read: Callable[[Sequence[str]], argparse.Namespace], output: Output) -> int:
    try:
        options = read(arguments)
        check_written(options)
        code: int = options.command(options, output)
    except LannerError as error:
        output.fail(error)
        return error.exit_code
    except KeyboardInterrupt:
        output.fail(_InterruptedError(INTERRUPTION))
        return INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        return CLOSED_PIPE
    except BaseException as error:  # noqa: BLE001 - also a panic of the native module, which is no Exception
        if "LANNER_TRACEBACK" in os.environ:
            traceback.print_exc()
        output.fail(
            _UnexpectedError(f"unexpected {type(error).__name__}: {error}", fix="set LANNER_TRACEBACK=1 to see where")
        )
        return 1
    return code


@contextmanager
def _telling(output: Output) -> Iterator[None]:
    """Print what the owner of a table, a text or a picture should know of how it was read, each sentence once."""
    told = set[str]()

    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            ours = issubclass(category, TableWarning | TextWarning)
            sentence = str(message) if ours else _of_picture(str(message), filename)
            if sentence is None:
                others(message, category, filename, lineno, file, line)
            elif sentence not in told:
                told.add(sentence)
                output.warn(sentence)

        warnings.simplefilter("always", TableWarning)
        # Each picture has its own, which Python shows once for each line of Pillow.
        warnings.filterwarnings("always", module=r"PIL\b")
        warnings.showwarning = show
        yield


def _of_picture(message: str, filename: str) -> str | None:
    """What Pillow warns of while lanner reads a picture, as a note says it; None of anything else."""
    images = sys.modules.get("lanner.images")
    if images is None or "PIL" not in Path(filename).parts:
        return None
    sentence: str | None = images.noted(message)
    return sentence


def _flush(stream: IO[str] | None) -> None:
    """Print what is left; where that cannot be, keep Python from complaining of it at its end.

    Raises:
        OSError: If it cannot be, though somebody reads it.
    """
    if stream is None:
        return
    try:
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """Leave through every context manager, so that no child process stays behind."""
    raise SystemExit(TERMINATED)


class _InterruptedError(LannerError):
    kind = INTERRUPTION
    exit_code = INTERRUPTED


class _UnexpectedError(LannerError):
    pass
