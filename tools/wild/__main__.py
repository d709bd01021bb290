"""Runs models of the list, keeps what was found, and writes the page of all that is kept.

python -m wild [--only NAME,...] [--seconds S] [--memory GB] [--list] [--save FILE.json] [--page FILE.md]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanner.benchmarks.machine import machine
from wild.listed import ListError, choose, read
from wild.page import page
from wild.trial import Limits, run

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("models.toml")


def main(arguments: list[str]) -> int:
    """Run, keep, and write the page; 1 if a result is wrong or something broke."""
    parser = argparse.ArgumentParser(prog="wild", description="Take models of public packages through lanner.")
    parser.add_argument("--only", metavar="NAME,...", help="these models of the list")
    parser.add_argument("--seconds", type=float, default=1800.0, help="what a command may take (default: 1800)")
    parser.add_argument("--memory", type=float, default=16.0, metavar="GB", help="of address space (default: 16)")
    parser.add_argument("--list", action="store_true", help="print the names and what they are of")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "wild", help="where downloads are kept")
    parser.add_argument("--save", type=Path, default=ROOT / "docs" / "wild.json", metavar="FILE.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "wild.md", metavar="FILE.md")
    options = parser.parse_args(arguments)
    listed = read(LIST)
    try:
        models = choose(listed, options.only)
    except ListError as error:
        parser.error(str(error))
    if options.list:
        for model in models:
            print(f"{model.name}: {model.package} {model.version}, {model.task}")
        return 0
    kept: dict[str, Any] = json.loads(options.save.read_text(encoding="utf-8")) if options.save.exists() else {}
    kept = {name: document for name, document in kept.items() if name in {model.name for model in listed}}
    commit, failed = _commit(), False
    for model in models:
        found = run(model, options.folder, Limits(options.seconds, int(options.memory * 1e9)))
        kept[model.name] = {**found, "date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit, "machine": machine()}
        failed |= found["verdict"] in ("wrong", "broken")
        part = f", {100 * found['error']:.2g}%" if "error" in found else ""
        print(f"{model.name}: {found['verdict']}{part} {found.get('reason', '')}", file=sys.stderr, flush=True)
        in_order = {each.name: kept[each.name] for each in listed if each.name in kept}
        options.save.write_text(json.dumps(in_order, indent=1) + "\n", encoding="utf-8")
        options.page.write_text(page(list(in_order.values())), encoding="utf-8")
    return 1 if failed else 0


def _commit() -> str:
    """The commit of this checkout, with a plus sign where files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
