"""Prints cargo's options for the crates that have changes since the last commit, new files included.

    python tools/changed.py      for example: -p lanner-ring -p lanner-bfv

Prints nothing where no crate has any. The native module is left out: its tests are Python's.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: A file of a crate, and the crate's folder.
CRATE = re.compile(r"(?:crates/)?(?P<folder>[\w-]+)/(?:src|tests|Cargo\.toml)")


def main() -> int:
    """Print the options."""
    print(*(f"-p lanner-{name}" if name != "lanner" else "-p lanner" for name in crates(changed_files())))
    return 0


def changed_files() -> list[str]:
    """Files that differ from the last commit, and those that git does not know."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line[3:] for line in lines]


def crates(files: list[str]) -> list[str]:
    """The crates that files belong to, each once."""
    found = [CRATE.match(file) for file in files if file.startswith(("crates/", "attacks/", "research/"))]
    return sorted({match["folder"] for match in found if match} - {"lanner-py"})


if __name__ == "__main__":
    raise SystemExit(main())
