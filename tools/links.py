"""Checks that every relative link in the project's Markdown files leads to a file or a heading that exists.

python tools/links.py [ROOT]
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Print each broken link; return 1 if there is one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    broken = [*broken_links(root, documents(root))]
    for sentence in broken:
        print(sentence, file=sys.stderr)
    if not broken:
        print("links: every link between the documents leads somewhere")
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


def anchors(file: Path) -> set[str]:
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    titles = HEADING.findall(CODE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


if __name__ == "__main__":
    sys.exit(main())
