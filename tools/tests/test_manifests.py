"""What manifests and the changelog say of the project itself."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = sorted(path for path in ROOT.glob("**/Cargo.toml") if not {"target", ".venv"} & set(path.parts))

#: Fields that name an address of the project, of which it has none that is public.
ADDRESSES = {"repository", "homepage", "documentation", "authors", "url", "urls", "repository-code", "maintainers"}

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def changelog() -> list[tuple[str, list[str]]]:
    """Each release's heading, and the headings of its sections."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0], re.findall(r"^### (.+)$", part, re.MULTILINE)) for part in releases]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_crate_names_no_address(manifest: Path) -> None:
    content = tomllib.loads(manifest.read_text(encoding="utf-8"))
    package = {**content.get("package", {}), **content.get("workspace", {}).get("package", {})}
    assert not ADDRESSES & set(package)


def test_python_package_and_citation_name_no_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not ADDRESSES & set(project)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert not {"repository-code", "url"} & set(re.findall(r"^([\w-]+):", citation, re.MULTILINE))


def test_reports_go_to_no_invented_address() -> None:
    section = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert section.startswith("Reporting a weakness\n")
    assert "@" not in section
    assert "://" not in section


def test_versions_agree() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == workspace


def test_changelog_has_unreleased_first_and_the_latest_release_next() -> None:
    headings = [heading for heading, _ in changelog()]
    assert headings[0] == "Unreleased"
    released = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    assert all(released), headings
    told = [(tuple(map(int, found.group(1, 2, 3))), found[4]) for found in released if found]
    assert told == sorted(told, reverse=True)


def test_changelog_has_each_kind_of_change_once_a_release() -> None:
    for heading, kinds in changelog():
        assert kinds, heading
        assert len(kinds) == len(set(kinds)), heading
        assert set(kinds) <= set(KINDS), heading
