"""Checks that native modules of wheels ask for no newer glibc than the wheels' names promise.

    python tools/newest_symbols.py WHEEL...

A wheel named ``manylinux_2_28_...`` runs with glibc 2.28 and later, if no symbol of a later version is asked for. What
the module asks for is read by ``readelf`` of binutils, whatever processor it is for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

Version = tuple[int, ...]


def main() -> int:
    """Print what each wheel asks for; 1 if that is newer than it may be, 2 without readelf."""
    readelf = shutil.which("readelf")
    if readelf is None:
        print("newest_symbols: needs readelf; install binutils.", file=sys.stderr)
        return 2
    complaints = [complaint for wheel in sys.argv[1:] if (complaint := check(Path(wheel), readelf)) is not None]
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 1 if complaints else 0


def check(wheel: Path, readelf: str) -> str | None:
    """A sentence about a wheel that asks for too new a glibc, else none."""
    allowed, wanted = promised(wheel.name), newest(needed_by(wheel, readelf))
    print(f"{wheel.name}: asks for glibc {text(wanted)}")
    if wanted > allowed:
        return f"{wheel.name}: asks for symbols of glibc {text(wanted)}, and its name promises {text(allowed)}"
    return None


def promised(name: str) -> Version:
    """The oldest glibc that a wheel's name says it runs with; none at all for names that say nothing."""
    found = re.findall(r"manylinux_(\d+)_(\d+)_", name)
    return min((tuple(map(int, version)) for version in found), default=())


def needed_by(wheel: Path, readelf: str) -> str:
    """What readelf prints of the versions that the modules in a wheel need."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        modules = [archive.extract(name, folder) for name in archive.namelist() if name.endswith(".so")]
        command = [readelf, "--version-info", "--wide", *modules]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout if modules else ""


def newest(printed: str) -> Version:
    """The newest version of glibc that is named among what is needed; none at all where none is."""
    return max((tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d[\d.]*)", printed)), default=())


def text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version)) or "of no version"


if __name__ == "__main__":
    sys.exit(main())
