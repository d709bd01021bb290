"""Prints the part of the lock file that an installation needs, hashes included: for `pip install --require-hashes`.

    python tools/locked.py [--package NAME]... [--extra EXTRA]...

With ``--package`` these packages are needed, else those that lanner and the named extras require; and, either way, what
they require in turn, which the lock file's comments tell.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Entry:
    """A package in the lock file.

    Attributes:
        name: In lower case.
        text: Its lines, with version, marker and hashes.
        required_by: The packages that need it.
    """

    name: str
    text: str
    required_by: frozenset[str]

    @property
    def version(self) -> str:
        """The one version that is locked."""
        return re.split(r"[\s;]", self.text.split("==")[1])[0]

    @property
    def hashes(self) -> list[str]:
        """SHA-256 of its distributions, in hexadecimal digits."""
        return re.findall(r"--hash=sha256:([0-9a-f]{64})", self.text)


def main() -> int:
    """Print the entries that are needed."""
    parser = argparse.ArgumentParser(description="Print the part of the lock file that an installation needs.")
    parser.add_argument("--package", action="append", default=[], metavar="NAME")
    parser.add_argument("--extra", action="append", default=[], metavar="EXTRA")
    options = parser.parse_args()
    try:
        wanted = options.package or requirements(ROOT, options.extra)
        print("".join(entry.text for entry in needed(entries(ROOT), wanted)), end="")
    except KeyError as error:
        print(f"locked: neither the project nor its lock file has {error.args[0]}", file=sys.stderr)
        return 2
    return 0


def requirements(root: Path, extras: Sequence[str]) -> list[str]:
    """The names of the packages that lanner and its extras require.

    Raises:
        KeyError: If there is no such extra.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [re.split(r"[^\w.-]", line)[0].lower() for line in lines]


def all_extras(root: Path) -> list[str]:
    """The names of the project's extras."""
    return [*tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]]


def entries(root: Path, lock: str = "requirements.lock") -> list[Entry]:
    """The entries of a lock file that uv wrote; a package may have one for some Pythons and one for others."""
    text = (root / "python" / lock).read_text(encoding="utf-8")
    return [_entry(part) for part in re.findall(r"^[a-z0-9].*\n(?:[ ]{4}.*\n)*", text, re.MULTILINE)]


def _entry(text: str) -> Entry:
    said = re.findall(r"^    #   (?:via )?(\S+)|^    # via (\S+)", text, re.MULTILINE)
    return Entry(re.split(r"==", text)[0], text, frozenset(first or second for first, second in said))


def needed(locked: Sequence[Entry], wanted: Iterable[str]) -> list[Entry]:
    """The entries of what is wanted and of what that requires.

    Raises:
        KeyError: If the lock file lacks a package.
    """
    names = set(wanted)
    for missing in sorted(names - {entry.name for entry in locked}):
        raise KeyError(missing)
    # An entry's comment names who requires it.
    while more := {entry.name for entry in locked if entry.required_by & names} - names:
        names |= more
    return [entry for entry in locked if entry.name in names]


if __name__ == "__main__":
    sys.exit(main())
