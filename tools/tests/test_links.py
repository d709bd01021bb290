# ruff: noqa: D103 (the name of a test says what it shows)
"""The checker of tools/links.py against small made-up documents."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("links", ROOT / "tools" / "links.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


links = load()


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
