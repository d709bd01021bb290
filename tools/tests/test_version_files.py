"""That the files for later versions can be written, and are those that the tests have of earlier ones."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import json
import re
from pathlib import Path

import version_files

import lanner

COMMITTED = Path(__file__).resolve().parents[2] / "python" / "tests" / "data" / "versions"


def kinds(folder: Path) -> set[str]:
    """The files of a folder; of those with random names, what stands before it."""
    return {re.sub(r"-[0-9a-f]{32}$", "", str(path.relative_to(folder))) for path in files(folder)}


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_every_kind_of_file_is_written(tmp_path: Path) -> None:
    version_files.write(tmp_path)
    for committed in COMMITTED.iterdir():
        assert kinds(committed) <= kinds(tmp_path)
    assert sum(path.stat().st_size for path in files(tmp_path)) < 200_000
    expected = json.loads((tmp_path / "expected.json").read_text())
    assert expected["version"] == lanner.__version__
    assert f"# Files of version {lanner.__version__}\n" in (tmp_path / "README.md").read_text()
