"""docs/reliability.md from what runs saved."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.markdown import filled
from endurance.trials import TRIALS

#: Behind a measure in a table of parts whose claim did not hold.
MISSED = " **no**"

#: A trial of fewer parts has a row for each of its entries; one of more parts than columns a row for each part.
FEWEST_PARTS, MOST_COLUMNS = 3, 4

INTRODUCTION = """# Reliability

These trials run `lanner serve` and its clients as real processes, for hours and under faults. `make endurance` runs all
of them in five hours or more on two cores and writes this page from `docs/reliability`, the record of each trial's last
run. `ONLY=soak,kill` selects trials; `SCALE=0.1` runs a tenth of each. A trial *held* if all its claims did; **no**
marks a claim that failed. A plus after a commit marks a checkout with changes. Parts that were not
run again keep their last results, with their commit; a dash there means the trial's own.
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
    # A claim shows what it measured: a count of the same name would only repeat it.
    claimed = {check["claim"] for check in document["checks"]}
    counts: dict[tuple[str, str | None], str] = {
        (what, None): _number(n) for what, n in document["counts"].items() if what not in claimed
    }
    if counts:
        parts += _tables(counts, ("counted", "number"))
    if document["checks"]:
        checks = {(check["claim"], check["bound"]): _measured(check) for check in document["checks"]}
        parts += _tables(checks, ("claim", "measured", "bound", "held"))
    parts += [f"Left out: {reason}.\n" for reason in document["left_out"]]
    return "\n".join(parts)


def _tables(entries: dict[tuple[str, str | None], str], columns: Sequence[str]) -> list[str]:
    """The entries of a trial's parts, `part: what`, as a table of parts; the others with a row each."""
    of_parts = {key: value for key, value in entries.items() if ": " in key[0]}
    parts = list(dict.fromkeys(what.split(": ", 1)[0] for what, _ in of_parts))
    if len(parts) < FEWEST_PARTS:
        of_parts, parts = {}, []
    rows = [
        (_cell(what), *_row(value, bound)) for (what, bound), value in entries.items() if (what, bound) not in of_parts
    ]
    tables = [filled(columns, rows)] if rows else []
    kinds = list(dict.fromkeys((what.split(": ", 1)[1], bound) for what, bound in of_parts))
    cells = {
        (what.split(": ", 1)[0], what.split(": ", 1)[1], bound): value for (what, bound), value in of_parts.items()
    }
    if len(parts) > MOST_COLUMNS:
        heads = [_cell(what if bound is None else f"{what} (bound: {bound})") for what, bound in kinds]
        by_part = [(_cell(part), *(cells.get((part, *kind)) for kind in kinds)) for part in parts]
        tables.append(filled(("part", *heads), by_part))
    elif parts:
        by_kind = [
            (_cell(what), *(cells.get((part, what, bound)) for part in parts), None if bound is None else _cell(bound))
            for what, bound in kinds
        ]
        tables.append(filled((columns[0], *parts, "bound"), by_kind))
    return tables


def _measured(check: dict[str, Any]) -> str:
    """What a claim measured, with a mark if it did not hold."""
    return _cell(_plain(check["measured"])) + ("" if check["held"] else MISSED)


def _plain(measured: str) -> str:
    """What a claim measured: a list as its elements, and files by their names alone, wherever a run had its folder."""
    if measured.startswith("["):
        with suppress(ValueError, SyntaxError):
            measured = "; ".join(map(str, ast.literal_eval(measured)))
    return re.sub(r"/(?:[\w.-]+/)+", "…/", measured)


def _row(value: str, bound: str | None) -> tuple[str, ...]:
    """The cells behind the first one's, in a table with a row for each entry."""
    if bound is None:
        return (value,)
    return value.removesuffix(MISSED), _cell(bound), "**no**" if value.endswith(MISSED) else "yes"


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
