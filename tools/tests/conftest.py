"""Makes the checkers importable: they are scripts and belong to no package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
