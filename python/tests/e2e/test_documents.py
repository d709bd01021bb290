"""The tutorial and the how-to pages work as they stand: `console` blocks are run, and print what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from helpers.documents import ROOT, Block, Story, blocks, check_shown, commands
from helpers.times import marked
from lanner.cli.parser import build_parser

DOCS = ROOT / "docs"
#: Pages with commands to run; a page whose commands need what a test has not is for the reader.
STORIES = [
    page
    for page in (DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md")))
    if any(block.language == "console" for block in blocks(page))
]
stem_of = attrgetter("stem")
#: Pages whose commands take more than five seconds.
LONG = {
    "tutorial",
    "choose-a-mode",
    "run-a-server",
    "find-the-wrong-layer",
    "keep-a-client-running",
    "read-the-leakage-report",
}
PAGES = [
    ROOT / "README.md",
    ROOT / "deploy" / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "models" / "README.md",
    *sorted(DOCS.glob("**/*.md")),
]


@pytest.mark.parametrize("page", marked(STORIES, LONG, stem_of), ids=stem_of)
def test_page_works_as_it_stands(page: Path, tmp_path: Path) -> None:
    assert Story(tmp_path / "story").tell(page) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_understood(page: Path) -> None:
    # Pages have commands that need what a test has not: these are read, at least.
    parser = build_parser()
    for arguments in lanner_commands(page):
        parser.parse_args(arguments)


def test_stories_are_found() -> None:
    found = {page.stem for page in STORIES}
    assert {"tutorial", "install", "run-a-server", "choose-a-mode", "find-the-wrong-layer"} <= found


def test_commands_are_found() -> None:
    found = {arguments[0] for page in PAGES for arguments in lanner_commands(page)}
    assert {"compile", "serve", "predict", "prepare", "estimate", "bench", "completion"} <= found


def lanner_commands(page: Path) -> Iterator[list[str]]:
    """The arguments of each `lanner` command in a page's blocks, without what the shell takes itself."""
    for block in blocks(page):
        if block.language not in ("", "console", "sh"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            if re.match(r"(\$ )?(\.venv/bin/)?lanner [a-z-]+ ", line):
                words = shlex.split(re.split(r" [>|&] ", line.removeprefix("$ "))[0], comments=True)
                yield words[1:]


def test_a_page_that_shows_something_else_fails() -> None:
    block = Block("console", "", "$ lanner --version\nlanner 1.2.3\n\n$ lanner doctor \\\n  --json\n")
    first, second = commands(block)
    assert (first.text, first.shown) == ("lanner --version", ("lanner 1.2.3",))
    assert (second.text, second.shown) == ("lanner doctor \\\n  --json", ())
    check_shown(first, "lanner 9.9.9\n")
    with pytest.raises(AssertionError, match="begins with 'lanner'"):
        check_shown(first, "python 3.11\n")
