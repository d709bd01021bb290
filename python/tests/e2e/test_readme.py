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


@pytest.mark.slow
def test_quick_start(story: Story) -> None:
    (_, setting_up), (_, estimate), (_, serve), (_, predict), (_, prepare), (language, program) = texts("Quick start")
    assert language == "python"
    printed = story.paste(setting_up)
    assert "What each party learns" in printed
    assert {"gazelle", "falcon", "cheetah", "tabula"} <= set(story.paste(estimate).split())
    with story.server(serve):
        ahead, printed = (story.paste(command) for command in (prepare, predict))
    assert "10 in stock" in ahead
    truth = re.findall(r"image\.npy +one digit to classify, a (\d)", story.paste(setting_up.splitlines()[0]))[0]
    assert printed.splitlines()[1].split() == ["image.npy", "0", truth]
    (story.folder / "program.py").write_text(program)
    assert story.paste(".venv/bin/python program.py").strip() == truth


def test_second_example(story: Story) -> None:
    (_, owner), (_, predict), (_, shown) = texts("A second example: a chest X-ray")
    compiling, serve = owner.strip().splitlines()
    story.paste(compiling)
    with story.server(serve):
        printed = story.paste(predict)
    # The header and the result; times and the last byte differ from run to run.
    assert printed.splitlines()[:2] == shown.splitlines()[:2]
