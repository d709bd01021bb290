"""What is named in one place of the code has its line in the table that others read."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_kind_of_message_has_a_row_in_the_wire_format() -> None:
    kinds = re.findall(r"Kind = Kind\(0x([0-9a-f]+)\)", (ROOT / "crates/step/src/kind.rs").read_text())
    cells = re.findall(r"^\| ([^|]*) \|", (ROOT / "docs/wire-format.md").read_text(), re.MULTILINE)
    rows = {kind for cell in cells for kind in re.findall(r"\b[0-9a-f]{2}\b", cell)}
    assert len(kinds) > 20
    assert [kind for kind in kinds if kind not in rows] == []
