"""``lanner export``: the half of a model that a client may see and pin."""

from __future__ import annotations

import argparse
from pathlib import Path

from lanner.cli.arguments import add_limit_options, read_limits
from lanner.cli.output import Output
from lanner.cli.written import Written
from lanner.embeddings import beside
from lanner.model import load

NAME = "export"
HELP = "write the public half of a model, which clients may see and pin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.lanner")
    parser.add_argument("-o", dest="target", type=Path, action=Written, required=True, metavar="MODEL.public")
    add_limit_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Write the public half."""
    model = load(options.model, **read_limits(options))
    model.export_public(options.target)
    document: dict[str, object] = {"public": str(options.target), "commitment": model.commitment}
    output.say(f"written to {options.target}; commitment {model.commitment}")
    if model.published:
        document["embeddings"] = str(beside(options.target))
        output.say(f"its tables of embeddings to {beside(options.target)}, which clients need beside it")
    output.document(document)
    return 0
