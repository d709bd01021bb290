"""The checker of tools/links.py against small made-up documents."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

from pathlib import Path

import links
import pytest


def missing(folder: Path, text: str, name: str = "a.md") -> list[str]:
    (folder / "docs").mkdir()
    (folder / "docs" / "b.md").touch()
    document = folder / name
    document.write_text(text)
    return [*links.missing_paths(folder, [document])]


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


@pytest.mark.parametrize(
    "text", ["`docs/b.md`", "`docs/`", "`docs/{b,b}.md`", "`docs/*.md`", "`other/none.md`", "```\ndocs/none.md\n```"]
)
def test_paths_that_exist_or_lead_elsewhere_are_accepted(tmp_path: Path, text: str) -> None:
    assert missing(tmp_path, text) == []


@pytest.mark.parametrize("text", ["`docs/none.md`", "`docs/{b,none}.md`", "`docs/none/*`"])
def test_path_where_nothing_is_is_named(tmp_path: Path, text: str) -> None:
    assert len(missing(tmp_path, text)) == 1


def test_changelog_may_name_what_was(tmp_path: Path) -> None:
    assert missing(tmp_path, "`docs/none.md`", links.HISTORY) == []


def test_picture_without_a_crate_is_named(tmp_path: Path) -> None:
    for crate in ("ring", "wire", "testkit"):
        folder = tmp_path / "crates" / crate
        folder.mkdir(parents=True)
        (folder / "Cargo.toml").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "architecture.md").write_text("```\n leaves   bfv\n ground   ring\n```\n")
    assert [*links.undrawn_crates(tmp_path)] == ["docs/architecture.md: the picture of the layers lacks `wire`"]
