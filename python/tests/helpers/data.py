"""Files that tests read where they are, and do without where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("LANNER_DATA") or Path(__file__).parents[4] / "shared" / "data")


def exported(name: str) -> Path:
    """A network as a user exported it; the test is skipped where it is absent."""
    path = DATA / "exported" / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {path.parent}; set LANNER_DATA to a folder that holds exported/")
    return path
