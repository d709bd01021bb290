"""Hooks of MkDocs: pages of other folders than docs/ join the site, and links between all of them lead there.

In the repository a link is a path from the file that it stands in. The site has pages alone: a link to a page becomes
one to its place in the site, a link to anything else, such as a source file, becomes its text.
"""

from __future__ import annotations

import os.path
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

#: Pages outside docs/, and where they stand in the site.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "attacks/README.md": "project/attacks.md",
    "deploy/README.md": "how-to/run-as-a-service.md",
    "models/README.md": "models/index.md",
    "research/circulant.md": "protocols/spectral-circulant.md",
    "tools/wild/README.md": "project/wild.md",
}

FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as the repository's host makes them, which links are written for."""
    config.mdx_configs["toc"]["slugify"] = anchor
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of other folders."""
    from mkdocs.structure.files import File

    for source, place in places().items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Let a page's links lead to places of the site."""
    sources = {place: source for source, place in places().items()}
    place = page.file.src_uri
    return relinked(markdown, sources.get(place, f"docs/{place}"), place)


def places() -> dict[str, str]:
    """Every page outside docs/ by its path in the repository, and where it stands in the site."""
    cards = {f"models/cards/{path.name}": f"models/{path.name}" for path in (ROOT / "models" / "cards").glob("*.md")}
    return {**PLACES, **cards}


def relinked(markdown: str, source: str, place: str) -> str:
    """A page with links for the site; code stays as it is.

    Args:
        markdown: The page.
        source: Its path in the repository.
        place: Its path in the site.
    """

    def lead(match: re.Match[str]) -> str:
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, hash_sign, heading = target.partition("#")
        goal = place_of(os.path.normpath(posixpath.join(posixpath.dirname(source), path)))
        if goal is None:
            return text
        return f"[{text}]({posixpath.relpath(goal, posixpath.dirname(place) or '.')}{hash_sign}{heading})"

    parts = FENCE.split(markdown)
    return "".join(part if index % 2 else LINK.sub(lead, part) for index, part in enumerate(parts))


def place_of(path: str) -> str | None:
    """Where a file of the repository stands in the site; None if it does not."""
    if path in places():
        return places()[path]
    if f"{path}/README.md" in places():
        return places()[f"{path}/README.md"]
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    return None


def anchor(title: str, separator: str = "-") -> str:
    """The anchor of a heading; `tools/links.py` makes the same."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", separator)
