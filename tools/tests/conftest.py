"""Makes the checkers, and the modules of comparisons and of models/, importable: scripts that belong to no package."""

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "peers"), str(TOOLS.parent / "models")]

from helpers.times import pytest_runtest_call as pytest_runtest_call  # noqa: E402
