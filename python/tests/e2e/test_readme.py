"""The README's commands and Python work as they stand, pasted one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.documents import ROOT, Story, blocks


def texts(section: str) -> list[tuple[str, str]]:
    """The language and the text of each code block of the README's section."""
    return [(block.language, block.text) for block in blocks(ROOT / "README.md", section)]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A folder as `make setup` leaves it."""
    return Story(tmp_path / "story")


def test_python(story: Story) -> None:
    ((language, program),) = texts("In Python")
    assert language == "python"
    saved = story.paste(".venv/bin/lanner demo --save .")
    (truth,) = re.findall(r"image\.npy +one digit to classify, a (\d)", saved)
    (story.folder / "program.py").write_text(program)
    assert story.paste(".venv/bin/python program.py").strip() == truth


def test_chest_x_ray(story: Story) -> None:
    (_, owner), (_, predict), (_, shown) = texts("A chest X-ray")
    *compiling, serve = owner.strip().splitlines()
    story.paste("\n".join(compiling))
    with story.server(serve):
        printed = story.paste(predict)
    # The header and the result; times and the last byte differ from run to run.
    assert printed.splitlines()[:2] == shown.splitlines()[:2]
