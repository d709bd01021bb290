"""docs/reliability.md from what runs saved."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.markdown import filled
from endurance.trials import TRIALS

INTRODUCTION = """# Reliability

Trials of real processes, `lanner serve` and its clients, over long times and under faults. `make endurance` runs all
trials in full, in five hours or more on two cores, and writes this page. `ONLY=soak,kill` selects trials, and
`SCALE=0.1` runs a part of each. Every figure is from a run, recorded in `docs/reliability`; the table has each run's
version, commit and part of the full counts. A plus behind a commit marks a checkout with changes. A trial *held* if
all its claims did. If one *missed*, its section shows the claims that failed, and by how much.
"""


def saved(folder: Path) -> list[dict[str, Any]]:
    """The documents that a folder has of trials, each that of the last run."""
    found = [folder / f"{name}.json" for name in TRIALS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in found if path.exists()]


def page(documents: Sequence[dict[str, Any]]) -> str:
    """The page of these documents, one for each trial."""
    return "\n".join([INTRODUCTION, _summary(documents), *map(_section, documents)])


def _summary(documents: Sequence[dict[str, Any]]) -> str:
    columns = ("trial", "verdict", "claims held", "part of the full counts", "minutes", "date", "version", "commit")
    rows = []
    for document in documents:
        held = sum(check["held"] for check in document["checks"])
        told = f"{held} of {len(document['checks'])}"
        name, scale = document["name"], f"{document['scale']:.3g}"
        minutes = f"{document['seconds'] / 60:.1f}"
        link = f"[{name}](#{name.replace('_', '-')})"
        run = (document["date"], document["machine"]["lanner"], document["commit"])
        rows.append((link, document["verdict"], told, scale, minutes, *run))
    return filled(columns, rows) + f"\n{_machines(documents)}\n"


def _machines(documents: Sequence[dict[str, Any]]) -> str:
    told = list(dict.fromkeys(_machine(document["machine"]) for document in documents))
    return f"Measured on {'; '.join(told)}. Both parties share it.\n" if told else "Nothing was run.\n"


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 1e9:.0f} GB, "
        f"{machine['system']}, Python {machine['python']}"
    )


def _section(document: dict[str, Any]) -> str:
    name = document["name"]
    parts = [f"## {name.replace('_', '-')}\n", f"{_described(name)}\n"]
    if document["counts"]:
        parts.append(filled(("counted", "number"), [(what, _number(n)) for what, n in document["counts"].items()]))
    if document["checks"]:
        rows = [
            (
                _cell(check["claim"]),
                _cell(check["measured"]),
                _cell(check["bound"]),
                "yes" if check["held"] else "**no**",
            )
            for check in document["checks"]
        ]
        parts.append(filled(("claim", "measured", "bound", "held"), rows))
    parts += [f"Left out: {reason}.\n" for reason in document["left_out"]]
    return "\n".join(parts)


def _described(name: str) -> str:
    """What a trial's module says of itself."""
    return (TRIALS[name].__doc__ or "").strip()


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def main(arguments: Sequence[str]) -> int:
    """Write the page of a folder's documents: ``python -m endurance.page FOLDER FILE.md``."""
    folder, file = map(Path, arguments)
    file.write_text(page(saved(folder)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
