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


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_crate_whose_library_is_not_tested_has_no_tests_in_it(manifest: Path) -> None:
    """Each library with tests is linked once more for them; one without says so, and its tests would not run."""
    content = tomllib.loads(manifest.read_text(encoding="utf-8"))
    if content.get("lib", {}).get("test", True):
        return
    sources = manifest.parent.glob("src/**/*.rs")
    assert not [path for path in sources if re.search(r"#\[(cfg\()?test\b", path.read_text(encoding="utf-8"))]


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


def test_policy_says_what_is_supported_what_counts_and_against_whom() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[:3] == ["Reporting a weakness", "Supported versions", "What counts as a weakness"]
    assert "(docs/threat-model.md)" in text


def version() -> str:
    """The version of the workspace, of which the Python package's follows."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def test_python_package_takes_the_version_of_the_workspace() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    package = tomllib.loads((ROOT / "crates" / "lanner-py" / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    assert package["version"] == {"workspace": True}


#: Where the version stands again: the file, and what is around it.
COPIES = {
    "CITATION.cff": r"^version: (\S+)$",
    "Cargo.lock": r'^name = "lanner(?:-\w+)?"\nversion = "(\S+)"$',
    "fuzz/Cargo.lock": r'^name = "lanner(?!-fuzz)(?:-\w+)?"\nversion = "(\S+)"$',
    "deploy/README.md": r"lanner-([\d.]+)-cp311",
    "docs/how-to/install.md": r"lanner-([\d.]+)-cp311",
    "docs/how-to/use-the-gateway.md": r'"name":"lanner","version":"([^"]+)"',
    "docs/tutorial.md": r"lanner-([\d.]+)-cp311",
}


@pytest.mark.parametrize("file", COPIES)
def test_version_stands_everywhere_alike(file: str) -> None:
    found = re.findall(COPIES[file], (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    assert set(found) == {version()}


def test_wheels_are_named_in_no_other_page() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("d*/**/*.md")]}
    naming = {page for page in pages if re.search(r"lanner-\d[\d.]+-cp311", (ROOT / page).read_text(encoding="utf-8"))}
    assert naming <= set(COPIES)


def test_latest_release_of_the_changelog_is_this_version() -> None:
    assert changelog()[1][0].startswith(f"{version()} - ")


def test_changelog_has_unreleased_first_and_the_latest_release_next() -> None:
    headings = [heading for heading, _ in changelog()]
    assert headings[0] == "Unreleased"
    released = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    assert all(released), headings
    told = [(tuple(map(int, found.group(1, 2, 3))), found[4]) for found in released if found]
    assert told == sorted(told, reverse=True)


def test_changelog_has_each_kind_of_change_once_a_release() -> None:
    for heading, kinds in changelog():
        assert kinds or heading == "Unreleased", heading
        assert len(kinds) == len(set(kinds)), heading
        assert set(kinds) <= set(KINDS), heading
