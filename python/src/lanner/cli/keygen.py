"""``lanner keygen``: keys that a client makes once, and servers get once."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from pathlib import Path

from lanner.cli.arguments import add_limit_options, read_limits
from lanner.cli.output import Output, size
from lanner.cli.written import Written
from lanner.keys import keygen

NAME = "keygen"
HELP = "generate client keys once and reuse them; each server receives its part once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.public", help="a file that export wrote, or MODEL.lanner")
    parser.add_argument(
        "-o",
        dest="target",
        type=Path,
        action=Written,
        beside=[".upload"],
        required=True,
        metavar="KEYS",
        help="the file with the secret keys; KEYS.upload beside it is what servers receive",
    )
    add_limit_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Make the keys and say how large they are."""
    with output.progress("making keys"):
        made = keygen(options.model, options.target, **read_limits(options))
    given = f"--keys {shlex.quote(made.keys)}"
    output.say(f"{made.keys} ({size(made.keys_bytes)}) is secret: keep it, and give it with {given}", whole=True)
    output.say(f"{made.upload} ({size(made.upload_bytes)}) is the part that a server receives, once")
    output.document(asdict(made))
    return 0
