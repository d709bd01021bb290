"""``lanner pairings``: who shares kept keys and material with whom, and how much."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from lanner.cli.output import Output, size
from lanner.errors import MisuseError
from lanner.pairings import pairings, revoke
from lanner.state import state_path

NAME = "pairings"
HELP = "list the peers with whom this machine keeps keys and material, or revoke a pairing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", nargs="?", choices=("revoke",), help="forget a pairing and everything stored for it")
    parser.add_argument("id", nargs="?", metavar="ID", help="the pairing; the beginning of its name is enough")


def run(options: argparse.Namespace, output: Output) -> int:
    """List the pairings, or revoke one."""
    state = state_path(options.state_dir)
    found = pairings(state)
    if options.action == "revoke":
        entry = _named(found, options.id)
        revoke(state, entry["id"])
        output.say(f"revoked {entry['id']}; what the peer still keeps of it is useless")
        output.document({"revoked": entry["id"]})
        return 0
    rows = [
        (
            entry["id"][:12],
            entry["party"],
            entry["model"],
            _shortened(entry["peer"] if entry["certificate"] is None else entry["certificate"]),
            entry["predictions"],
            size(entry["bytes"]),
            _moment(entry["created"]),
            _moment(entry["used"]),
        )
        for entry in found
    ]
    output.table(("pairing", "role", "model", "peer", "predictions", "bytes", "made", "last used"), rows)
    if not rows:
        output.say(f"there are no pairings in {state}")
    output.document({"pairings": found})
    return 0


def _named(found: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    """The one pairing whose name begins so."""
    if not name:
        raise MisuseError("no pairing is named", fix="give the ID that lanner pairings prints")
    matching = {entry["id"]: entry for entry in found if entry["id"].startswith(name.lower())}
    if len(matching) != 1:
        what = "there is no such pairing" if not matching else f"{len(matching)} pairings begin so"
        raise MisuseError(what, where=name, fix="give an ID that lanner pairings prints")
    return next(iter(matching.values()))


def _shortened(peer: str) -> str:
    """A peer as people compare it: of a fingerprint the beginning, which --json has whole."""
    return peer if len(peer) <= _SHOWN else f"{peer[:_SHOWN]}..."


#: Characters of a peer that are shown: of a fingerprint its kind and 12 digits.
_SHOWN = len("sha256:") + 12


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
