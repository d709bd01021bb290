"""The code of pages, run as it stands.

A page is a story: its blocks are run from the first to the last, in one folder. A block with a ``title`` is a file of
that name. A ``console`` block has commands behind ``$`` and, between them, lines of what they print; a command that
serves runs until the page ends. Any other block is for the reader.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from helpers.processes import HUNG

ROOT = Path(__file__).parents[3]

#: Where servers of pages listen, and what stands for their fingerprints.
ADDRESS = "127.0.0.1:7400"
FINGERPRINT = "sha256:..."


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes:
        language: The word behind its fence; empty where there is none.
        title: The file that it is; empty where it is none.
        text: What is in it.
    """

    language: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a ``console`` block, and the lines that the page says it prints."""

    text: str
    shown: tuple[str, ...]


def blocks(page: Path, section: str | None = None) -> list[Block]:
    """The blocks of a page, or of one of its sections."""
    text = page.read_text(encoding="utf-8")
    if section is not None:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    return [Block(*each) for each in found]


def commands(block: Block) -> list[Command]:
    """The commands of a ``console`` block."""
    found = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert found[0] == "", "a console block begins with a command"
    return [_command(part) for part in found[1:]]


def _command(part: str) -> Command:
    lines = part.rstrip("\n").split("\n")
    length = next(number for number, line in enumerate(lines, start=1) if not line.endswith("\\"))
    return Command("\n".join(lines[:length]), tuple(line for line in lines[length:] if line.strip()))


def prepare_folder(folder: Path) -> dict[str, str]:
    """Make a folder as `make setup` leaves it, with ``.venv/bin``, ``models`` and ``examples``.

    Returns:
        The variables of processes in it, which find ``lanner`` and ``python`` on their path.
    """
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name, options in (("lanner", "-m lanner "), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {options}"$@"\n')
        (tools / name).chmod(0o755)
    for name in ("models", "examples"):
        (folder / name).symlink_to(ROOT / name)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def free_address() -> str:
    """An address that no server has: another one may have the pages'."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Story:
    """A folder in which a page's blocks are run, and the server that runs in it.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = prepare_folder(folder)
        self._address = free_address()
        self._fingerprint = FINGERPRINT

    def tell(self, page: Path) -> int:
        """Run a page and hold what its commands print against what it shows; returns how many commands there were."""
        count = 0
        with ExitStack() as stack:
            for block in blocks(page):
                if block.title:
                    (self.folder / block.title).write_text(block.text, encoding="utf-8")
                for command in commands(block) if block.language == "console" else ():
                    count += 1
                    if re.match(r"\S*lanner serve ", command.text):
                        stack.enter_context(self.server(command.text))
                    else:
                        check_shown(command, self.paste(command.text))
        return count

    def paste(self, text: str) -> str:
        """Run commands in a shell, of which every one must succeed; returns what they print."""
        text = text.replace(ADDRESS, self._address).replace(FINGERPRINT, self._fingerprint)
        result = subprocess.run(
            ["/bin/sh", "-e", "-c", text],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HUNG,
            check=False,
        )
        assert result.returncode == 0, (text, result.stderr)
        return result.stdout

    @contextmanager
    def server(self, text: str) -> Iterator[None]:
        """Run a command that serves until the end; later commands know its fingerprint."""
        said = self.folder / "said.txt"
        command = ["/bin/sh", "-e", "-c", f"exec {text.replace(ADDRESS, self._address)}"]
        with said.open("w") as out:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=out)
        try:
            deadline = time.monotonic() + HUNG
            while not (found := re.findall(r"^fingerprint (sha256:\w+)", said.read_text(), re.MULTILINE)):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            self._fingerprint = found[0]
            yield
        finally:
            process.terminate()
            process.wait(HUNG)


def check_shown(command: Command, printed: str) -> None:
    """Check that each line that a page shows has one that begins with the same word; times and bytes differ."""
    begun = {line.split()[0] for line in printed.splitlines() if line.strip()}
    for line in command.shown:
        first = line.split()[0]
        assert first in begun | {"..."}, f"`{command.text}` prints no line that begins with {first!r}: {printed}"
