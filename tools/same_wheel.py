"""Says whether two wheels have the same bytes, and if not, which of their files differ.

python tools/same_wheel.py FIRST SECOND
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path


def main() -> int:
    """Print what differs; return 1 if anything does."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    first, second = map(Path, sys.argv[1:])
    found = [*differences(first, second)]
    for sentence in found:
        print(sentence, file=sys.stderr)
    if not found:
        print(f"same bytes: {first.name}")
    return 1 if found else 0


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield a sentence for each difference of two wheels."""
    if first.name != second.name:
        yield f"the names differ: {first.name}, {second.name}"
    if first.read_bytes() == second.read_bytes():
        return
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        names = [{entry.filename: entry for entry in archive.infolist()} for archive in (one, other)]
        for name in sorted(names[0].keys() ^ names[1].keys()):
            yield f"{name} is in one of them alone"
        inside = [name for name in sorted(names[0].keys() & names[1].keys()) if one.read(name) != other.read(name)]
        yield from (f"{name} differs" for name in inside)
        if not inside and names[0].keys() == names[1].keys():
            yield "the files are the same, but not their order, dates, permissions or compression"


if __name__ == "__main__":
    sys.exit(main())
