"""``lanner completion``: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

from lanner.cli.outline import outline
from lanner.cli.output import Output
from lanner.cli.shells import SHELLS

NAME = "completion"
HELP = "print a script that completes commands and options in a shell"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell, as in `source <(lanner completion bash)`")


def run(options: argparse.Namespace, output: Output) -> int:
    """Print the script."""
    # The parser knows this command, which is why it is not known here before.
    from lanner.cli.parser import build_parser

    script = SHELLS[options.shell](outline(build_parser(), "lanner"))
    if output.json:
        output.document({"shell": options.shell, "script": script})
    else:
        output.write(script)
    return 0
