"""The command ``lanner``: one module per command, errors as one sentence, and an exit code per kind of error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

INTERRUPTED = 130
INTERRUPTION = "interrupted"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: The arguments after the program's name; those of the process where they are not given.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        # Loading takes tenths of a second, in which Ctrl-C must end the program as it does later.
        from lanner.cli.command import run_command
    except KeyboardInterrupt:
        print(f"error: {INTERRUPTION}", file=sys.stderr)  # noqa: T201 - the console is not loaded
        if "--json" in arguments:
            error = {"kind": INTERRUPTION, "what": INTERRUPTION, "where": "", "fix": ""}
            print(json.dumps({"error": error, "predictions": []}))  # noqa: T201
        return INTERRUPTED
    return run_command(arguments)


__all__ = ["INTERRUPTED", "INTERRUPTION", "main"]
