"""Checks what the project's Markdown files name.

    python tools/links.py [ROOT]

Links lead to a file or a heading, paths in backticks exist, and pictures of the layers have every crate. A path counts
where it begins with a folder of the repository; ``*`` and ``{a,b}`` stand for what they do in a shell. The changelog
tells of what was, and its paths are left out.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUOTED_PATH = re.compile(r"`([\w.-]+/[\w./{},*-]*)`")
BRACES = re.compile(r"\{([^{}]*)\}")
HISTORY = "CHANGELOG.md"

PICTURES = ("docs/architecture.md",)
PICTURE = re.compile(r"^```\n(.*?^ ground\b.*?)^```", re.MULTILINE | re.DOTALL)
UNDRAWN = frozenset({"testkit"})
"""Crates that pictures of the layers leave out: for tests only."""


def main() -> int:
    """Print each broken link; return 1 if there is one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = documents(root)
    broken = [*broken_links(root, files), *missing_paths(root, files), *undrawn_crates(root)]
    for sentence in broken:
        print(sentence, file=sys.stderr)
    if not broken:
        print("links: every link and path of the documents leads somewhere, and every crate is drawn")
    return 1 if broken else 0


def documents(root: Path) -> list[Path]:
    """The Markdown files that git tracks or would track under ``root``."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [root / name for name in sorted(set(listing.splitlines())) if (root / name).exists()]


def broken_links(root: Path, files: list[Path]) -> Iterator[str]:
    """Yield a sentence for each relative link of ``files`` that leads nowhere."""
    for file in files:
        for target in LINK.findall(CODE.sub("", file.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, heading = target.partition("#")
            goal = file.parent / path if path else file
            if not goal.exists():
                yield f"{file.relative_to(root)}: {target} does not exist"
            elif heading and heading not in anchors(goal):
                yield f"{file.relative_to(root)}: {target} names no heading there"


def missing_paths(root: Path, files: list[Path]) -> Iterator[str]:
    """Yield a sentence for each path in backticks of ``files``, from a folder of ``root``, where nothing is."""
    for file in files:
        if file.name == HISTORY:
            continue
        for quoted in QUOTED_PATH.findall(CODE.sub("", file.read_text(encoding="utf-8"))):
            first = quoted.split("/")[0]
            if first.startswith(".") or not (root / first).is_dir():
                continue
            for path in spelled_out(quoted):
                found = any(any(folder.glob(path.rstrip("/"))) for folder in (root, file.parent))
                if not found and not is_ignored(root, path):
                    yield f"{file.relative_to(root)}: `{path}` does not exist"


def is_ignored(root: Path, path: str) -> bool:
    """Whether git leaves a path out: what commands make there is not in the repository."""
    command = ["git", "-C", str(root), "check-ignore", "--quiet", path]
    return subprocess.run(command, check=False).returncode == 0


def spelled_out(path: str) -> list[str]:
    """The paths that one with braces stands for."""
    parts = BRACES.split(path)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def undrawn_crates(root: Path) -> Iterator[str]:
    """Yield a sentence for each crate that a picture of the layers lacks."""
    crates = {manifest.parent.name for manifest in root.glob("crates/*/Cargo.toml")} - UNDRAWN
    for name in PICTURES:
        file = root / name
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        for picture in PICTURE.findall(text):
            for crate in sorted(crates - set(re.findall(r"[\w-]+", picture))):
                yield f"{name}: the picture of the layers lacks `{crate}`"


def anchors(file: Path) -> set[str]:
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    titles = HEADING.findall(CODE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


if __name__ == "__main__":
    sys.exit(main())
