"""What a party's index says became of its material, by name: read beside the party, and never written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

#: The states of a name from which on it was used: its material is handed out, and its file is removed.
USED = 2

#: How a party is numbered in an index.
PARTIES = {"client": 0, "server": 1}


def states(state: Path, party: str) -> dict[str, int]:
    """The state of each name that a party's index in a state directory knows; nothing where there is none yet."""
    index = state / "material" / "index"
    if not index.exists():
        return {}
    with closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True, timeout=30)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'material'").fetchall()
        if not tables:
            return {}
        rows = connection.execute("SELECT hex(id), state FROM material WHERE party = ?", (PARTIES[party],))
        return {name.lower(): value for name, value in rows}


class History:
    """The states of a party's names over time.

    Attributes:
        states: As they were last seen.
        returned: What was seen of names that were used, and could be used again later.
    """

    def __init__(self, state: Path, party: str) -> None:
        self.state, self.party = state, party
        self.states: dict[str, int] = {}
        self.returned: list[str] = []

    def look(self) -> None:
        """Look at the index again."""
        now = states(self.state, self.party)
        for name, before in self.states.items():
            if before >= USED and now.get(name, before) < USED:
                self.returned.append(f"{self.party} {name}: {before}, then {now[name]}")
        self.states |= now

    def used(self) -> set[str]:
        """The names that were used."""
        return {name for name, value in self.states.items() if value >= USED}
