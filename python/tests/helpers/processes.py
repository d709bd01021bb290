"""The command line: in this process, which is quick, and in processes of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lanner.cli import main

#: Seconds after which a command counts as hung.
HUNG = 120


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended: its exit code, its document (with ``--json``), and what people saw."""

    code: int
    document: dict[str, Any]
    errors: str


def lanner(*arguments: object) -> Finished:
    """Run ``lanner ... --json`` to its end; standard output must hold exactly one document.

    The main thread runs it in this process, which is quick; other threads run it as `lanner_process` does.
    """
    if threading.current_thread() is not threading.main_thread():
        return lanner_process(*arguments)
    output, errors = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([*map(str, arguments), "--json"])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return _finished(code, output.getvalue(), errors.getvalue())


def lanner_process(*arguments: object) -> Finished:
    """As `lanner`, in a process of its own."""
    command = [sys.executable, "-m", "lanner", *map(str, arguments), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HUNG, check=False)
    return _finished(result.returncode, result.stdout, result.stderr)


def _finished(code: int, output: str, errors: str) -> Finished:
    lines = output.splitlines()
    assert len(lines) == 1, (output, errors)
    return Finished(code, json.loads(lines[0]), errors)


@dataclass(frozen=True, slots=True)
class Serving:
    """A server or a gateway in a process of its own, and the document that it printed when ready."""

    process: subprocess.Popen[str]
    document: dict[str, Any]
    errors: IO[str]

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return str(self.document["address"])

    @property
    def pin(self) -> tuple[str, str]:
        """The trust options of its clients."""
        return ("--pin", str(self.document["fingerprint"]))

    def log(self) -> str:
        """What it has printed on standard error so far."""
        self.errors.seek(0)
        return self.errors.read()

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(HUNG)


@contextmanager
def serving(state: Path, *arguments: object, within: Sequence[str] = ()) -> Iterator[Serving]:
    """Run ``lanner serve ... --json`` until the block ends, on a free port unless they say ``--listen``.

    Args:
        state: Its state directory.
        arguments: The command's own.
        within: A command that runs another, in front of it.
    """
    with _running("serve", state, arguments, within) as process:
        yield process


@contextmanager
def gateway(state: Path, *arguments: object) -> Iterator[Serving]:
    """As `serving`, ``lanner gateway``."""
    with _running("gateway", state, arguments) as process:
        yield process


@contextmanager
def _running(name: str, state: Path, arguments: tuple[object, ...], within: Sequence[str] = ()) -> Iterator[Serving]:
    """Run a command that prints its document when it is ready, until the block ends; its log is kept in a file."""
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    command = [*within, sys.executable, "-m", "lanner", name, *map(str, (*arguments, *listen))]
    command += ["--state-dir", str(state), "--json"]
    with (
        tempfile.TemporaryFile("a+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(os.environ)) as process,
    ):
        assert process.stdout is not None
        try:
            yield Serving(process, json.loads(process.stdout.readline()), log)
        finally:
            process.kill()
