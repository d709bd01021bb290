"""``lanner prepare``: the offline phases of later predictions, kept on both sides until each is used."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from lanner.cli.arguments import add_peer_arguments, add_peer_options, read_peer
from lanner.cli.output import Output, duration, size
from lanner.client import Client
from lanner.errors import MisuseError
from lanner.prediction import PHASES, Phase
from lanner.state import state_directory

NAME = "prepare"
HELP = "make the material of later predictions now; client and server store it until it is used once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_peer_arguments(parser)
    parser.add_argument("--count", type=int, required=True, metavar="N", help="number of predictions to prepare")
    add_peer_options(parser)


def run(options: argparse.Namespace, output: Output) -> int:
    """Connect, resume or make a pairing, and prepare one by one."""
    if options.count < 1:
        raise MisuseError(f"--count is {options.count}", fix="give 1 or more")
    peer = read_peer(options)
    with output.progress("connecting"):
        client = peer.connect(state_directory(options.state_dir))
    with client:
        phases = keep(client, options.count, output)
        stock = client.stock
    output.table(
        ("phase", "", "time", "sent", "received", "rounds"),
        [
            (name, told, duration(cost.seconds), size(cost.bytes_sent), size(cost.bytes_received), cost.rounds)
            for name, told in (("setup", "once per session"), ("offline", f"of {options.count} together"))
            for cost in [phases[name]]
        ],
    )
    output.say(f"{options.count} prepared; {stock} in stock with this server, each used once, for a week at most")
    document = {name: asdict(cost) for name, cost in phases.items()}
    output.document({"prepared": options.count, "stock": stock, "phases": document})
    return 0


def keep(client: Client, count: int, output: Output, doing: str = "preparing") -> dict[str, Phase]:
    """Prepare one by one; what all of it took, by phase. Where that is broken off, what is kept already is told."""
    total = dict.fromkeys(PHASES, Phase(0.0, 0, 0, 0))
    kept = 0
    try:
        with output.progress(doing, count) as advance:
            while kept < count:
                made = client.keep(1)
                kept += 1
                total = {**total, "setup": made["setup"], "offline": total["offline"] + made["offline"]}
                advance()
    except BaseException:
        if kept:
            output.warn(f"{kept} of {count} prepared and in stock, each used once, for a week at most")
        raise
    return total
