"""The checker of tools/links.py against small made-up documents."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

from pathlib import Path

import links
import pytest


def broken(folder: Path, text: str) -> list[str]:
    document = folder / "a.md"
    document.write_text(text)
    (folder / "b.md").write_text("# The `wire` format, version 1\n")
    return [*links.broken_links(folder, [document])]


@pytest.mark.parametrize(
    "text",
    [
        "[b](b.md)",
        "[b](b.md#the-wire-format-version-1)",
        "# Here\n[above](#here)",
        "[elsewhere](https://example.org/none)",
        "```\n[code](none.md)\n```",
    ],
)
def test_good_link_is_accepted(tmp_path: Path, text: str) -> None:
    assert broken(tmp_path, text) == []


@pytest.mark.parametrize("text", ["[none](none.md)", "[none](b.md#none)", "[none](#none)"])
def test_broken_link_is_named(tmp_path: Path, text: str) -> None:
    assert len(broken(tmp_path, text)) == 1
