"""The site of `make docs`: every page has its place, and links lead to places. It is built by `make docs` alone."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import docs_site
import links
import pytest
import yaml

import lanner

ROOT = Path(__file__).resolve().parents[2]


def entries(nav: str | list[Any] | dict[str, Any]) -> list[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in entries(part)]


def configuration() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8")))


def test_every_page_stands_in_the_navigation_once() -> None:
    listed = entries(configuration()["nav"])
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob("**/*.md")}
    assert sorted(listed) == sorted(pages | set(docs_site.places().values()))


def test_every_page_of_the_project_is_of_the_site() -> None:
    # What says how data of tests were made stands beside them alone, and the npm package has a page of its own.
    elsewhere = (
        ROOT / "docs",
        ROOT / "python" / "tests" / "data",
        ROOT / "python" / "src" / "lanner" / "web" / "client",
    )
    outside = {
        path.relative_to(ROOT).as_posix()
        for path in links.documents(ROOT)
        if not any(path.is_relative_to(folder) for folder in elsewhere)
    }
    assert outside == set(docs_site.places())


def test_configured_files_exist() -> None:
    for hook in configuration()["hooks"]:
        assert (ROOT / hook).is_file()


def test_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: lanner\.(\w+)$", text, re.MULTILINE)) == sorted(lanner.__all__)


@pytest.mark.parametrize(
    ("source", "place", "before", "after"),
    [
        ("README.md", "index.md", "[a](docs/auto.md)", "[a](auto.md)"),
        ("README.md", "index.md", "[a](docs/numerics.md#bits)", "[a](numerics.md#bits)"),
        ("README.md", "index.md", "[MIT](LICENSE-MIT)", "MIT"),
        ("README.md", "index.md", "[a](https://rustup.rs)", "[a](https://rustup.rs)"),
        ("CHANGELOG.md", "project/changelog.md", "[m](models/README.md#x)", "[m](../models/index.md#x)"),
        ("CHANGELOG.md", "project/changelog.md", "[m](models/)", "[m](../models/index.md)"),
        ("docs/how-to/a.md", "how-to/a.md", "[s](../../SECURITY.md)", "[s](../project/security.md)"),
        ("docs/how-to/a.md", "how-to/a.md", "[t](../auto.md) [h](#here)", "[t](../auto.md) [h](#here)"),
        ("docs/adding-an-op.md", "adding-an-op.md", "[`op.rs`](../crates/graph/src/graph/op.rs)", "`op.rs`"),
        ("docs/auto.md", "auto.md", "```\n[a](../README.md)\n```\n", "```\n[a](../README.md)\n```\n"),
    ],
)
def test_links_lead_to_places(source: str, place: str, before: str, after: str) -> None:
    assert docs_site.relinked(before, source, place) == after


def test_anchors_are_those_that_links_are_checked_for(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for title in ("How many bits?", "`lanner` & you", "Z_2^l", "A - b"):
        page.write_text(f"## {title}\n", encoding="utf-8")
        assert links.anchors(page) == {docs_site.anchor(title)}
